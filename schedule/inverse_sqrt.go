package schedule

import "math"

// InverseSqrt falls as one over the square root of the step: step W + 1 + j has √(W / (W + j)) of the peak, W the
// warm-up. Without warm-up W is 10,000, as in transformers' get_inverse_sqrt_schedule, which sets it alike. It does not
// know how long the run is and does not end at the floor. Source: Vaswani et al. 2017 (arXiv 1706.03762), eq. 3.
type InverseSqrt struct{}

const inverseSqrtScale = 10_000

// Factor implements Schedule: the share of the peak without a warm-up.
func (s *InverseSqrt) Factor(step, steps int) float64 { return s.share(Ramp{}, step, steps) }

func (*InverseSqrt) share(r Ramp, step, _ int) float64 {
	scale := float64(r.Warmup)
	if r.Warmup == 0 {
		scale = inverseSqrtScale
	}
	return max(r.Floor, math.Sqrt(scale/(scale+float64(max(step, 0)))))
}
