package rollout

import (
	"fmt"
	"slices"

	"trainer/loss"
)

// Datum is the sequence that m is trained as, behind its prompt, [T] = P + len(m.Tokens) - 1 positions: entry t speaks of
// predicting token t+1, so that the first P-1 positions, which predict the prompt, have weight 0, and the completion's
// tokens have the log-probabilities that they were sampled with, those of a teacher where m has them, and the advantage of m. Ids
// are those that were sampled. What an environment wrote between is as the prompt: it has no weight.
func Datum(prompt []int32, m Member, group int) loss.Datum {
	ids := make([]int32, 0, len(prompt)+len(m.Tokens))
	ids = append(append(ids, prompt...), m.Tokens...)
	n, lead := len(ids)-1, len(prompt)-1
	d := loss.Datum{
		Input: ids[:n], Targets: ids[1:], Group: group, RoutedExperts: m.RoutedExperts,
		Weights: make([]float64, n), Advantages: make([]float64, n), OldLogprobs: make([]float64, n),
	}
	copy(d.OldLogprobs[lead:], m.Logprobs)
	if m.Ref != nil {
		d.RefLogprobs = make([]float64, n)
		copy(d.RefLogprobs[lead:], m.Ref)
	}
	for t := lead; t < n; t++ {
		d.Weights[t], d.Advantages[t] = 1, m.Advantage
	}
	for _, s := range m.Observed {
		for t := lead + s.From; t < lead+s.To; t++ {
			d.Weights[t], d.Advantages[t], d.OldLogprobs[t] = 0, 0, 0
		}
	}
	if m.Teacher != nil {
		d.TeacherLogprobs = make([]float64, n)
		copy(d.TeacherLogprobs[lead:], m.Teacher)
	}
	if m.TopIDs != nil {
		d.TopIDs, d.TopLogprobs = make([][]int32, n), make([][]float64, n)
		copy(d.TopIDs[lead:], m.TopIDs)
		copy(d.TopLogprobs[lead:], m.TopLogprobs)
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
				prompt := g.Prompt
				if m.Prompt != nil {
					prompt = m.Prompt
				}
				data = append(data, Datum(prompt, m, i))
			}
		}
	}
	return data
}

// Compare gives the members that Step makes sequences of their log-probabilities under the reference, 0 for what an environment
// wrote: rows [B][T] are those of the sequences, in order. An error says that rows do not fit.
func Compare(groups []Group, rows [][]float64) error {
	n := 0
	for _, g := range groups {
		for j := range g.Members {
			m := &g.Members[j]
			if g.Dropped != Kept || !m.Trained {
				continue
			}
			lead := len(g.Prompt) - 1
			if m.Prompt != nil {
				lead = len(m.Prompt) - 1
			}
			want := lead + len(m.Tokens)
			if n >= len(rows) || len(rows[n]) != want {
				return fmt.Errorf("the log-probabilities of sequence %d are not the %d of its tokens", n, want)
			}
			m.Ref = slices.Clone(rows[n][lead:])
			for _, s := range m.Observed {
				clear(m.Ref[s.From:s.To])
			}
			n++
		}
	}
	if n != len(rows) {
		return fmt.Errorf("%d sequences were scored, of %d", len(rows), n)
	}
	return nil
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
