package loss

import (
	"fmt"
	"math"
)

// check holds a step and its log-probabilities to what every loss relies on, so that no loss indexes past a slice.
func check(now [][]float64, step []Datum) error {
	if len(now) != len(step) {
		return fmt.Errorf("log-probabilities of %d sequences for a step of %d: %w", len(now), len(step), ErrInvalid)
	}
	if err := checkStep(step); err != nil {
		return err
	}
	for i, d := range step {
		if len(now[i]) != len(d.Weights) {
			return fmt.Errorf("sequence %d: %d log-probabilities, %d weights: %w", i, len(now[i]), len(d.Weights), ErrInvalid)
		}
	}
	return nil
}

// checkStep is the part of check that needs no log-probabilities.
func checkStep(step []Datum) error {
	if len(step) == 0 {
		return fmt.Errorf("an empty step: %w", ErrInvalid)
	}
	for i, d := range step {
		if err := d.check(); err != nil {
			return fmt.Errorf("sequence %d: %w", i, err)
		}
	}
	return nil
}

func (d Datum) check() error {
	switch n := len(d.Weights); {
	case d.Weights == nil:
		return fmt.Errorf("no weights: %w", ErrInvalid)
	case n == 0:
		return fmt.Errorf("no positions: %w", ErrInvalid)
	case d.Input != nil && len(d.Input) != n:
		return fmt.Errorf("%d input tokens, %d weights: %w", len(d.Input), n, ErrInvalid)
	case d.Targets != nil && len(d.Targets) != n:
		return fmt.Errorf("%d target tokens, %d weights: %w", len(d.Targets), n, ErrInvalid)
	}
	for t, w := range d.Weights {
		if !(w >= 0) || math.IsInf(w, 1) {
			return fmt.Errorf("position %d: weight %g, want a finite number of at least 0: %w", t, w, ErrInvalid)
		}
	}
	return nil
}
