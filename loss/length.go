package loss

import (
	"fmt"
	"slices"
)

// OverlongPenalty is added to the reward of a completion of so many tokens: 0 up to longest − buffer, falling to −1 at
// longest, −1 beyond. Source: the soft overlong punishment of DAPO, Yu et al. 2025 (arXiv 2503.14476), eq. 13. buffer is
// from 1 to longest; without one the penalty is a step.
func OverlongPenalty(length, longest, buffer int) float64 {
	switch {
	case length <= longest-buffer:
		return 0
	case length >= longest:
		return -1
	}
	return float64(longest-buffer-length) / float64(buffer)
}

// LengthRewards prefer the short among the completions of a prompt, [G]: from 0.5 for the shortest to −0.5 for the longest,
// for a wrong one at most 0, and 0 when all are equally long. Source: Kimi k1.5 (arXiv 2501.12599), section 2.3.3.
// ErrInvalid for unequal lengths of the slices.
func LengthRewards(lengths []int, correct []bool) ([]float64, error) {
	if len(lengths) != len(correct) {
		return nil, fmt.Errorf("rewarding lengths: %d lengths and %d verdicts: %w", len(lengths), len(correct), ErrInvalid)
	}
	out := make([]float64, len(lengths))
	if len(lengths) == 0 || slices.Max(lengths) == slices.Min(lengths) {
		return out, nil
	}
	least := slices.Min(lengths)
	spread := float64(slices.Max(lengths) - least)
	for i, n := range lengths {
		out[i] = 0.5 - float64(n-least)/spread
		if !correct[i] {
			out[i] = min(out[i], 0)
		}
	}
	return out, nil
}

// Untrained returns d with weights of 0 throughout: a completion that was cut is left out of the loss, while its reward
// still counts in its group. d keeps its own weights.
func (d Datum) Untrained() Datum {
	d.Weights = make([]float64, len(d.Weights))
	return d
}
