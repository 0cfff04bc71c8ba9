package runner

import "trainer/internal/diag"

// CheckTargets holds the target of every prompt to the rewards that compare with it: a row without one could never be scored.
// The rewards are open. The error is a diag.List, of which the first 20 rows are listed and the rest counted.
func (in *Inputs) CheckTargets() error {
	if !in.samples() || in.Graders.Set == nil {
		return nil
	}
	const shown = 20
	var problems diag.List
	found := 0
	for _, set := range in.sets() {
		for i := range set.Len() {
			p, err := set.Prompt(i)
			if err != nil {
				return err
			}
			if err := in.Graders.Set.CheckTarget(p.Target); err != nil {
				if found++; found <= shown {
					problems.Add(p.At, "target", "%v", err)
				}
			}
		}
	}
	if found > shown {
		problems.Add(in.Recipe.At("reward"), "reward", "%d rows have no target that the rewards can compare with; %d of them are not listed", found, found-shown)
	}
	return problems.Err()
}
