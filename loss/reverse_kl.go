package loss

import "cmp"

// The estimators of ReverseKL.
const (
	Score = "score" // e, with the gradient of REINFORCE
	K2    = "k2"    // ½e²
	K3    = "k3"    // e^−e + e − 1; its gradient pulls as forward KL does
)

// ReverseKL brings the model to a teacher on the model's own samples, from the log-ratio e = ℓ − τ of the sampled tokens.
// Source: on-policy distillation as in Gu et al. 2023 (arXiv 2306.08543); the estimators after Schulman 2020, Approximating
// KL divergence.
type ReverseKL struct {
	// Estimator of the divergence: score, k2 (the same on fresh samples) or k3.
	Estimator string `yaml:"estimator" validate:"oneof=score k2 k3"`
	// IsCorrection multiplies by the ratio of the weights now to those that sampled.
	IsCorrection bool `yaml:"is_correction" default:"false"`

	// Reduction is loss.reduction of the recipe: Sum, TokenMean or SequenceMean over the trained positions of the step.
	Reduction string `yaml:"-"`
}

func newReverseKL() *ReverseKL { return &ReverseKL{Estimator: Score, Reduction: TokenMean} }

// RowsLoop implements FromRows: what a teacher made of the tokens of rows is computed from scores, as preferences are.
func (l *ReverseKL) RowsLoop() Loop { return Preference }

// Reduced is l under a reduction: Sum, TokenMean or SequenceMean.
func (l ReverseKL) Reduced(reduction string) *ReverseKL {
	l.Reduction = reduction
	return &l
}

// Check implements Checker.
func (l *ReverseKL) Check() error {
	return cmp.Or(oneOf("estimator", l.Estimator, Score, K2, K3), oneOf("reduction", l.Reduction, Sum, TokenMean, SequenceMean))
}

// Eval implements Loss; step has TeacherLogprobs, and OldLogprobs under IsCorrection. The gradient by ℓ, before the
// reduction's factor and the correction, is e for score and k2, and 1 − e^(τ − ℓ) for k3 where |e| <= 10, else 0. Metrics:
// valid_tokens, reverse_kl_k1 (mean of e) and reverse_kl_k3. Errors as CrossEntropy.Eval.
func (l *ReverseKL) Eval(now [][]float64, step []Datum) (Result, error) {
	r, err := l.eval(now, step)
	return named("reverse_kl", r, err)
}

func (l *ReverseKL) eval(now [][]float64, step []Datum) (Result, error) {
	columns := []column{teacher}
	if l.IsCorrection {
		columns = append(columns, old)
	}
	if err := ready(l, now, step, columns...); err != nil {
		return Result{}, err
	}
	var sum1, sum3 float64
	tokens := 0
	r := Result{Grads: zeros(step)}
	scale := spread(l.Reduction, step, 0)
	for i, d := range step {
		for t, w := range d.Weights {
			if w == 0 {
				continue
			}
			e := now[i][t] - d.TeacherLogprobs[t]
			kl, slope := klToward(d.TeacherLogprobs[t], now[i][t])
			tokens++
			sum1 += e
			sum3 += kl
			value, grad := kl, slope
			switch l.Estimator {
			case Score:
				value, grad = e, e
			case K2:
				value, grad = e*e/2, e
			}
			factor := scale(i)
			if l.IsCorrection {
				factor *= clampedRatio(now[i][t] - d.OldLogprobs[t])
			}
			r.Value += float64(factor * value)
			r.Grads[i][t] = factor * grad
		}
	}
	r.Metrics = map[string]float64{
		"valid_tokens": float64(tokens), "reverse_kl_k1": share(sum1, tokens), "reverse_kl_k3": share(sum3, tokens),
	}
	return r.finite()
}
