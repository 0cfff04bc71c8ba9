package schedule

import "math"

// Cosine falls along half a cosine. Source: Loshchilov and Hutter 2017 (arXiv 1608.03983), eq. 5 without restarts.
type Cosine struct{}

// Factor implements Schedule: (1 + cos πu) / 2, u the share of the shape that is behind.
func (*Cosine) Factor(step, steps int) float64 { return halfCosine(left(step, steps)) }

// halfCosine is (1 + cos π(1 − v)) / 2 in the form sin²(πv/2), which is above 0 for every v above 0, where the first form
// cancels to 0 near the end of a long run.
func halfCosine(v float64) float64 {
	s := math.Sin(math.Pi / 2 * v)
	return s * s
}
