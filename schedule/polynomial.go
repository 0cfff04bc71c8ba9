package schedule

import "math"

// Polynomial falls as a power of what is left. Source: transformers' get_polynomial_decay_schedule_with_warmup, whose
// end is the floor here.
type Polynomial struct {
	// Power bends the line: 1 (the default) is linear, 2 falls fast first, 0.5 late.
	Power float64 `yaml:"power" validate:"gt=0"`
}

// Factor implements Schedule: (1 − u)^power, u the share of the shape that is behind.
func (p *Polynomial) Factor(step, steps int) float64 { return math.Pow(left(step, steps), p.Power) }

// Check implements Checker: an infinite power passes gt=0.
func (p *Polynomial) Check() error {
	var f Faults
	if !(p.Power > 0) || math.IsInf(p.Power, 1) {
		f.add("power", "%g, want a finite number above 0", p.Power)
	}
	return f.err()
}
