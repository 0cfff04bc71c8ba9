package schedule

import (
	"errors"
	"fmt"
	"math"
)

// Ramp is a whole schedule: Warmup steps up, then Shape, never under Floor.
//
// Step k, counted from 1, of T with k <= Warmup has peak × k / Warmup; a later one has the shape at k − 1 − Warmup of
// T − Warmup. So step Warmup + 1 has the peak, the end of the shape is where step T + 1 would be, and no step is spent on
// rate 0 at either end. A shape that does not start at the peak (one_cycle) is met where it starts.
//
// Floor is a share of the peak, and of what comes after warm-up; on its way up the warm-up passes below it. How a shape
// meets it depends on what its numbers mean:
//   - linear, cosine, cosine_with_restarts, polynomial and wsd fall to 0, and are scaled onto [floor, peak]: their end is
//     the floor, their form stays.
//   - constant, inverse_sqrt, step and piecewise name shares of the peak, which stay as they are; what would be below the
//     floor is the floor. Megatron-LM makes the same difference.
//   - exponential falls by the same factor each step, and the floor decides which: its end is the floor.
//   - one_cycle starts at its start_ratio, or at the floor where that is higher, and falls to the floor.
//
// A Ramp is plain data, safe for concurrent use.
type Ramp struct {
	Warmup int      // steps, 0 to T
	Floor  float64  // share of the peak, in [0, 1]
	Shape  Schedule // not nil
}

// placed is a shape that asks what stands around it, the warm-up or the floor. share returns the share of the peak,
// floor included, for step of steps as in Factor; steps + r.Warmup is the length of the run.
type placed interface {
	share(r Ramp, step, steps int) float64
}

// Rate returns the learning rate of 0-based step of steps; step == steps is where the shape ends, one past the last. It
// is in (0, peak], and at least Floor × peak after warm-up. The arguments are those that Rates accepts.
func (r Ramp) Rate(peak float64, step, steps int) float64 {
	k := max(step, 0) + 1
	if k <= r.Warmup {
		return peak * float64(r.share(0, max(steps-r.Warmup, 1))*(float64(k)/float64(r.Warmup)))
	}
	return peak * r.share(k-1-r.Warmup, steps-r.Warmup)
}

func (r Ramp) share(step, steps int) float64 {
	if p, ok := r.Shape.(placed); ok {
		return p.share(r, step, steps)
	}
	return r.above(r.Shape.Factor(step, steps))
}

// above scales a share of [0, 1] onto [Floor, 1]. The conversion keeps platforms from fusing the product into the sum.
func (r Ramp) above(share float64) float64 { return r.Floor + float64((1-r.Floor)*share) }

// Rates returns the learning rate of every step of a run, [steps]. It is an error when steps is below 1, Warmup is not
// in [0, steps], Floor is not in [0, 1], peak is not positive and finite, the shape does not fit the run, or a step would
// train at rate 0, where it would be paid for and teach nothing.
func (r Ramp) Rates(peak float64, steps int) ([]float64, error) {
	if err := r.fits(peak, steps); err != nil {
		return nil, fmt.Errorf("learning-rate schedule: %w", err)
	}
	rates := make([]float64, steps)
	for i := range rates {
		rates[i] = r.Rate(peak, i, steps)
		if !(rates[i] > 0) || math.IsInf(rates[i], 1) {
			return nil, fmt.Errorf("learning-rate schedule: step %d of %d would train at rate %g; a floor (min_lr_ratio above 0) keeps it above 0",
				i+1, steps, rates[i])
		}
	}
	return rates, nil
}

// fitter is a shape that can be too long for a run.
type fitter interface {
	fits(warmup, total int) error
}

func (r Ramp) fits(peak float64, steps int) error {
	switch {
	case r.Shape == nil:
		return errors.New("no shape")
	case !(peak > 0) || math.IsInf(peak, 1):
		return fmt.Errorf("peak rate %g, want a finite number above 0", peak)
	case steps < 1:
		return fmt.Errorf("a run of %d steps, want at least 1", steps)
	case r.Warmup < 0 || r.Warmup > steps:
		return fmt.Errorf("warm-up of %d steps in a run of %d", r.Warmup, steps)
	case !(r.Floor >= 0 && r.Floor <= 1):
		return fmt.Errorf("floor %g, want a share of the peak, 0 to 1", r.Floor)
	}
	if f, ok := r.Shape.(fitter); ok {
		return f.fits(r.Warmup, steps)
	}
	return nil
}
