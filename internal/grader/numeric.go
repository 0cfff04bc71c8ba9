package grader

import (
	"cmp"
	"context"
	"math/big"
	"strconv"

	"trainer/internal/grader/answer"
)

// Numeric pays 1 where the answer is a number within the tolerance of the target's, and 0 otherwise. The arithmetic is exact.
type Numeric struct {
	Scope
	Cut
	// Tolerance is how far the answer may be off.
	Tolerance float64 `yaml:"tolerance" default:"0.0" validate:"gte=0"`
	// RelTolerance is the same as a share of the target; the larger of the two counts.
	RelTolerance float64 `yaml:"rel_tolerance" default:"0.0" validate:"gte=0"`
	// Units: lenient lets one side lack its unit, strict wants the same, ignore looks at none. Nothing is converted.
	Units string `yaml:"units" validate:"oneof=lenient strict ignore"`
	// Percent: lenient also takes the bare number where one side lacks the sign, strict takes n % for n/100 alone.
	Percent string `yaml:"percent" validate:"oneof=lenient strict"`
}

func newNumeric() *Numeric {
	return &Numeric{Scope: newScope(AfterReasoning), Cut: Cut{answer.Auto, answer.Marker}, Units: "lenient", Percent: "lenient"}
}

// Check implements Checker.
func (g *Numeric) Check() error { return cmp.Or(g.Scope.check(), g.Cut.check()) }

// CheckTarget implements Targeted.
func (g *Numeric) CheckTarget(target []byte) error {
	text, err := oneTarget(target)
	if err != nil {
		return err
	}
	if _, ok := answer.Read(text); !ok {
		return undecidable(text, "a number")
	}
	return nil
}

// Grade implements Grader.
func (g *Numeric) Grade(_ context.Context, c Completion) (Score, error) {
	text, err := oneTarget(c.Target)
	if err != nil {
		return unscored(NoTarget), nil
	}
	want, ok := answer.Read(text)
	if !ok {
		return unscored(BadTarget), nil
	}
	text, open := g.of(c)
	if open {
		return zero(OpenReasoning), nil
	}
	text, ok = g.find(answer.Fold(text))
	switch {
	case !ok:
		return zero(NoAnswer), nil
	case text == "":
		return zero(Empty), nil
	}
	got, ok := answer.Read(text)
	if !ok {
		return zero(Unparsed), nil
	}
	if g.Units == "lenient" && got.Unit != "" && want.Unit != "" && got.Unit != want.Unit || g.Units == "strict" && got.Unit != want.Unit {
		return zero(Wrong), nil
	}
	return verdict(g.close(got, want)), nil
}

func (g *Numeric) find(s string) (string, bool) {
	if g.Cut.Extract == answer.Auto {
		return answer.FindNumber(s)
	}
	return answer.Find(s, g.Cut.Extract, g.Marker)
}

func (g *Numeric) close(got, want answer.Number) bool {
	if got.Percent == want.Percent {
		return g.within(got.Value, want.Value)
	}
	a, b := got.Value, want.Value
	if got.Percent {
		a = new(big.Rat).Mul(a, big.NewRat(1, 100))
	} else {
		b = new(big.Rat).Mul(b, big.NewRat(1, 100))
	}
	return g.within(a, b) || g.Percent == "lenient" && g.within(got.Value, want.Value)
}

func (g *Numeric) within(a, b *big.Rat) bool {
	gap := new(big.Rat).Sub(a, b)
	limit, relative := decimalOf(g.Tolerance), new(big.Rat).Abs(b)
	if relative.Mul(relative, decimalOf(g.RelTolerance)).Cmp(limit) > 0 {
		limit = relative
	}
	return gap.Abs(gap).Cmp(limit) <= 0
}

// decimalOf is a float as it is written: 0.1 is one tenth. It is finite, which the recipe's bounds hold.
func decimalOf(v float64) *big.Rat {
	r, ok := new(big.Rat).SetString(strconv.FormatFloat(v, 'g', -1, 64))
	if !ok {
		return new(big.Rat)
	}
	return r
}
