package loss

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Fault is a parameter that breaks a bound. errors.Is finds ErrInvalid in it.
type Fault struct {
	Key string // as in the recipe: clip_low_threshold
	Msg string
}

func (f *Fault) Error() string { return f.Key + ": " + f.Msg }

// Unwrap makes it an ErrInvalid.
func (f *Fault) Unwrap() error { return ErrInvalid }

// Checker is a Loss that has parameters. Check returns nil or a *Fault; Eval asks it first, so that bounds hold wherever
// the parameters came from.
type Checker interface{ Check() error }

func fault(key, format string, a ...any) error { return &Fault{key, fmt.Sprintf(format, a...)} }

// above holds v to finite numbers above low.
func above(key string, v, low float64) error {
	if v > low && !math.IsInf(v, 1) {
		return nil
	}
	return fault(key, "must be above %g and finite, got %g", low, v)
}

// atLeast holds v to finite numbers from low on.
func atLeast(key string, v, low float64) error {
	if v >= low && !math.IsInf(v, 1) {
		return nil
	}
	return fault(key, "must be at least %g and finite, got %g", low, v)
}

// between holds v to [low, high].
func between(key string, v, low, high float64) error {
	if v >= low && v <= high {
		return nil
	}
	return fault(key, "must be from %g to %g, got %g", low, high, v)
}

func oneOf(key, v string, names ...string) error {
	if slices.Contains(names, v) {
		return nil
	}
	return fault(key, "%q is not one of %s", v, strings.Join(names, ", "))
}
