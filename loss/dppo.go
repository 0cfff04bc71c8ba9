package loss

import "cmp"

// DPPO is the policy gradient without the tokens whose probability has moved too far in the direction of their advantage,
// L = Σ −A·r over the rest, r = e^(ℓ − q). The distance is e^ℓ − e^q, in probability and not in ratio, so that rare tokens
// may move. Source: the binary total-variation form of arXiv 2602.04879.
type DPPO struct {
	// DeltaLow is how far the probability of a token of negative advantage may have fallen.
	DeltaLow float64 `yaml:"delta_low" validate:"gte=0,lte=1"`
	// DeltaHigh is how far the probability of a token of positive advantage may have risen.
	DeltaHigh float64 `yaml:"delta_high" validate:"gte=0,lte=1"`
}

func newDPPO() *DPPO { return &DPPO{DeltaLow: 0.15, DeltaHigh: 0.15} }

// Check implements Checker.
func (l *DPPO) Check() error {
	return cmp.Or(between("delta_low", l.DeltaLow, 0, 1), between("delta_high", l.DeltaHigh, 0, 1))
}

// Eval implements Loss; step has OldLogprobs and Advantages. The gradient by ℓ is −A·r, and 0 for a token that is left
// out. Metrics as ImportanceSampling.Eval, and mask_fraction, mask_fraction_high and mask_fraction_low: the share of tokens
// left out, for either reason. Errors as CrossEntropy.Eval.
func (l *DPPO) Eval(now [][]float64, step []Datum) (Result, error) {
	var low, high int
	r, err := policy(l, now, step, exp, func(x token) (float64, float64) {
		moved := exp(x.now) - exp(x.old)
		switch {
		case x.advantage > 0 && moved > l.DeltaHigh:
			high++
			return 0, 0
		case x.advantage < 0 && -moved > l.DeltaLow:
			low++
			return 0, 0
		}
		return x.weighted(), x.weighted()
	})
	if err == nil {
		r.fraction("mask_fraction", low+high)
		r.fraction("mask_fraction_high", high)
		r.fraction("mask_fraction_low", low)
		r, err = r.finite()
	}
	return named("dppo", r, err)
}
