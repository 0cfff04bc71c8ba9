package schedule

import (
	"fmt"
	"math"
)

// WarmupSteps returns the length of the warm-up in a run of total steps: *steps where it is given, also 0; else ratio ×
// total rounded to the nearest whole number (halves up), and at least 1 when ratio is above 0. It is an error when total is
// below 1, ratio is not in [0, 1], or the warm-up is negative or longer than the run.
func WarmupSteps(ratio float64, steps *int, total int) (int, error) {
	switch {
	case total < 1:
		return 0, fmt.Errorf("warm-up: a run of %d steps, want at least 1", total)
	case steps != nil && *steps < 0:
		return 0, fmt.Errorf("warm-up: warmup_steps is %d, want at least 0", *steps)
	case steps != nil && *steps > total:
		return 0, fmt.Errorf("warm-up: warmup_steps is %d, and the run has %d steps; shorten the warm-up or train longer", *steps, total)
	case steps != nil:
		return *steps, nil
	case !(ratio >= 0 && ratio <= 1):
		return 0, fmt.Errorf("warm-up: warmup_ratio is %g, want 0 to 1", ratio)
	case ratio == 0:
		return 0, nil
	}
	return max(1, int(math.Round(ratio*float64(total)))), nil
}
