package grader

import (
	"cmp"
	"context"
	"strings"
	"unicode/utf8"
)

// What a completion is measured in.
const (
	Tokens = "tokens"
	Chars  = "chars"
	Words  = "words"
	Lines  = "lines"
)

// Length pays 1 for a completion whose length is within the bounds, and less with every unit that it is off, down to 0.
type Length struct {
	Scope
	// Unit: tokens as sampled, without the stop token; chars are code points, words stand between blanks, blank lines don't count.
	Unit string `yaml:"unit" validate:"oneof=tokens chars words lines"`
	// Min is the least length that pays 1; an empty completion is short.
	Min int `yaml:"min" default:"0" validate:"gte=0"`
	// Max is the greatest length that pays 1; null is no bound.
	Max *int `yaml:"max" validate:"omitempty,gte=0"`
	// Ramp is how many units beyond a bound the score takes to fall to 0; with 0 it falls at once.
	Ramp int `yaml:"ramp" default:"0" validate:"gte=0"`
}

func newLength() *Length { return &Length{Scope: newScope(FullText), Unit: Tokens} }

// Check implements Checker.
func (g *Length) Check() error {
	if g.Max != nil && *g.Max < g.Min {
		return fault("max", "must be at least min (%d), got %d", g.Min, *g.Max)
	}
	if g.Max == nil && g.Min == 0 {
		return fault("max", "missing; without min or max every length is paid")
	}
	return cmp.Or(g.Scope.check(), tokensAreFull(g.Unit, g.Text))
}

func tokensAreFull(unit, text string) error {
	if unit == Tokens && text != FullText {
		return fault("text", "must be full with unit tokens, which are counted as sampled; use chars, words or lines")
	}
	return nil
}

// Grade implements Grader; in [0, 1].
func (g *Length) Grade(_ context.Context, c Completion) (Score, error) {
	n := len(c.Tokens)
	if g.Unit != Tokens {
		text, _ := g.of(c)
		n = measure(text, g.Unit)
	}
	off := max(g.Min-n, 0)
	if g.Max != nil {
		off = max(off, n-*g.Max)
	}
	switch {
	case off == 0:
		return paid(1), nil
	case off >= g.Ramp:
		return zero(Wrong), nil
	}
	return paid(1 - float64(off)/float64(g.Ramp)), nil
}

func measure(s, unit string) (n int) {
	switch unit {
	case Chars:
		return utf8.RuneCountInString(s)
	case Words:
		return len(strings.Fields(s))
	}
	for line := range strings.SplitSeq(s, "\n") {
		if strings.TrimSpace(line) != "" {
			n++
		}
	}
	return n
}
