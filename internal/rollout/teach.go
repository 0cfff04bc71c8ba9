package rollout

import (
	"fmt"
	"strings"

	"trainer/loss"
	"trainer/recipe"
)

// Enter says what is trained where nothing is rewarded, in place: every completion, but those that were cut and that the
// recipe masks.
func Enter(groups []Group, r *recipe.Rollout) {
	for _, g := range groups {
		for j := range g.Members {
			m := &g.Members[j]
			m.Trained = trainable(m, r) > 0
		}
	}
}

// taught is the prompt that a teacher scores completions behind.
func (g *Group) taught() []int32 {
	if g.Taught != nil {
		return g.Taught
	}
	return g.Prompt
}

// Untaught are the sequences of all members, in order, as a teacher scores them: the ids that were sampled, behind its prompt.
func Untaught(groups []Group) []loss.Datum {
	var data []loss.Datum
	for i, g := range groups {
		for _, m := range g.Members {
			data = append(data, Datum(g.taught(), m, i))
		}
	}
	return data
}

// Teach gives the members what a teacher makes of their tokens, in place: rows are [B][T] natural logs under the teacher's
// weights, of the sequences of Untaught. An error says that rows do not fit.
func Teach(groups []Group, rows [][]float64) error {
	n := 0
	for _, g := range groups {
		lead := len(g.taught()) - 1
		for j := range g.Members {
			m := &g.Members[j]
			if n == len(rows) || len(rows[n]) != lead+len(m.Tokens) {
				return fmt.Errorf("the teacher scored %d sequences, and number %d is not the one that was sampled", len(rows), n+1)
			}
			m.Teacher = rows[n][lead:]
			n++
		}
	}
	if n != len(rows) {
		return fmt.Errorf("the teacher scored %d sequences of %d", len(rows), n)
	}
	return nil
}

// TeachTop gives the members what a teacher says of the sequences of Untaught, in order: of each all tokens, those of its prompt
// too.
func TeachTop(groups []Group, said []Samples) {
	n := 0
	for _, g := range groups {
		for j := range g.Members {
			m, s := &g.Members[j], said[n]
			lead := len(s.Scores) - len(m.Tokens)
			m.Teacher, m.TopIDs, m.TopLogprobs = s.Scores[lead:], s.TopIDs[lead:], s.TopLogprobs[lead:]
			n++
		}
	}
}

// Divergence is the mean of q − τ over the sampled tokens of groups, in nats a token: of samples that were drawn at
// temperature 1, without top_p and top_k, an estimate of the KL divergence of the weights that sampled from the teacher.
// ok is false where there are no tokens.
func Divergence(groups []Group) (kl float64, ok bool) {
	var all mean
	for _, g := range groups {
		for _, m := range g.Members {
			for t, q := range m.Logprobs {
				all.add(q - m.Teacher[t])
			}
		}
	}
	if all.n == 0 {
		return 0, false
	}
	return all.sum / float64(all.n), true
}

// Taught are the numbers of a batch that a teacher has scored: those of Metrics that speak of no reward, and
// distill/reverse_kl, the Divergence.
func Taught(groups []Group) map[string]float64 {
	out := map[string]float64{}
	for name, v := range Metrics(groups) {
		if !strings.HasPrefix(name, "reward/") && name != "groups/zero_variance_fraction" {
			out[name] = v
		}
	}
	if kl, ok := Divergence(groups); ok {
		out["distill/reverse_kl"] = kl
	}
	return out
}
