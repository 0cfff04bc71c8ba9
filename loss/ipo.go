package loss

import "cmp"

// IPO is the squared distance of the gained margin from its goal, (h − 1/(2β))². Source: Azar et al. 2023 (arXiv
// 2310.12036), eq. 17; per token as in TRL, whose authors were told so by the paper's.
type IPO struct {
	// Beta sets the goal of the margin, 1/(2·beta).
	Beta float64 `yaml:"beta" validate:"gt=0"`
	// LengthNormalized takes means over tokens; false takes sums, as the paper writes it.
	LengthNormalized bool `yaml:"length_normalized"`
	// SFTWeight is the weight of the chosen side's own likelihood, its negative log-probability a token.
	SFTWeight float64 `yaml:"sft_weight" default:"0.0" validate:"gte=0"`
}

func newIPO() *IPO { return &IPO{Beta: 0.1, LengthNormalized: true} }

// UsesReference implements Referenced.
func (l *IPO) UsesReference() bool { return true }

// Check implements Checker.
func (l *IPO) Check() error {
	return cmp.Or(above("beta", l.Beta, 0), atLeast("sft_weight", l.SFTWeight, 0))
}

// Eval implements Loss; all else as DPO.Eval, with ipo_loss.
func (l *IPO) Eval(now [][]float64, step []Datum) (Result, error) {
	return pairs("ipo", l, now, step, referenced, func(c, r side, sums map[string]float64) verdict {
		nc, nr := lengths(l.LengthNormalized, c, r)
		x := c.gain()/nc - r.gain()/nr - 1/(2*l.Beta)
		v := verdict{x * x, 2 * x / nc, -2 * x / nr, l.Beta * c.gain(), l.Beta * r.gain()}
		return v.supervised(l.SFTWeight, c, sums)
	})
}
