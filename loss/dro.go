package loss

// DRO is the policy gradient with a quadratic pull towards the weights that sampled, L = −Σ (A·ℓ − ½·beta·(ℓ − q)²). The
// pull acts on tokens of advantage 0 too, so what is not to be trained needs weight 0. Source: Tinker's dro, after Richemond
// et al. 2024 (arXiv 2405.19107).
type DRO struct {
	// Beta is the strength of the pull; it has no default, and Tinker's example has 0.05.
	Beta *float64 `yaml:"beta" null:"false" validate:"required,gte=0"`
}

// Check implements Checker.
func (l *DRO) Check() error {
	if l.Beta == nil {
		return fault("beta", "missing; dro has no default for it")
	}
	return atLeast("beta", *l.Beta, 0)
}

// Eval implements Loss; step has OldLogprobs and Advantages. The gradient by ℓ is −(A − beta·(ℓ − q)). Metrics as
// ImportanceSampling.Eval, of the unclamped ratio, and dro_quad_penalty (mean of ½·beta·(ℓ − q)²). Errors as
// CrossEntropy.Eval.
func (l *DRO) Eval(now [][]float64, step []Datum) (Result, error) {
	penalties, tokens := 0.0, 0
	r, err := policy(l, now, step, exp, func(x token) (float64, float64) {
		pull := float64(*l.Beta * x.logRatio())
		penalty := float64(pull*x.logRatio()) / 2
		penalties += penalty
		tokens++
		return penalty - float64(x.advantage*x.now), pull - x.advantage
	})
	if err == nil {
		r.Metrics["dro_quad_penalty"] = share(penalties, tokens)
		r, err = r.finite()
	}
	return named("dro", r, err)
}
