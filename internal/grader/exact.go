package grader

import (
	"cmp"
	"context"
	"strings"

	"trainer/internal/grader/answer"
)

// Cut says how the answer is cut out of the text.
type Cut struct {
	// Extract is the rule: all of the text, or its last box, number, line, fenced block or <answer> tag, or what follows the last
	// marker. auto takes the first of boxed, marker, phrase, math and number that is there.
	Extract string `yaml:"extract" validate:"oneof=all auto last_boxed last_number after_marker last_line fenced tag"`
	// Marker is what after_marker looks for.
	Marker string `yaml:"marker"`
}

func (e Cut) check() error {
	switch {
	case e.Marker == "":
		return fault("marker", "must not be empty")
	case e.Marker != answer.Marker && e.Extract != answer.AfterMarker:
		return fault("marker", "has no effect with extract %s; it is of after_marker", e.Extract)
	}
	return nil
}

// Exact pays 1 where the text is the target, and 0 otherwise. Ends are always trimmed; of a list any target will do.
type Exact struct {
	Scope
	Cut
	Folded
	// IgnorePunctuation drops . , ; : ! ? at the end.
	IgnorePunctuation bool `yaml:"ignore_punctuation" default:"false"`
}

func newExact() *Exact {
	return &Exact{Scope: newScope(AfterReasoning), Cut: Cut{answer.All, answer.Marker}}
}

// Check implements Checker.
func (g *Exact) Check() error { return cmp.Or(g.Scope.check(), g.Cut.check()) }

// CheckTarget implements Targeted.
func (g *Exact) CheckTarget(target []byte) error { return anyTarget(target) }

// Grade implements Grader.
func (g *Exact) Grade(_ context.Context, c Completion) (Score, error) {
	wanted, ok := c.targets()
	if !ok {
		return unscored(NoTarget), nil
	}
	text, open := g.of(c)
	if open {
		return zero(OpenReasoning), nil
	}
	text, ok = answer.Find(text, g.Cut.Extract, g.Marker)
	if !ok {
		return zero(NoAnswer), nil
	}
	text = g.normal(text)
	for _, w := range wanted {
		if text == g.normal(w) {
			return paid(1), nil
		}
	}
	if text == "" {
		return zero(Empty), nil
	}
	return zero(Wrong), nil
}

func (g *Exact) normal(s string) string {
	s = g.fold(s)
	if g.IgnorePunctuation {
		s = strings.TrimSpace(strings.TrimRight(s, ".,;:!?"))
	}
	return s
}
