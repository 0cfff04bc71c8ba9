package rollout

import "trainer/loss"

// Datum is the sequence that m is trained as, behind its prompt, [T] = P + len(m.Tokens) - 1 positions: entry t speaks of
// predicting token t+1, so that the first P-1 positions, which predict the prompt, have weight 0, and the completion's
// tokens have the log-probabilities that they were sampled with, those of a teacher where m has them, and the advantage of m. Ids
// are those that were sampled.
func Datum(prompt []int32, m Member, group int) loss.Datum {
	ids := make([]int32, 0, len(prompt)+len(m.Tokens))
	ids = append(append(ids, prompt...), m.Tokens...)
	n, lead := len(ids)-1, len(prompt)-1
	d := loss.Datum{
		Input: ids[:n], Targets: ids[1:], Group: group,
		Weights: make([]float64, n), Advantages: make([]float64, n), OldLogprobs: make([]float64, n),
	}
	copy(d.OldLogprobs[lead:], m.Logprobs)
	for t := lead; t < n; t++ {
		d.Weights[t], d.Advantages[t] = 1, m.Advantage
	}
	if m.Teacher != nil {
		d.TeacherLogprobs = make([]float64, n)
		copy(d.TeacherLogprobs[lead:], m.Teacher)
	}
	return d
}

// Step is the sequences of the trained members of groups, in order.
func Step(groups []Group) []loss.Datum {
	var data []loss.Datum
	for i, g := range groups {
		if g.Dropped != Kept {
			continue
		}
		for _, m := range g.Members {
			if m.Trained {
				data = append(data, Datum(g.Prompt, m, i))
			}
		}
	}
	return data
}

// Minibatch is number i, in [0, n), of n nearly equal shares of the groups that train something; groups stay whole, and
// where there are fewer groups than shares some are empty.
func Minibatch(groups []Group, i, n int) []Group {
	var kept []Group
	for _, g := range groups {
		if len(Step([]Group{g})) > 0 {
			kept = append(kept, g)
		}
	}
	return kept[i*len(kept)/n : (i+1)*len(kept)/n]
}
