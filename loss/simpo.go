package loss

import "cmp"

// SimPO compares mean log-probabilities with a margin and without a reference, −logσ(β(S_c/n_c − S_r/n_r) − γ).
// Source: Meng et al. 2024 (arXiv 2405.14734), eq. 6.
type SimPO struct {
	// Beta scales the mean log-probabilities; its authors recommend 2 to 10.
	Beta float64 `yaml:"beta" validate:"gt=0"`
	// Gamma is the margin that the rewards are to have; its authors recommend up to beta.
	Gamma float64 `yaml:"gamma" validate:"gte=0"`
	// SFTWeight is the weight of the chosen side's own likelihood, its negative log-probability a token.
	SFTWeight float64 `yaml:"sft_weight" default:"0.0" validate:"gte=0"`
}

func newSimPO() *SimPO { return &SimPO{Beta: 2, Gamma: 0.5} }

// Check implements Checker.
func (l *SimPO) Check() error {
	return cmp.Or(above("beta", l.Beta, 0), atLeast("gamma", l.Gamma, 0), atLeast("sft_weight", l.SFTWeight, 0))
}

// Eval implements Loss; step is pairs, chosen before rejected, without a reference. Metrics as DPO.Eval with simpo_loss,
// rewards being β·S/n. Errors as DPO.Eval.
func (l *SimPO) Eval(now [][]float64, step []Datum) (Result, error) {
	return pairs("simpo", l, now, step, nil, func(c, r side, sums map[string]float64) verdict {
		chosen, rejected := float64(l.Beta*c.mean()), float64(l.Beta*r.mean())
		z := chosen - rejected - l.Gamma
		g := l.Beta * sigmoid(-z)
		v := verdict{-logSigmoid(z), -g / c.weight, g / r.weight, chosen, rejected}
		return v.supervised(l.SFTWeight, c, sums)
	})
}
