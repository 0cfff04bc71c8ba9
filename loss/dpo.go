package loss

import "cmp"

// The variants of DPO.
const (
	Sigmoid = "sigmoid" // as published
	Robust  = "robust"  // unbiased under labels that are swapped with the probability label_smoothing
)

// DPO is the logistic loss of how much more the chosen side has gained on the reference than the rejected one,
// −(1−ε)·logσ(βh) − ε·logσ(−βh), h = (S_c − R_c) − (S_r − R_r), S and R sums over tokens. Source: Rafailov et al. 2023
// (arXiv 2305.18290), eq. 7; smoothing after Mitchell 2023; the robust variant after Chowdhury et al. 2024 (arXiv
// 2403.00409).
type DPO struct {
	// Beta is how hard the model is held to the reference: the lower, the further it may go.
	Beta float64 `yaml:"beta" validate:"gt=0"`
	// LabelSmoothing is the share of pairs that are taken to be labelled the wrong way round.
	LabelSmoothing float64 `yaml:"label_smoothing" default:"0.0" validate:"gte=0,lt=0.5"`
	// Variant is sigmoid, or robust, which differs only under label_smoothing.
	Variant string `yaml:"variant" validate:"oneof=sigmoid robust"`
}

func newDPO() *DPO { return &DPO{Beta: 0.1, Variant: Sigmoid} }

// UsesReference implements Referenced.
func (l *DPO) UsesReference() bool { return true }

// Check implements Checker.
func (l *DPO) Check() error {
	err := cmp.Or(above("beta", l.Beta, 0), oneOf("variant", l.Variant, Sigmoid, Robust))
	if err == nil && !(l.LabelSmoothing >= 0 && l.LabelSmoothing < 0.5) {
		err = fault("label_smoothing", "must be at least 0 and below 0.5, got %g", l.LabelSmoothing)
	}
	return err
}

// Eval implements Loss; step is pairs, chosen before rejected, and has RefLogprobs. The value is the mean over pairs.
// Metrics: dpo_loss, accuracy, margin, chosen_reward and rejected_reward, rewards being β(S − R). ErrInvalid as
// CrossEntropy.Eval, and for an odd step, a pair of two groups, a side without any weight; ErrNonFinite as there.
func (l *DPO) Eval(now [][]float64, step []Datum) (Result, error) {
	right, wrong, over := 1-l.LabelSmoothing, l.LabelSmoothing, 1.0
	if l.Variant == Robust {
		wrong, over = -l.LabelSmoothing, 1-2*l.LabelSmoothing
	}
	return pairs("dpo", l, now, step, referenced, func(c, r side, _ map[string]float64) verdict {
		x := float64(l.Beta * (c.gain() - r.gain()))
		value := -(float64(right*logSigmoid(x)) + float64(wrong*logSigmoid(-x))) / over
		grad := -l.Beta * (float64(right*sigmoid(-x)) - float64(wrong*sigmoid(x))) / over
		return opposed(value, grad, l.Beta*c.gain(), l.Beta*r.gain())
	})
}
