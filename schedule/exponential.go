package schedule

import "math"

// Exponential falls by the same factor every step. The floor decides which: it is reached where step T + 1 would be.
// Without a floor the end is 0.01 of the peak (our choice: two decades), as a geometric fall never comes to 0.
type Exponential struct{}

const exponentialEnd = 0.01

// Factor implements Schedule: 0.01^u, u the share of the shape that is behind.
func (e *Exponential) Factor(step, steps int) float64 { return e.share(Ramp{}, step, steps) }

func (*Exponential) share(r Ramp, step, steps int) float64 {
	end := r.Floor
	if end == 0 {
		end = exponentialEnd
	}
	// A power may round to the wrong side of the end.
	return max(end, math.Pow(end, gone(step, steps)))
}
