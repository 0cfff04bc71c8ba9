package loss

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// MostAlternatives bounds ForwardKL.TopK: the service tells no more of the tokens at a position.
const MostAlternatives = 20

// ForwardKL brings the model to a teacher's distribution over the tokens that the teacher finds likeliest at each position,
// Σ p·(log p − ℓ). Its gradient is that of the cross-entropy with soft targets, and the service's has one target a position: a
// sequence is sent in Copies, of which number k has the k-th token of the teacher as target and its probability as weight.
// Source: Hinton et al. 2015 (arXiv 1503.02531), at temperature 1, cut to the top K as in Shenfeld et al. 2026 (arXiv 2601.19897).
type ForwardKL struct {
	// TopK of the teacher's likeliest tokens are learnt at each position; a sequence costs as many times its tokens.
	TopK int `yaml:"top_k" validate:"gte=1,lte=20"`
	// Renormalise makes the probabilities of those tokens add up to 1, so that every position counts alike and the divergence is
	// that of two distributions, 0 at best; false takes them as they are, and a position counts as much as they add up to.
	Renormalise bool `yaml:"renormalise"`
	// SkipFirst tokens of each completion are not trained; only with rollout.
	SkipFirst int `yaml:"skip_first" default:"0" validate:"gte=0"`
}

func newForwardKL() *ForwardKL { return &ForwardKL{TopK: MostAlternatives, Renormalise: true} }

// RowsLoop implements FromRows: copies train as any rows do.
func (l *ForwardKL) RowsLoop() Loop { return Supervised }

// Check implements Checker.
func (l *ForwardKL) Check() error {
	return cmp.Or(between("top_k", float64(l.TopK), 1, MostAlternatives), atLeast("skip_first", float64(l.SkipFirst), 0))
}

// Eval implements Loss; step is Copies, with their TeacherLogprobs. The value is the cross-entropy, Σ −w·ℓ, and the gradient −w.
// Metrics: those of CrossEntropy, and forward_kl, Σ w·(τ − ℓ) over Σ w. Errors as CrossEntropy.Eval.
func (l *ForwardKL) Eval(now [][]float64, step []Datum) (Result, error) {
	r, err := l.eval(now, step)
	return named("forward_kl", r, err)
}

func (l *ForwardKL) eval(now [][]float64, step []Datum) (Result, error) {
	if err := ready(l, now, step, teacher); err != nil {
		return Result{}, err
	}
	r, err := (&CrossEntropy{}).eval(now, step)
	if err != nil {
		return Result{}, err
	}
	sum := 0.0
	for i, d := range step {
		for t, w := range d.Weights {
			if w != 0 {
				sum += float64(w * (d.TeacherLogprobs[t] - now[i][t]))
			}
		}
	}
	r.Metrics["forward_kl"] = 0
	if total := r.Metrics["weight_sum"]; total > 0 {
		r.Metrics["forward_kl"] = sum / total
	}
	return r, nil
}

// Copies are what the sequences of step are sent as, in order, those of a sequence one behind the other: as many as it has
// likeliest tokens at a trained position, TopK at most. A copy's Weights are those of the sequence times the probability of its
// target, 0 where the position has no such token; its TeacherLogprobs are the log of that probability. A sequence without
// trained positions has none. The sequences of step have TopIDs and TopLogprobs; step is not changed.
func (l *ForwardKL) Copies(step []Datum) []Datum {
	var out []Datum
	for _, d := range step {
		from := len(out)
		for range l.Count(d.Weights, d.TopIDs) {
			c := d
			c.TopIDs, c.TopLogprobs = nil, nil
			c.Targets, c.Weights, c.TeacherLogprobs = slices.Clone(d.Targets), make([]float64, len(d.Weights)), make([]float64, len(d.Weights))
			out = append(out, c)
		}
		for t, w := range d.Weights {
			if w == 0 {
				continue
			}
			ids, logs, _ := l.top(d, t)
			for k, id := range ids {
				c := out[from+k]
				c.Targets[t], c.Weights[t], c.TeacherLogprobs[t] = id, w*math.Exp(logs[k]), logs[k]
			}
		}
	}
	return out
}

// Count is how many Copies a sequence with these weights and likeliest tokens, both [T], is sent as.
func (l *ForwardKL) Count(weights []float64, ids [][]int32) int {
	n := 0
	for t, w := range weights {
		if w != 0 {
			n = max(n, min(l.TopK, len(ids[t])))
		}
	}
	return n
}

// top is what is learnt at position t: tokens by falling probability, the log of each probability, and what the teacher's own add
// up to.
func (l *ForwardKL) top(d Datum, t int) (ids []int32, logs []float64, mass float64) {
	order := make([]int, len(d.TopIDs[t]))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(d.TopLogprobs[t][b], d.TopLogprobs[t][a]) })
	for _, i := range order[:min(l.TopK, len(order))] {
		ids, logs = append(ids, d.TopIDs[t][i]), append(logs, d.TopLogprobs[t][i])
	}
	if len(logs) == 0 {
		return nil, nil, 0
	}
	first, sum := logs[0], 0.0 // the rest as shares of the likeliest, which no probability is too small for
	for _, p := range logs {
		sum += math.Exp(p - first)
	}
	if l.Renormalise {
		for k := range logs {
			logs[k] -= first + math.Log(sum)
		}
	}
	return ids, logs, math.Exp(first) * sum
}

// Teaching says what the teacher gives the sequences of step to learn, as means over the trained positions by their weights: the
// Entropy of what is learnt, −Σ p·log p in nats, which the cross-entropy has above the divergence; and the Mass, which share of
// the teacher's whole distribution the tokens have. Weight is the sum of the weights; 0: the others are 0 too.
type Teaching struct{ Entropy, Mass, Weight float64 }

// And is what both are together.
func (a Teaching) And(b Teaching) Teaching {
	sum := a.Weight + b.Weight
	if sum == 0 {
		return a
	}
	return Teaching{(a.Entropy*a.Weight + b.Entropy*b.Weight) / sum, (a.Mass*a.Weight + b.Mass*b.Weight) / sum, sum}
}

// Teaching is that of the sequences of step, which have TopIDs and TopLogprobs.
func (l *ForwardKL) Teaching(step []Datum) Teaching {
	var sum Teaching
	for _, d := range step {
		for t, w := range d.Weights {
			if w == 0 {
				continue
			}
			sum.Weight += w
			_, logs, mass := l.top(d, t)
			for _, p := range logs {
				sum.Entropy -= float64(w * math.Exp(p) * p)
			}
			sum.Mass += float64(w * mass)
		}
	}
	if sum.Weight > 0 {
		sum.Entropy, sum.Mass = sum.Entropy/sum.Weight, sum.Mass/sum.Weight
	}
	return sum
}

// Skip leaves the first SkipFirst trained positions of each sequence of step out, and the sequences of which none is left. step is
// not changed.
func (l *ForwardKL) Skip(step []Datum) []Datum {
	var out []Datum
	for _, d := range step {
		left, n := l.SkipFirst, 0
		d.Weights = slices.Clone(d.Weights)
		for t, w := range d.Weights {
			switch {
			case w == 0:
			case left > 0:
				left--
				d.Weights[t] = 0
			default:
				n++
			}
		}
		if n > 0 {
			out = append(out, d)
		}
	}
	return out
}

// CheckTop holds what a teacher says of one position to being a distribution's likeliest tokens: at most MostAlternatives,
// each once, with finite logs of probabilities that add up to 1 at most, give or take what a rounded one may be off. limit is
// the greatest id. at is the entry at fault, -1 for all of them together.
func CheckTop(ids []int32, logprobs []float64, limit int64) (at int, err error) {
	if len(ids) != len(logprobs) {
		return -1, fmt.Errorf("%d token ids and %d logprobs", len(ids), len(logprobs))
	}
	if len(ids) > MostAlternatives {
		return -1, fmt.Errorf("%d tokens; at most %d are learnt at a position", len(ids), MostAlternatives)
	}
	mass := 0.0
	for k, p := range logprobs {
		switch id := ids[k]; {
		case id < 0 || int64(id) > limit:
			return k, fmt.Errorf("%d is outside of the vocabulary; ids are 0 to %d", id, limit)
		case slices.Contains(ids[:k], id):
			return k, fmt.Errorf("token %d is there twice", id)
		case !(p <= 0) || beyondFloat32(p):
			return k, fmt.Errorf("%g is not a log-probability; a finite number, at most 0", p)
		}
		mass += math.Exp(p)
	}
	if mass > 1+roundedMass {
		return -1, fmt.Errorf("the probabilities add up to %.4g, which no distribution's do", mass)
	}
	return 0, nil
}

// roundedMass is how far above 1 the probabilities of 20 tokens may add up where their logs are rounded to bfloat16.
const roundedMass = 0.02
