package loss

import "cmp"

// CISPO weighs the log-likelihood by a clamped ratio that is held constant, L = Σ −k·A·ℓ, k = clamp(r, low, high),
// r = e^(ℓ − q): a clipped token keeps its gradient. The value depends on ℓ itself and is no measure of progress.
// Source: MiniMax 2025 (arXiv 2506.13585), eq. 4, with absolute bounds and summed over tokens.
type CISPO struct {
	// ClipLowThreshold is the lower bound of the ratio itself; 0 leaves it open.
	ClipLowThreshold float64 `yaml:"clip_low_threshold" default:"0.0" validate:"gte=0"`
	// ClipHighThreshold is the upper bound of the ratio itself; at least clip_low_threshold.
	ClipHighThreshold float64 `yaml:"clip_high_threshold" validate:"gte=0"`
}

func newCISPO() *CISPO { return &CISPO{ClipLowThreshold: 0, ClipHighThreshold: 4} }

// Check implements Checker.
func (l *CISPO) Check() error {
	err := cmp.Or(atLeast("clip_low_threshold", l.ClipLowThreshold, 0), atLeast("clip_high_threshold", l.ClipHighThreshold, 0))
	if err == nil && l.ClipLowThreshold > l.ClipHighThreshold {
		err = fault("clip_low_threshold", "must be at most clip_high_threshold (%g), got %g", l.ClipHighThreshold, l.ClipLowThreshold)
	}
	return err
}

// Eval implements Loss; step has OldLogprobs and Advantages. The gradient by ℓ is −k·A. Metrics as
// ImportanceSampling.Eval, of the unclamped ratio, and clip_fraction (where k is not r). Errors as CrossEntropy.Eval.
func (l *CISPO) Eval(now [][]float64, step []Datum) (Result, error) {
	clipped := 0
	r, err := policy(l, now, step, exp, func(x token) (float64, float64) {
		k := clamp(x.ratio, l.ClipLowThreshold, l.ClipHighThreshold)
		if k != x.ratio {
			clipped++
		}
		grad := -k * x.advantage
		return float64(grad * x.now), grad
	})
	if err == nil {
		r.fraction("clip_fraction", clipped)
		r, err = r.finite()
	}
	return named("cispo", r, err)
}
