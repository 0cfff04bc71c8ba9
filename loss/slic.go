package loss

import "cmp"

// SLiC calibrates likelihoods to a margin without a reference, max(0, δ − S_c + S_r) − λ·S_c, the second term holding on to
// the chosen side. Source: Zhao et al. 2023 (arXiv 2305.10425), eq. 4, which regularises on a supervised target and leaves
// both parameters to tuning.
type SLiC struct {
	// Delta is the margin of log-probability.
	Delta float64 `yaml:"delta" validate:"gte=0"`
	// Lambda is the weight of the chosen side's own likelihood.
	Lambda float64 `yaml:"lambda" default:"0.0" validate:"gte=0"`
	// LengthNormalized takes means over tokens instead of sums.
	LengthNormalized bool `yaml:"length_normalized" default:"false"`
}

func newSLiC() *SLiC { return &SLiC{Delta: 1} }

// Check implements Checker.
func (l *SLiC) Check() error {
	return cmp.Or(atLeast("delta", l.Delta, 0), atLeast("lambda", l.Lambda, 0))
}

// Eval implements Loss; step is pairs, chosen before rejected, without a reference. Metrics as DPO.Eval with slic_loss,
// rewards being S, or S per weight. Errors as DPO.Eval.
func (l *SLiC) Eval(now [][]float64, step []Datum) (Result, error) {
	return pairs("slic", l, now, step, nil, func(c, r side, _ map[string]float64) verdict {
		nc, nr := lengths(l.LengthNormalized, c, r)
		chosen, rejected := c.now/nc, r.now/nr
		v := verdict{-float64(l.Lambda * chosen), -l.Lambda / nc, 0, chosen, rejected}
		if short := l.Delta - chosen + rejected; short > 0 {
			v.value += short
			v.chosenGrad -= 1 / nc
			v.rejectedGrad = 1 / nr
		}
		return v
	})
}
