package loss

// ImportanceSampling is the policy gradient corrected for weights that moved since sampling, L = Σ −A·r over the trained
// positions, r = e^clamp(ℓ − q, −20, 20); it has no parameters. Source: Tinker's importance_sampling; the clamp is xorl's.
type ImportanceSampling struct{}

// maxLogRatio keeps one token from overflowing a step.
const maxLogRatio = 20

func clampedRatio(x float64) float64 { return exp(clamp(x, -maxLogRatio, maxLogRatio)) }

// Eval implements Loss; step has OldLogprobs and Advantages. The gradient by ℓ is −A·r, also where the clamp is active.
// Metrics: valid_tokens, ratio_mean, ratio_min and ratio_max (absent when nothing is trained), kl_sample_train_k3
// (mean of e^Δ − Δ − 1, unclamped), entropy_sample (mean of −q). Errors as CrossEntropy.Eval.
func (l *ImportanceSampling) Eval(now [][]float64, step []Datum) (Result, error) {
	r, err := policy(l, now, step, clampedRatio, func(x token) (float64, float64) { return x.weighted(), x.weighted() })
	if err == nil {
		r, err = r.finite()
	}
	return named("importance_sampling", r, err)
}
