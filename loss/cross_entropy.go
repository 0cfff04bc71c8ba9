package loss

import (
	"fmt"
	"math"
)

// CrossEntropy is the weighted negative log-likelihood of the targets, L = Σ −w·ℓ over every position of the step; it
// has no parameters. Weights are multipliers, so fractions count as fractions, and a sum over parts of a step is the
// sum over the step. Source: the service's documented CROSS_ENTROPY, which Tinker and SkyRL compute alike.
type CrossEntropy struct{}

// Eval implements Loss. The gradient by ℓ is −w. Metrics: valid_tokens (positions with a weight), weight_sum, and
// loss_per_weight (value over weight_sum, 0 when nothing has a weight). A position of weight 0 is left out whatever its
// log-probability is. ErrInvalid for an empty step, an empty sequence, unequal lengths, weights that are missing,
// negative or not finite; ErrNonFinite for a value or a gradient that is NaN, infinite or beyond float32.
func (*CrossEntropy) Eval(now [][]float64, step []Datum) (Result, error) {
	if err := check(now, step); err != nil {
		return Result{}, fmt.Errorf("cross_entropy: %w", err)
	}
	var value, total float64
	valid := 0
	grads := make([][]float64, len(step))
	for i, d := range step {
		grads[i] = make([]float64, len(d.Weights))
		for t, w := range d.Weights {
			if w == 0 {
				continue
			}
			if beyondFloat32(w) || beyondFloat32(now[i][t]) {
				return Result{}, fmt.Errorf("cross_entropy: sequence %d, position %d: log-probability %g with weight %g: %w",
					i, t, now[i][t], w, ErrNonFinite)
			}
			// The conversion rounds the product, so that no platform fuses it with the sum and gives other bits.
			value -= float64(w * now[i][t])
			total += w
			valid++
			grads[i][t] = -w
		}
	}
	if beyondFloat32(value) {
		return Result{}, fmt.Errorf("cross_entropy: the loss of the step is %g: %w", value, ErrNonFinite)
	}
	mean := 0.0
	if total > 0 {
		mean = value / total
	}
	return Result{Value: value, Grads: grads, Metrics: map[string]float64{
		"valid_tokens": float64(valid), "weight_sum": total, "loss_per_weight": mean,
	}}, nil
}

// beyondFloat32 tells NaN, the infinities, and what the service's float32 cannot hold.
func beyondFloat32(x float64) bool { return !(math.Abs(x) <= math.MaxFloat32) }
