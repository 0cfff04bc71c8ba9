package grader

import (
	"cmp"
	"context"
	"errors"
	"regexp"
	"regexp/syntax"
	"strings"
)

// Regex pays 1 where a pattern is found, and 0 otherwise. Patterns are RE2: their time is linear in the text, whatever it is.
type Regex struct {
	Scope
	// Pattern in RE2. (?ims) in front ignores case, lets ^ $ be a line's ends, lets . be a line break.
	Pattern string `yaml:"pattern" validate:"required"`
	// Mode: search finds it anywhere, full wants it to be the whole text.
	Mode string `yaml:"mode" validate:"oneof=search full"`
	// Group compares that group of the last match with the target; null looks at no target.
	Group *int `yaml:"group" validate:"omitempty,gte=0"`
	// Negate pays for the opposite.
	Negate bool `yaml:"negate" default:"false"`
	Folded

	re *regexp.Regexp
}

func newRegex() *Regex { return &Regex{Scope: newScope(AfterReasoning), Mode: "search"} }

// Check implements Checker; it compiles the pattern.
func (g *Regex) Check() error {
	parsed, err := syntax.Parse(g.Pattern, syntax.Perl)
	if err != nil {
		return fault("pattern", "%s", whyNotRE2(err))
	}
	pattern := g.Pattern
	if g.Mode == "full" {
		pattern = `\A(?:` + pattern + `)\z`
	}
	if g.re, err = regexp.Compile(pattern); err != nil {
		return fault("pattern", "%s", whyNotRE2(err))
	}
	switch {
	case g.re.MatchString("") && g.Mode != "full" && !g.Negate && !anchored(parsed.Simplify()):
		return fault("pattern", "matches the empty text, so that every completion would be paid; anchor it with ^ and $, or ask for one character more")
	case g.Group != nil && *g.Group > g.re.NumSubexp():
		return fault("group", "must be at most %d, the number of groups in the pattern, got %d", g.re.NumSubexp(), *g.Group)
	case g.Group == nil && g.IgnoreCase:
		return fault("ignore_case", "has no effect without group; begin the pattern with (?i)")
	case g.Group == nil && g.IgnoreWhitespace:
		return fault("ignore_whitespace", "has no effect without group; write \\s+ in the pattern")
	}
	return g.Scope.check()
}

// anchored says whether a pattern holds both ends of the text.
func anchored(p *syntax.Regexp) bool {
	if p.Op == syntax.OpCapture {
		return anchored(p.Sub[0])
	}
	return p.Op == syntax.OpConcat && p.Sub[0].Op == syntax.OpBeginText && p.Sub[len(p.Sub)-1].Op == syntax.OpEndText
}

// whyNotRE2 adds the way out to what the parser says.
func whyNotRE2(err error) string {
	msg := strings.TrimPrefix(err.Error(), "error parsing regexp: ")
	var e *syntax.Error
	if !errors.As(err, &e) {
		return "is not a regular expression (RE2): " + msg
	}
	switch {
	case looksAround(e.Expr) != "":
		return "looks around with " + looksAround(e.Expr) + "…), which RE2 has not; match what is around too and compare a group with the target, or use negate"
	case e.Code == syntax.ErrInvalidEscape && len(e.Expr) == 2 && e.Expr[1] >= '1' && e.Expr[1] <= '9':
		return "refers back with " + e.Expr + ", which RE2 has not; write the text out, or use a command reward"
	case e.Code == syntax.ErrInvalidRepeatSize:
		return msg + "; a repeat is at most 1000"
	}
	return "is not a regular expression (RE2): " + msg
}

// looksAround is the sign of the look-around that an expression begins with, "" for none.
func looksAround(expr string) string {
	for _, sign := range []string{"(?=", "(?!", "(?<=", "(?<!"} {
		if strings.HasPrefix(expr, sign) {
			return sign
		}
	}
	return ""
}

// CheckTarget implements Targeted.
func (g *Regex) CheckTarget(target []byte) error {
	if g.Group == nil {
		return nil
	}
	_, ok := Completion{Target: target}.target()
	if !ok {
		return errNoTarget
	}
	return nil
}

// Grade implements Grader, after Check.
func (g *Regex) Grade(_ context.Context, c Completion) (Score, error) {
	if g.re == nil {
		return Score{}, cmp.Or(g.Check(), errors.New("the pattern was never checked"))
	}
	want, ok := c.target()
	if g.Group != nil && !ok {
		return unscored(NoTarget), nil
	}
	text, open := g.of(c)
	if open {
		return zero(OpenReasoning), nil
	}
	found := false
	if g.Group == nil {
		found = g.re.MatchString(text)
	} else if all := g.re.FindAllStringSubmatchIndex(text, -1); len(all) > 0 {
		last := all[len(all)-1]
		from, to := last[2**g.Group], last[2**g.Group+1]
		found = from >= 0 && g.fold(text[from:to]) == g.fold(want)
	}
	return verdict(found != g.Negate), nil
}
