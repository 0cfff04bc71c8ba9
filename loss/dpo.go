package loss

import "cmp"

// The variants of DPO.
const (
	Sigmoid = "sigmoid" // as published
	Robust  = "robust"  // unbiased under labels that are swapped with the probability label_smoothing
)

// DPO is the logistic loss of how much more the chosen side has gained on the reference than the rejected one,
// −(1−ε)·logσ(x) − ε·logσ(−x), x = βh − γ, h = (S_c − R_c) − (S_r − R_r), S and R sums over tokens, or means. Source:
// Rafailov et al. 2023 (arXiv 2305.18290), eq. 7; smoothing after Mitchell 2023; the robust variant after Chowdhury et al.
// 2024 (arXiv 2403.00409); the margin γ after Amini et al. 2024 (arXiv 2402.10571), one for all pairs; the supervised term
// after Pang et al. 2024 (arXiv 2404.19733).
type DPO struct {
	// Beta is how hard the model is held to the reference: the lower, the further it may go.
	Beta float64 `yaml:"beta" validate:"gt=0"`
	// LabelSmoothing is the share of pairs that are taken to be labelled the wrong way round.
	LabelSmoothing float64 `yaml:"label_smoothing" default:"0.0" validate:"gte=0,lt=0.5"`
	// Variant is sigmoid, or robust, which differs only under label_smoothing.
	Variant string `yaml:"variant" validate:"oneof=sigmoid robust"`
	// Gamma is a margin that the rewards are to have.
	Gamma float64 `yaml:"gamma" default:"0.0" validate:"gte=0"`
	// LengthNormalized takes means over tokens instead of sums; beta is larger then, such as 2.
	LengthNormalized bool `yaml:"length_normalized" default:"false"`
	// SFTWeight is the weight of the chosen side's own likelihood, its negative log-probability a token.
	SFTWeight float64 `yaml:"sft_weight" default:"0.0" validate:"gte=0"`
}

func newDPO() *DPO { return &DPO{Beta: 0.1, Variant: Sigmoid} }

// UsesReference implements Referenced.
func (l *DPO) UsesReference() bool { return true }

// Check implements Checker.
func (l *DPO) Check() error {
	err := cmp.Or(above("beta", l.Beta, 0), oneOf("variant", l.Variant, Sigmoid, Robust), atLeast("gamma", l.Gamma, 0), atLeast("sft_weight", l.SFTWeight, 0))
	if err == nil && !(l.LabelSmoothing >= 0 && l.LabelSmoothing < 0.5) {
		err = fault("label_smoothing", "must be at least 0 and below 0.5, got %g", l.LabelSmoothing)
	}
	return err
}

// Eval implements Loss; step is pairs, chosen before rejected, and has RefLogprobs. The value is the mean over pairs.
// Metrics: dpo_loss, accuracy, margin, chosen_reward and rejected_reward, rewards being β(S − R);
// nll_loss under a sft_weight. ErrInvalid as CrossEntropy.Eval, and for an odd step, a pair of two groups, a side without any weight; ErrNonFinite as there.
func (l *DPO) Eval(now [][]float64, step []Datum) (Result, error) {
	right, wrong, over := 1-l.LabelSmoothing, l.LabelSmoothing, 1.0
	if l.Variant == Robust {
		wrong, over = -l.LabelSmoothing, 1-2*l.LabelSmoothing
	}
	return pairs("dpo", l, now, step, referenced, func(c, r side, sums map[string]float64) verdict {
		nc, nr := lengths(l.LengthNormalized, c, r)
		chosen, rejected := c.gain()/nc, r.gain()/nr
		x := float64(l.Beta*(chosen-rejected)) - l.Gamma
		value := -(float64(right*logSigmoid(x)) + float64(wrong*logSigmoid(-x))) / over
		grad := -l.Beta * (float64(right*sigmoid(-x)) - float64(wrong*sigmoid(x))) / over
		v := verdict{value, grad / nc, -grad / nr, l.Beta * chosen, l.Beta * rejected}
		return v.supervised(l.SFTWeight, c, sums)
	})
}
