package schedule

import "math"

// Step drops at equal distances. Source: PyTorch's StepLR.
type Step struct {
	// Every is how many steps after warm-up keep a rate; required.
	Every int `yaml:"every" validate:"required,gte=1"`
	// Gamma is what a drop multiplies the rate by; 0.1 by default, as in PyTorch.
	Gamma float64 `yaml:"gamma" validate:"gt=0,lte=1"`
}

// Factor implements Schedule: gamma^⌊step / every⌋.
func (s *Step) Factor(step, _ int) float64 {
	return math.Pow(s.Gamma, float64(max(step, 0)/max(s.Every, 1)))
}

func (s *Step) share(r Ramp, step, steps int) float64 { return max(r.Floor, s.Factor(step, steps)) }
