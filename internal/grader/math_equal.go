package grader

import (
	"cmp"
	"context"
	"strings"

	"trainer/internal/grader/answer"
)

// MathEqual pays 1 where the answer means what the target means: numbers, fractions, LaTeX, sets, intervals, equations, words.
// There is no computer algebra: what has variables is compared at fixed points, and nothing is solved or integrated.
type MathEqual struct {
	Scope
	Cut
	// DecimalDigits is how many significant digits a decimal needs to equal what rounds to it; 0 is off.
	DecimalDigits int `yaml:"decimal_digits" default:"0" validate:"gte=0,lte=50"`
	// Units: lenient lets one side lack its unit, strict wants the same, ignore looks at none. Nothing is converted.
	Units string `yaml:"units" validate:"oneof=lenient strict ignore"`
	// Percent: lenient also takes the bare number where one side lacks the sign, strict takes n % for n/100 alone.
	Percent string `yaml:"percent" validate:"oneof=lenient strict"`
	// Ordered compares bare lists in order; without it they are sets.
	Ordered bool `yaml:"ordered" default:"false"`
	// Form: literal wants a number written out where the target is one, so that 48/2+48 is not paid for 72.
	Form string `yaml:"form" validate:"oneof=any literal"`
}

func newMathEqual() *MathEqual {
	return &MathEqual{Scope: newScope(AfterReasoning), Cut: Cut{answer.Auto, answer.Marker}, DecimalDigits: 6,
		Units: "lenient", Percent: "lenient", Form: "any"}
}

// Check implements Checker.
func (g *MathEqual) Check() error { return cmp.Or(g.Scope.check(), g.Cut.check()) }

// CheckTarget implements Targeted.
func (g *MathEqual) CheckTarget(target []byte) error {
	text, err := oneTarget(target)
	if err != nil {
		return err
	}
	if answer.Decidable(text) != nil {
		return undecidable(text, "mathematics that can be compared")
	}
	return nil
}

// Grade implements Grader.
func (g *MathEqual) Grade(_ context.Context, c Completion) (Score, error) {
	target, err := oneTarget(c.Target)
	if err != nil {
		return unscored(NoTarget), nil
	}
	text, open := g.of(c)
	if open {
		return zero(OpenReasoning), nil
	}
	found, ok := answer.Find(answer.Fold(text), g.Cut.Extract, g.Marker)
	if !ok {
		return zero(NoAnswer), nil
	}
	options := answer.Options{Digits: g.DecimalDigits, Units: g.Units, Percent: g.Percent, Ordered: g.Ordered, Literal: g.Form == "literal"}
	switch r := answer.Compare(found, strings.TrimSpace(target), options); r {
	case answer.Same:
		return paid(1), nil
	case answer.BadTarget:
		return unscored(BadTarget), nil
	default:
		return zero(string(r)), nil
	}
}
