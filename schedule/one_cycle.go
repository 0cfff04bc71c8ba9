package schedule

import "math"

// OneCycle rises from StartRatio to the peak over the first 0.3 of the steps, then falls to the floor, both along half a
// cosine. Its rise is a warm-up of its own; one before it rises to StartRatio. Source: Smith and Topin 2019 (arXiv
// 1708.07120), form and defaults as in PyTorch's OneCycleLR (div_factor 25, pct_start 0.3).
type OneCycle struct {
	// StartRatio is the share of the peak that the cycle starts at; 0.04 by default.
	StartRatio float64 `yaml:"start_ratio" validate:"gt=0,lte=1"`
}

const oneCycleRise = 0.3

// Factor implements Schedule: StartRatio at step 0, 1 after a rise of round(0.3 × steps), 0 at the end.
func (c *OneCycle) Factor(step, steps int) float64 { return c.share(Ramp{}, step, steps) }

func (c *OneCycle) share(r Ramp, step, steps int) float64 {
	rise := int(math.Round(oneCycleRise * float64(steps)))
	if step >= rise {
		return r.above(halfCosine(left(step-rise, steps-rise)))
	}
	start := max(c.StartRatio, r.Floor)
	return start + float64((1-start)*halfCosine(gone(step, rise)))
}
