package grader

import (
	"context"
	"strings"
)

// Format pays 1 for a completion of one reasoning block and one answer, and 0 otherwise: the block first, opened and closed once,
// neither part blank. Where the prompt already opened the block the completion must not open it again.
type Format struct {
	// Start opens the reasoning block.
	Start string `yaml:"start"`
	// End closes the reasoning block.
	End string `yaml:"end"`
	// AnswerStart opens the answer, which then is all that follows the block; null: no tags. Beside answer_end.
	AnswerStart *string `yaml:"answer_start"`
	// AnswerEnd closes the answer.
	AnswerEnd *string `yaml:"answer_end"`
	// RequireReasoning wants something in the block.
	RequireReasoning bool `yaml:"require_reasoning"`
	// RequireAnswer wants something in the answer.
	RequireAnswer bool `yaml:"require_answer"`
}

func newFormat() *Format {
	return &Format{Start: "<think>", End: "</think>", RequireReasoning: true, RequireAnswer: true}
}

// Check implements Checker.
func (g *Format) Check() error {
	switch {
	case g.AnswerStart != nil && g.AnswerEnd == nil:
		return fault("answer_end", "missing beside answer_start")
	case g.AnswerEnd != nil && g.AnswerStart == nil:
		return fault("answer_start", "missing beside answer_end")
	case g.AnswerStart != nil && (*g.AnswerStart == "" || *g.AnswerEnd == ""):
		return fault("answer_start", "tags must not be empty; null is for none")
	case g.Start == g.End:
		return fault("end", "must differ from start")
	}
	return Scope{Start: g.Start, End: g.End}.check()
}

// Grade implements Grader.
func (g *Format) Grade(_ context.Context, c Completion) (Score, error) {
	return verdict(g.fits(c)), nil
}

func (g *Format) fits(c Completion) bool {
	s := c.plain()
	rest := s
	if c.opens(g.Start) {
		if strings.Contains(s, g.Start) {
			return false
		}
	} else {
		var ok bool
		if rest, ok = strings.CutPrefix(strings.TrimSpace(s), g.Start); !ok || strings.Contains(rest, g.Start) {
			return false
		}
	}
	reasoning, rest, ok := strings.Cut(rest, g.End)
	if !ok || strings.Contains(rest, g.End) || g.RequireReasoning && strings.TrimSpace(reasoning) == "" {
		return false
	}
	if g.AnswerStart != nil {
		if strings.Count(s, *g.AnswerStart) != 1 || strings.Count(s, *g.AnswerEnd) != 1 {
			return false
		}
		rest, ok = strings.CutPrefix(strings.TrimSpace(rest), *g.AnswerStart)
		if !ok {
			return false
		}
		if rest, ok = strings.CutSuffix(rest, *g.AnswerEnd); !ok {
			return false
		}
	}
	return !g.RequireAnswer || strings.TrimSpace(rest) != ""
}
