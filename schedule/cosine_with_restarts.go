package schedule

import "math/bits"

// CosineWithRestarts is several half cosines of equal length, each from the peak to the floor. Source: Loshchilov and
// Hutter 2017 (arXiv 1608.03983), as transformers' get_cosine_with_hard_restarts_schedule_with_warmup has it.
type CosineWithRestarts struct {
	// NumCycles is the number of half cosines; 1 (the default) is cosine.
	NumCycles int `yaml:"num_cycles" validate:"gte=1"`
}

// Factor implements Schedule: (1 + cos π(n·u mod 1)) / 2, u the share of the shape that is behind.
func (c *CosineWithRestarts) Factor(step, steps int) float64 {
	if step <= 0 || step >= steps || c.NumCycles < 1 {
		return halfCosine(left(step, steps))
	}
	// In whole numbers, so that a restart falls on its step and not a rounding error beside it; 128 bits wide.
	high, low := bits.Mul64(uint64(c.NumCycles), uint64(step))
	return halfCosine(left(int(bits.Rem64(high, low, uint64(steps))), steps))
}
