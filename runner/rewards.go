package runner

import (
	"errors"
	"slices"

	"trainer/internal/dataset"
	"trainer/internal/diag"
)

// CheckTargets holds every prompt that completions are sampled of to the rewards: one without a target that they can compare with
// could never be scored. Of rows that train it sees that they have a prompt, and how long it is. The rewards are open. The error is a
// diag.List, of which the first 20 rows are listed and the rest counted.
func (in *Inputs) CheckTargets() error {
	if !in.samples() && !in.examines() || in.Graders.Set == nil {
		return nil
	}
	if err := in.promptless(); err != nil {
		return err
	}
	const shown = 20
	var problems diag.List
	found := 0
	tell := func(ps ...diag.Problem) {
		if found++; found <= shown {
			problems = append(problems, ps...)
		}
	}
	for _, set := range in.asked() {
		n := set.Len()
		if in.examines() {
			n = in.heldRows()
		}
		for i := range n {
			p, err := set.Prompt(i)
			var faults diag.List
			if errors.As(err, &faults) {
				tell(faults...)
				continue
			}
			if err != nil {
				return err
			}
			if in.examines() {
				in.longestHeld = max(in.longestHeld, len(p.IDs))
			}
			if err := in.Graders.Set.CheckTarget(p.Target); err != nil {
				tell(diag.Problem{Pos: p.At, Key: "target", Msg: err.Error()})
			}
		}
	}
	if found > shown {
		key := "reward"
		if in.examines() {
			key = "eval.sampling_params"
		}
		problems.Add(in.Recipe.At(key), key, "%d rows have no prompt, or no target that the rewards can compare with; %d of them are not listed", found, found-shown)
	}
	return problems.Err()
}

// asked are the sets that completions are sampled of.
func (in *Inputs) asked() []*dataset.Set {
	switch {
	case !in.examines():
		return in.sets()
	case in.Held == nil:
		return nil
	}
	return []*dataset.Set{in.Held}
}

// promptless refuses held-out rows of a format that has no prompts.
func (in *Inputs) promptless() error {
	if !in.examines() || in.Held == nil {
		return nil
	}
	const key = "eval.sampling_params"
	var l diag.List
	for _, s := range in.Held.Sources() {
		if s.Rows > 0 && slices.Contains([]string{"text", "tokens"}, s.Format) {
			l.Add(in.Recipe.At(key), key, "the rows of %s have the format %s, and there is no prompt in them that could be completed; hold out messages, or a prompt and its completion, or leave it out", s.Name, s.Format)
		}
	}
	return l.Err()
}
