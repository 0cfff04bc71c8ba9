package loss

import "fmt"

// AddKL returns the advantages of a step with a KL penalty inside, [B][T]: where a token is trained,
// A + coef·(mean − (q − ρ)), the mean of q − ρ over the trained tokens of the step, so that the penalty shifts no baseline.
// With a discount above 0 each token also bears the discounted penalties of the trained ones behind it. step has
// Advantages, OldLogprobs and RefLogprobs. drift is that mean, an estimate of the KL to the reference. Source: the
// incorporate_kl_penalty of tinker-cookbook. Errors are ErrInvalid.
func AddKL(step []Datum, coef, discount float64) (advantage [][]float64, drift float64, err error) {
	err = checkStep(step)
	if err == nil {
		err = needs(step, advantages, old, reference)
	}
	if err == nil {
		err = between("discount", discount, 0, 1)
	}
	if err == nil && beyondFloat32(coef) {
		err = fault("kl_coef", "must be finite, got %g", coef)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("adding the KL penalty to advantages: %w", err)
	}
	n := 0
	each(step, func(i, t int) { drift += step[i].OldLogprobs[t] - step[i].RefLogprobs[t]; n++ })
	drift = share(drift, n)
	advantage = zeros(step)
	for i, d := range step {
		behind := 0.0
		for t := len(d.Weights) - 1; t >= 0; t-- {
			if d.Weights[t] == 0 {
				continue
			}
			behind = float64(coef*(drift-(d.OldLogprobs[t]-d.RefLogprobs[t]))) + float64(discount*behind)
			advantage[i][t] = d.Advantages[t] + behind
		}
	}
	return advantage, drift, nil
}

// DistillAdvantage is −coef·(q − τ) at the trained positions of d, [T]: under importance_sampling it gives the update of
// ReverseKL's score in one request. d has OldLogprobs and TeacherLogprobs. Source: Lu 2025, On-policy distillation. Errors
// are ErrInvalid.
func DistillAdvantage(d Datum, coef float64) ([]float64, error) {
	step := []Datum{d}
	err := checkStep(step)
	if err == nil {
		err = needs(step, old, teacher)
	}
	if err == nil && beyondFloat32(coef) {
		err = fault("coef", "must be finite, got %g", coef)
	}
	if err != nil {
		return nil, fmt.Errorf("making advantages of a teacher: %w", err)
	}
	out := make([]float64, len(d.Weights))
	each(step, func(_, t int) { out[t] = -coef * (d.OldLogprobs[t] - d.TeacherLogprobs[t]) })
	return out, nil
}
