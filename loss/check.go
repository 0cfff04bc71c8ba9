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
		for t, w := range d.Weights {
			if w != 0 && beyondFloat32(now[i][t]) {
				return fmt.Errorf("sequence %d, position %d: log-probability %g with weight %g: %w", i, t, now[i][t], w, ErrNonFinite)
			}
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

// column is a slice of a Datum that a loss reads beside the weights.
type column struct {
	name string
	of   func(*Datum) []float64
}

// The columns.
var (
	advantages = column{"advantages", func(d *Datum) []float64 { return d.Advantages }}
	old        = column{"log-probabilities of sampling", func(d *Datum) []float64 { return d.OldLogprobs }}
	reference  = column{"log-probabilities of the reference", func(d *Datum) []float64 { return d.RefLogprobs }}
	teacher    = column{"log-probabilities of the teacher", func(d *Datum) []float64 { return d.TeacherLogprobs }}
)

// needs holds a checked step to the columns that a loss reads: one value a position, finite where the weight is not 0.
func needs(step []Datum, columns ...column) error {
	for i := range step {
		for _, c := range columns {
			values, weights := c.of(&step[i]), step[i].Weights
			if len(values) != len(weights) {
				return fmt.Errorf("sequence %d: %d %s, %d weights: %w", i, len(values), c.name, len(weights), ErrInvalid)
			}
			for t, v := range values {
				if weights[t] != 0 && beyondFloat32(v) {
					return fmt.Errorf("sequence %d, position %d: %g among the %s, want a finite number: %w", i, t, v, c.name, ErrInvalid)
				}
			}
		}
	}
	return nil
}

// ready is everything that Eval asks before it computes.
func ready(l Loss, now [][]float64, step []Datum, columns ...column) error {
	if c, ok := l.(Checker); ok {
		if err := c.Check(); err != nil {
			return err
		}
	}
	if err := checkStep(step); err != nil {
		return err
	}
	if err := needs(step, columns...); err != nil {
		return err
	}
	return check(now, step)
}

// beyondFloat32 tells NaN, the infinities, and what the service's float32 cannot hold.
func beyondFloat32(x float64) bool { return !(math.Abs(x) <= math.MaxFloat32) }
