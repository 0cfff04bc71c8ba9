package loss

// CrossEntropy is the weighted negative log-likelihood of the targets, L = Σ −w·ℓ over every position of the step; it
// has no parameters. Weights are multipliers, so fractions count as fractions, and a sum over parts of a step is the
// sum over the step. Source: the service's documented CROSS_ENTROPY, which Tinker and SkyRL compute alike.
type CrossEntropy struct{}

// Eval implements Loss. The gradient by ℓ is −w. Metrics: valid_tokens (positions with a weight), weight_sum, and
// loss_per_weight (value over weight_sum, 0 when nothing has a weight). A position of weight 0 is left out whatever its
// log-probability is. ErrInvalid for an empty step, an empty sequence, unequal lengths, weights that are missing,
// negative or not finite; ErrNonFinite for a value or a gradient that is NaN, infinite or beyond float32.
func (l *CrossEntropy) Eval(now [][]float64, step []Datum) (Result, error) {
	r, err := l.eval(now, step)
	return named("cross_entropy", r, err)
}

func (l *CrossEntropy) eval(now [][]float64, step []Datum) (Result, error) {
	if err := ready(l, now, step); err != nil {
		return Result{}, err
	}
	var value, total float64
	valid := 0
	grads := zeros(step)
	for i, d := range step {
		for t, w := range d.Weights {
			if w == 0 {
				continue
			}
			// The conversion rounds the product, so that no platform fuses it with the sum and gives other bits.
			value -= float64(w * now[i][t])
			total += w
			valid++
			grads[i][t] = -w
		}
	}
	mean := 0.0
	if total > 0 {
		mean = value / total
	}
	return Result{Value: value, Grads: grads, Metrics: map[string]float64{
		"valid_tokens": float64(valid), "weight_sum": total, "loss_per_weight": mean,
	}}.finite()
}
