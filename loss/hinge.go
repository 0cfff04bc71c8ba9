package loss

import "cmp"

// Hinge stops at a margin, max(0, 1 − βh), h as in DPO. Source: Liu et al. 2023 (arXiv 2309.06657), the hinge of RSO, with a
// reference; TRL's hinge.
type Hinge struct {
	// Beta scales the gained margin; the loss ends where it reaches 1.
	Beta float64 `yaml:"beta" validate:"gt=0"`
	// SFTWeight is the weight of the chosen side's own likelihood, its negative log-probability a token.
	SFTWeight float64 `yaml:"sft_weight" default:"0.0" validate:"gte=0"`
}

func newHinge() *Hinge { return &Hinge{Beta: 0.1} }

// UsesReference implements Referenced.
func (l *Hinge) UsesReference() bool { return true }

// Check implements Checker.
func (l *Hinge) Check() error {
	return cmp.Or(above("beta", l.Beta, 0), atLeast("sft_weight", l.SFTWeight, 0))
}

// Eval implements Loss; all else as DPO.Eval, with hinge_loss. At the kink the gradient is 0.
func (l *Hinge) Eval(now [][]float64, step []Datum) (Result, error) {
	return pairs("hinge", l, now, step, referenced, func(c, r side, sums map[string]float64) verdict {
		left := 1 - float64(l.Beta*(c.gain()-r.gain()))
		chosen, rejected := l.Beta*c.gain(), l.Beta*r.gain()
		v := opposed(left, -l.Beta, chosen, rejected)
		if left <= 0 {
			v = opposed(0, 0, chosen, rejected)
		}
		return v.supervised(l.SFTWeight, c, sums)
	})
}
