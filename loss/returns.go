package loss

import (
	"fmt"
	"math"
)

// Returns are the discounted rewards from each trained token on, [T]: every one costs klCoef·(q − ρ), and the last also
// earns reward. Positions of weight 0 have a return of 0, and no time passes there. old and ref may be nil when klCoef is 0.
// Source: Hu 2025 (arXiv 2501.03262), section 3. ErrInvalid for unequal lengths and numbers that are not finite.
func Returns(reward float64, d Datum, klCoef, gamma float64) ([]float64, error) {
	err := checkStep([]Datum{d})
	if err == nil && klCoef != 0 {
		err = needs([]Datum{d}, old, reference)
	}
	if err == nil && (beyondFloat32(reward) || beyondFloat32(klCoef)) {
		err = fmt.Errorf("reward %g and KL coefficient %g, want finite numbers: %w", reward, klCoef, ErrInvalid)
	}
	if err == nil {
		err = between("gamma", gamma, 0, 1)
	}
	if err != nil {
		return nil, fmt.Errorf("summing rewards to returns: %w", err)
	}
	out := make([]float64, len(d.Weights))
	ahead, last := 0.0, true
	for t := len(out) - 1; t >= 0; t-- {
		if d.Weights[t] == 0 {
			continue
		}
		now := 0.0
		if klCoef != 0 {
			now = -float64(klCoef * (d.OldLogprobs[t] - d.RefLogprobs[t]))
		}
		if last {
			now += reward
			last = false
		}
		ahead = now + float64(gamma*ahead)
		out[t] = ahead
	}
	return out, nil
}

// Whiten returns (x − mean) / √(variance + BatchEps) of the trained positions of a batch, the variance of a sample, and 0
// elsewhere; everywhere 0 where fewer than 2 positions are trained. returns is [B][T] as step. Source: as Returns.
func Whiten(returns [][]float64, step []Datum) ([][]float64, error) {
	if err := check(returns, step); err != nil {
		return nil, fmt.Errorf("whitening returns: %w", err)
	}
	sum, n := 0.0, 0
	each(step, func(i, t int) { sum += returns[i][t]; n++ })
	out := zeros(step)
	if n < 2 {
		return out, nil
	}
	mean, squares := sum/float64(n), 0.0
	each(step, func(i, t int) { squares += float64((returns[i][t] - mean) * (returns[i][t] - mean)) })
	deviation := math.Sqrt(squares/float64(n-1) + BatchEps)
	each(step, func(i, t int) { out[i][t] = (returns[i][t] - mean) / deviation })
	return out, nil
}

// each calls f at the trained positions of a step, in order.
func each(step []Datum, f func(i, t int)) {
	for i, d := range step {
		for t, w := range d.Weights {
			if w != 0 {
				f(i, t)
			}
		}
	}
}
