package loss

import "cmp"

// PPO is the clipped policy gradient, L = Σ max(−r·A, −clamp(r, low, high)·A), r = e^(ℓ − q).
// Source: Schulman et al. 2017 (arXiv 1707.06347), eq. 7, summed over tokens.
type PPO struct {
	// ClipLowThreshold is the lower bound of the ratio itself: 0.8 where others write 0.2.
	ClipLowThreshold float64 `yaml:"clip_low_threshold" validate:"gte=0,lte=1"`
	// ClipHighThreshold is the upper bound of the ratio itself: 1.2 where others write 0.2.
	ClipHighThreshold float64 `yaml:"clip_high_threshold" validate:"gte=1"`
}

func newPPO() *PPO { return &PPO{ClipLowThreshold: 0.8, ClipHighThreshold: 1.2} }

// Check implements Checker.
func (l *PPO) Check() error { return clipBounds(l.ClipLowThreshold, l.ClipHighThreshold) }

func clipBounds(low, high float64) error {
	return cmp.Or(between("clip_low_threshold", low, 0, 1), atLeast("clip_high_threshold", high, 1))
}

// Eval implements Loss; step has OldLogprobs and Advantages. The gradient by ℓ is −A·r, and 0 where the token is clipped:
// A > 0 and r above the upper bound, or A < 0 and r below the lower. Metrics as ImportanceSampling.Eval, of the unclamped
// ratio, and pg_clipfrac. Errors as CrossEntropy.Eval.
func (l *PPO) Eval(now [][]float64, step []Datum) (Result, error) {
	clipped := 0
	r, err := policy(l, now, step, exp, func(x token) (float64, float64) {
		if x.clipped(l.ClipLowThreshold, l.ClipHighThreshold) {
			clipped++
		}
		return x.surrogate(l.ClipLowThreshold, l.ClipHighThreshold)
	})
	if err == nil {
		r.fraction("pg_clipfrac", clipped)
		r, err = r.finite()
	}
	return named("ppo", r, err)
}
