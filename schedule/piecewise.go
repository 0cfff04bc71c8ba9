package schedule

import (
	"fmt"
	"math"
)

// Piecewise goes in straight lines from point to point. Before the first point it comes from the peak at the first step
// after warm-up; after the last one it stays. Points inside the warm-up give way to it. numpy.interp over the points is
// the same curve.
type Piecewise struct {
	// Points are [step, ratio]: the step of the run, warm-up included, counted from 1 as people see it, ascending (0 is
	// where a step before the first would be); and the share of the peak there, 0 to 1. Required.
	Points [][2]float64 `yaml:"points" validate:"required,min=1"`
}

// Factor implements Schedule: the share of the peak without a warm-up.
func (p *Piecewise) Factor(step, steps int) float64 { return p.share(Ramp{}, step, steps) }

func (p *Piecewise) share(r Ramp, step, _ int) float64 {
	k := float64(r.Warmup + max(step, 0) + 1)
	before := [2]float64{float64(r.Warmup + 1), 1}
	for _, point := range p.Points {
		if k < point[0] {
			return max(r.Floor, between(before, point, k))
		}
		before = point
	}
	if len(p.Points) == 0 {
		return 1
	}
	return max(r.Floor, before[1])
}

// between is the line from a to b at k, a[0] <= k < b[0]. Both products round towards a value between a[1] and b[1].
func between(a, b [2]float64, k float64) float64 {
	u := (k - a[0]) / (b[0] - a[0])
	return min(max(a[1]+float64((b[1]-a[1])*u), min(a[1], b[1])), max(a[1], b[1]))
}

func pointKey(i, member int) string { return fmt.Sprintf("points.%d.%d", i, member) }

// Check implements Checker: whole, ascending steps of at least 0 and ratios in [0, 1], every fault of every point.
func (p *Piecewise) Check() error {
	var f Faults
	for i, point := range p.Points {
		step, ratio := point[0], point[1]
		switch {
		case step != math.Trunc(step) || step < 0 || step > 1<<53:
			f.add(pointKey(i, 0), "%g is not a step, want a whole number of at least 0", step)
		case i > 0 && step <= p.Points[i-1][0]:
			f.add(pointKey(i, 0), "step %.0f does not come after step %.0f", step, p.Points[i-1][0])
		}
		if !(ratio >= 0 && ratio <= 1) {
			f.add(pointKey(i, 1), "%g is not a share of the peak rate, want 0 to 1", ratio)
		}
	}
	return f.err()
}
