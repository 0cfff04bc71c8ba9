package loss

import (
	"fmt"
	"math"
)

// How a step's weights are scaled before they are sent; the words of loss.reduction.
const (
	Sum          = "sum"           // as they are: long sequences and large steps weigh more
	TokenMean    = "token_mean"    // w / Σw over the step: every unit of weight counts alike
	SequenceMean = "sequence_mean" // w / Σw of its sequence, over the sequences that have any: every sequence counts alike
)

// Reduce returns step with its weights scaled as how says. It looks at the whole optimiser step, so the step may be
// split over requests afterwards in any way: the gradients add up to the same. step is not changed; the result has its
// own Weights, and shares Input and Targets. ErrInvalid for a how that is none of the constants, for what a loss would
// refuse, for a step without any weight (it would be paid for and teach nothing), and for weights whose sum is infinite.
func Reduce(step []Datum, how string) ([]Datum, error) {
	if err := checkStep(step); err != nil {
		return nil, fmt.Errorf("scaling the weights of a step: %w", err)
	}
	sums, trained, total := weigh(step)
	switch {
	case trained == 0:
		return nil, fmt.Errorf("scaling the weights of a step: none of its %d sequences has a weight above 0: %w", len(step), ErrInvalid)
	case math.IsInf(total, 1):
		return nil, fmt.Errorf("scaling the weights of a step: they sum to more than a float64 holds: %w", ErrInvalid)
	}
	scale, err := scaleOf(how, sums, trained, total)
	if err != nil {
		return nil, err
	}
	out := make([]Datum, len(step))
	for i, d := range step {
		out[i] = d
		out[i].Weights = make([]float64, len(d.Weights))
		for t, w := range d.Weights {
			if w != 0 {
				out[i].Weights[t] = scale(i, w)
			}
		}
	}
	return out, nil
}

// weigh sums the weights of each sequence, [B], and counts the sequences that have any.
func weigh(step []Datum) (sums []float64, trained int, total float64) {
	sums = make([]float64, len(step))
	for i, d := range step {
		for _, w := range d.Weights {
			sums[i] += w
		}
		if sums[i] > 0 {
			trained++
		}
		total += sums[i]
	}
	return sums, trained, total
}

func scaleOf(how string, sums []float64, trained int, total float64) (func(i int, w float64) float64, error) {
	switch how {
	case Sum:
		return func(_ int, w float64) float64 { return w }, nil
	case TokenMean:
		return func(_ int, w float64) float64 { return w / total }, nil
	case SequenceMean:
		return func(i int, w float64) float64 { return w / sums[i] / float64(trained) }, nil
	}
	return nil, fmt.Errorf("scaling the weights of a step: %q is not a reduction; one of %s, %s, %s: %w", how, Sum, TokenMean, SequenceMean, ErrInvalid)
}
