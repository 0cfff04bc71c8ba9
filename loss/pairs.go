package loss

import (
	"fmt"
)

// side is one sequence of a pair, summed over its weights.
type side struct {
	now, ref float64 // Σ w·ℓ, Σ w·ρ; ref is 0 where the loss has no reference
	weight   float64 // Σ w
}

// mean is the log-probability per weight.
func (s side) mean() float64 { return s.now / s.weight }

// gain is how much the side has gained on the reference.
func (s side) gain() float64 { return s.now - s.ref }

// verdict is what a preference loss makes of one pair: its value, the derivatives by Σ w·ℓ of both sides, and the rewards
// that its metrics compare.
type verdict struct {
	value                        float64
	chosenGrad, rejectedGrad     float64
	chosenReward, rejectedReward float64
}

// opposed is a verdict whose gradients cancel.
func opposed(value, chosenGrad, chosenReward, rejectedReward float64) verdict {
	return verdict{value, chosenGrad, -chosenGrad, chosenReward, rejectedReward}
}

// supervised adds the chosen side's own negative log-probability a token, times weight, and the metric nll_loss.
func (v verdict) supervised(weight float64, chosen side, sums map[string]float64) verdict {
	if weight == 0 {
		return v
	}
	sums["nll_loss"] -= chosen.mean()
	v.value -= float64(weight * chosen.mean())
	v.chosenGrad -= weight / chosen.weight
	return v
}

// lengths are what the sums of two sides are divided by: their weights, or 1.
func lengths(normalized bool, chosen, rejected side) (nc, nr float64) {
	if normalized {
		return chosen.weight, rejected.weight
	}
	return 1, 1
}

// pairs is the mean of a loss over the pairs of a step: sequences 2p and 2p+1 are the chosen and the rejected of pair p and
// have the same Group. The gradient of a token is w times that of its side, over the number of pairs. Metrics: <name>_loss,
// accuracy (the chosen reward is above the rejected), margin, chosen_reward, rejected_reward, means over pairs. of adds
// metrics of its own to the map, as sums over the pairs.
func pairs(name string, l Loss, now [][]float64, step []Datum, columns []column, of func(chosen, rejected side, sums map[string]float64) verdict) (Result, error) {
	r, err := evalPairs(name, l, now, step, columns, of)
	return named(name, r, err)
}

func evalPairs(name string, l Loss, now [][]float64, step []Datum, columns []column, of func(chosen, rejected side, sums map[string]float64) verdict) (Result, error) {
	if err := ready(l, now, step, columns...); err != nil {
		return Result{}, err
	}
	if len(step)%2 != 0 {
		return Result{}, fmt.Errorf("%d sequences, which are not pairs: %w", len(step), ErrInvalid)
	}
	count := float64(len(step) / 2)
	r := Result{Grads: zeros(step), Metrics: map[string]float64{
		"accuracy": 0, "margin": 0, "chosen_reward": 0, "rejected_reward": 0,
	}}
	for c := 0; c < len(step); c += 2 {
		chosen, rejected := sideOf(now[c], step[c], len(columns) > 0), sideOf(now[c+1], step[c+1], len(columns) > 0)
		switch {
		case step[c].Group != step[c+1].Group:
			return Result{}, fmt.Errorf("sequences %d and %d are of groups %d and %d, not of one pair: %w", c, c+1, step[c].Group, step[c+1].Group, ErrInvalid)
		case chosen.weight == 0 || rejected.weight == 0:
			return Result{}, fmt.Errorf("pair %d has a side without any weight: %w", c/2, ErrInvalid)
		}
		v := of(chosen, rejected, r.Metrics)
		r.Value += v.value
		r.Metrics["chosen_reward"] += v.chosenReward
		r.Metrics["rejected_reward"] += v.rejectedReward
		r.Metrics["margin"] += v.chosenReward - v.rejectedReward
		if v.chosenReward > v.rejectedReward {
			r.Metrics["accuracy"]++
		}
		push(r.Grads[c], step[c], v.chosenGrad/count)
		push(r.Grads[c+1], step[c+1], v.rejectedGrad/count)
	}
	r.Value /= count
	for name := range r.Metrics {
		r.Metrics[name] /= count
	}
	r.Metrics[name+"_loss"] = r.Value
	return r.finite()
}

// sideOf sums a sequence over its weights; what lies under a weight of 0 is not looked at.
func sideOf(now []float64, d Datum, ref bool) (s side) {
	for t, w := range d.Weights {
		if w == 0 {
			continue
		}
		s.weight += w
		s.now += float64(w * now[t])
		if ref {
			s.ref += float64(w * d.RefLogprobs[t])
		}
	}
	return s
}

// push sets the gradient of a sequence whose loss has the derivative g by Σ w·ℓ.
func push(grads []float64, d Datum, g float64) {
	for t, w := range d.Weights {
		if w != 0 {
			grads[t] = w * g
		}
	}
}

// referenced are the columns of a loss that compares with a reference.
var referenced = []column{reference}
