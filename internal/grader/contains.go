package grader

import (
	"context"
	"strings"
)

// Contains pays for the target, or the values, standing somewhere in the text. It never looks for the text in the target.
type Contains struct {
	Scope
	// Values are looked for instead of the target.
	Values []string `yaml:"values"`
	// Mode is what pays 1: any of them, all of them; fraction pays the share that is there.
	Mode string `yaml:"mode" validate:"oneof=any all fraction"`
	Folded
	// WholeWord wants no letter or digit glued to what is found.
	WholeWord bool `yaml:"whole_word" default:"false"`
}

func newContains() *Contains { return &Contains{Scope: newScope(AfterReasoning), Mode: "any"} }

// Check implements Checker.
func (g *Contains) Check() error {
	for _, v := range g.Values {
		if strings.TrimSpace(v) == "" {
			return fault("values", "an empty value is in every text")
		}
	}
	return g.Scope.check()
}

// CheckTarget implements Targeted.
func (g *Contains) CheckTarget(target []byte) error {
	if len(g.Values) > 0 {
		return nil
	}
	return anyTarget(target)
}

// Grade implements Grader; with mode fraction in [0, 1].
func (g *Contains) Grade(_ context.Context, c Completion) (Score, error) {
	wanted := g.Values
	if len(wanted) == 0 {
		var ok bool
		if wanted, ok = c.targets(); !ok {
			return unscored(NoTarget), nil
		}
	}
	text, open := g.of(c)
	if open {
		return zero(OpenReasoning), nil
	}
	text = g.fold(text)
	found := 0
	for _, w := range wanted {
		w = g.fold(w)
		if g.WholeWord && hasWord(text, w) || !g.WholeWord && strings.Contains(text, w) {
			found++
		}
	}
	switch {
	case found == 0 && text == "":
		return zero(Empty), nil
	case g.Mode == "fraction" && found > 0:
		return paid(float64(found) / float64(len(wanted))), nil
	}
	return verdict(found > 0 && (g.Mode != "all" || found == len(wanted))), nil
}
