package rollout

import (
	"maps"

	"trainer/internal/grader"
)

// Metrics are the numbers of a rollout batch. Means of rewards are over scored members alone, and absent where there is
// none: reward/mean of the totals, reward/<grader>/mean of each grader before clip and weight. Counts: reward/unscored,
// reward/<grader>/unscored/<grader.Reason>, groups, groups/trained, groups/too_few, groups/unsampled. groups/zero_variance_fraction
// is of the sampled groups, completion/length in sampled tokens, turns of the assistant where there is an environment, completion/truncated_fraction of the completions,
// kl/reference the mean of q − ρ over the tokens that are compared with a reference, an estimate of the KL of the weights that
// sampled to it, absent where there is none; entropy/sampled the mean of −q over the sampled tokens, an estimate of the entropy of the weights that sampled.
func Metrics(groups []Group) map[string]float64 {
	var (
		reward, length, cut, entropy, kl mean
		parts                            = map[string]*mean{}
		counts                           = map[string]float64{"reward/unscored": 0, "groups": float64(len(groups)), "groups/trained": 0}
		flat, turns                      mean
	)
	for _, g := range groups {
		switch g.Dropped {
		case Kept:
			counts["groups/trained"]++
		case TooFew, Unsampled:
			counts["groups/"+string(g.Dropped)]++
		}
		if g.Dropped != Unsampled {
			flat.add(truth(g.Dropped == ZeroVariance || equal(g)))
		}
		for _, m := range g.Members {
			if len(m.Tokens) > 0 {
				length.add(float64(m.Sampled()))
				cut.add(truth(m.Stop == Cut))
			}
			for _, s := range m.Turns() {
				entropy.addAll(m.Logprobs[s.From:s.To])
				for t := s.From; t < s.To && m.Ref != nil; t++ {
					kl.add(m.Logprobs[t] - m.Ref[t])
				}
			}
			if m.Prompt != nil {
				turns.add(float64(len(m.Observed) + 1))
			}
			if m.Unscored != "" {
				counts["reward/unscored"]++
			} else {
				reward.add(m.Reward)
			}
			for _, p := range m.Parts {
				if !p.Scored {
					counts["reward/"+p.Name+"/unscored/"+grader.Reason(p.Why)]++
					continue
				}
				if parts[p.Name] == nil {
					parts[p.Name] = &mean{}
				}
				parts[p.Name].add(p.Value)
			}
		}
	}
	out := maps.Clone(counts)
	reward.put(out, "reward/mean")
	length.put(out, "completion/length")
	cut.put(out, "completion/truncated_fraction")
	entropy.put(out, "entropy/sampled")
	kl.put(out, "kl/reference")
	turns.put(out, "turns")
	flat.put(out, "groups/zero_variance_fraction")
	for name, m := range parts {
		m.put(out, "reward/"+name+"/mean")
	}
	return out
}

// equal says that a group has more than one reward, and all are the same.
func equal(g Group) bool {
	n, first, same := 0, 0.0, true
	for _, m := range g.Members {
		if m.Unscored != "" {
			continue
		}
		if n++; n == 1 {
			first = m.Reward
		}
		same = same && m.Reward == first
	}
	return n > 1 && same
}

func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// mean adds up in order.
type mean struct {
	sum float64
	n   int
}

func (m *mean) add(v float64) { m.sum += v; m.n++ }

// addAll takes the log-probabilities of sampled tokens.
func (m *mean) addAll(logprobs []float64) {
	for _, q := range logprobs {
		m.add(-q)
	}
}

func (m *mean) put(into map[string]float64, name string) {
	if m.n > 0 {
		into[name] = m.sum / float64(m.n)
	}
}
