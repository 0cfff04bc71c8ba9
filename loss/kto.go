package loss

import (
	"cmp"
	"fmt"
	"slices"
)

// KTO learns from single rows that are labelled good or bad. With d = S − R and the reference point z it is
// λ_D·(1 − σ(β(d − z))) for a desirable row and λ_U·(1 − σ(β(z − d))) for an undesirable one, the mean over rows.
// z = max(0, mean of d over the mismatched sequences), a constant, and 0 without any. Source: Ethayarajh et al. 2024 (arXiv
// 2402.01306), eq. 8.
type KTO struct {
	// Beta is how hard the model is held to the reference.
	Beta float64 `yaml:"beta" validate:"gt=0"`
	// DesirableWeight weighs the good rows; keep its product with their number within 1 to 4/3 of that of the bad.
	DesirableWeight float64 `yaml:"desirable_weight" validate:"gte=0"`
	// UndesirableWeight weighs the bad rows.
	UndesirableWeight float64 `yaml:"undesirable_weight" validate:"gte=0"`
}

func newKTO() *KTO { return &KTO{Beta: 0.1, DesirableWeight: 1, UndesirableWeight: 1} }

// UsesReference implements Referenced.
func (l *KTO) UsesReference() bool { return true }

// Check implements Checker.
func (l *KTO) Check() error {
	return cmp.Or(above("beta", l.Beta, 0),
		atLeast("desirable_weight", l.DesirableWeight, 0), atLeast("undesirable_weight", l.UndesirableWeight, 0))
}

// Companions implements Accompanied: the prompt of each sequence before the completion of the next, and of the last before
// that of the first, Mismatched; none for a single sequence. A prompt ends where the weights begin.
func (l *KTO) Companions(step []Datum) []Datum {
	if len(step) < 2 {
		return nil
	}
	out := make([]Datum, len(step))
	for i, d := range step {
		out[i] = mismatch(d, step[(i+1)%len(step)])
	}
	return out
}

// mismatch is the prompt of one sequence before the completion of another.
func mismatch(prompt, completion Datum) Datum {
	p, c := promptLen(prompt), promptLen(completion)
	ids := slices.Concat(prompt.Input[:p], completion.Targets[c-1:])
	weights := slices.Concat(prompt.Weights[:p-1], completion.Weights[c-1:])
	return Datum{Input: ids[:len(ids)-1], Targets: ids[1:], Weights: weights, Mismatched: true}
}

// promptLen counts the tokens in front of the first that has a weight, at least 1: nothing predicts the first token.
func promptLen(d Datum) int {
	if i := slices.IndexFunc(d.Weights, func(w float64) bool { return w != 0 }); i >= 0 {
		return i + 1
	}
	return len(d.Weights)
}

// Eval implements Loss; step has RefLogprobs and Desirable. Sequences that are Mismatched give z and nothing else; a row
// without any weight counts in the mean. Metrics: kto_loss, kl (z), count/desirable, count/undesirable, chosen_reward and
// rejected_reward (means of β·d, absent where there is no such row), margin (where there are both). ErrInvalid as
// CrossEntropy.Eval, and for a step of nothing but mismatched sequences; ErrNonFinite as there.
func (l *KTO) Eval(now [][]float64, step []Datum) (Result, error) {
	r, err := l.eval(now, step)
	return named("kto", r, err)
}

func (l *KTO) eval(now [][]float64, step []Datum) (Result, error) {
	if err := ready(l, now, step, reference); err != nil {
		return Result{}, err
	}
	gains := make([]float64, len(step))
	drift, mismatched := 0.0, 0
	for i, d := range step {
		gains[i] = sideOf(now[i], d, true).gain()
		if d.Mismatched {
			drift += gains[i]
			mismatched++
		}
	}
	rows := len(step) - mismatched
	if rows == 0 {
		return Result{}, fmt.Errorf("all %d sequences are mismatched, and none is a row: %w", len(step), ErrInvalid)
	}
	z := max(0, share(drift, mismatched))
	r := Result{Grads: zeros(step)}
	var good, bad int
	var rewardGood, rewardBad float64
	for i, d := range step {
		if d.Mismatched {
			continue
		}
		sign, weight := -1.0, l.UndesirableWeight
		if d.Desirable {
			sign, weight = 1, l.DesirableWeight
			good++
			rewardGood += float64(l.Beta * gains[i])
		} else {
			bad++
			rewardBad += float64(l.Beta * gains[i])
		}
		u := float64(sign * l.Beta * (gains[i] - z))
		// 1 − σ(u) = σ(−u), which keeps its digits where σ(u) is near 1.
		r.Value += float64(weight * sigmoid(-u))
		push(r.Grads[i], d, -sign*weight*l.Beta*sigmoid(u)*sigmoid(-u)/float64(rows))
	}
	r.Value /= float64(rows)
	r.Metrics = map[string]float64{
		"kto_loss": r.Value, "kl": z, "count/desirable": float64(good), "count/undesirable": float64(bad),
	}
	if good > 0 {
		r.Metrics["chosen_reward"] = share(rewardGood, good)
	}
	if bad > 0 {
		r.Metrics["rejected_reward"] = share(rewardBad, bad)
	}
	if good > 0 && bad > 0 {
		r.Metrics["margin"] = r.Metrics["chosen_reward"] - r.Metrics["rejected_reward"]
	}
	return r.finite()
}
