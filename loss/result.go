package loss

import (
	"fmt"
	"math"
)

// zeros is a gradient of nothing, [B][T].
func zeros(step []Datum) [][]float64 {
	grads := make([][]float64, len(step))
	for i, d := range step {
		grads[i] = make([]float64, len(d.Weights))
	}
	return grads
}

// finite refuses a result that the service's float32 cannot hold, and drops the metrics that are no number: a ratio of a
// sequence far from its policy overflows where the loss, clipped, does not.
func (r Result) finite() (Result, error) {
	if beyondFloat32(r.Value) {
		return Result{}, fmt.Errorf("the loss of the step is %g: %w", r.Value, ErrNonFinite)
	}
	for i, row := range r.Grads {
		for t, g := range row {
			if beyondFloat32(g) {
				return Result{}, fmt.Errorf("sequence %d, position %d: the gradient is %g: %w", i, t, g, ErrNonFinite)
			}
		}
	}
	for name, v := range r.Metrics {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			delete(r.Metrics, name)
		}
	}
	return r, nil
}

// named puts the loss's name in front of an error.
func named(name string, r Result, err error) (Result, error) {
	if err != nil {
		return Result{}, fmt.Errorf("%s: %w", name, err)
	}
	return r, nil
}

// share is a over n, 0 of nothing.
func share(a float64, n int) float64 {
	if n == 0 {
		return 0
	}
	return a / float64(n)
}
