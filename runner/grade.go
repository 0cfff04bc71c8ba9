package runner

import (
	"context"
	"fmt"
	"strings"

	"trainer/internal/dataset"
	"trainer/internal/grader"
	"trainer/internal/rollout"
	"trainer/internal/tokenizer"
)

// grade gives the members of a group their texts, and their rewards where there are any.
func (r *run) grade(ctx context.Context, p dataset.Prompt, members []rollout.Member, name string, stops []string) ([]grader.Graded, error) {
	rendered := r.in.Tokenizer.Decode(p.IDs)
	all := make([]grader.Completion, len(members))
	for i := range members {
		m := &members[i]
		var tokens []int32
		tokens, m.Text = spoken(m.Sequence, r.in.Tokenizer, stops)
		all[i] = grader.Completion{Sample: fmt.Sprintf("%s.m%d", name, i), Prompt: p.Asked, Rendered: rendered, Text: m.Text,
			Tokens: tokens, StopReason: string(m.Stop), Target: p.Target, Row: p.Row}
	}
	if r.in.distils() || r.in.Unjudged {
		return nil, nil
	}
	short, free := r.brief(ctx)
	defer free()
	graded, err := r.in.Graders.Set.Grade(short, all)
	if err != nil {
		return nil, err
	}
	for i, g := range graded {
		m := &members[i]
		m.Reward = g.Total
		if !g.Scored {
			m.Reward, m.Unscored = 0, g.Why
		}
		m.Parts = partsOf(g)
	}
	return graded, nil
}

// partsOf are what the rewards gave, less those that were not asked.
func partsOf(g grader.Graded) (parts []rollout.Part) {
	for _, part := range g.Parts {
		if !part.NotRun {
			parts = append(parts, rollout.Part{Name: part.Name, Value: part.Value, Scored: part.Scored, Why: part.Why})
		}
	}
	return parts
}

// spoken is a completion without the token or the text that ended it, as graders read it: control tokens by their names,
// lines ended by LF alone, and what is no UTF-8 as U+FFFD.
func spoken(s rollout.Sequence, tok *tokenizer.Tokenizer, stops []string) (tokens []int32, text string) {
	tokens = s.Tokens
	if n := len(tokens); n > 0 && s.Stop == rollout.Stopped {
		if id, ok := tok.Control(tok.Decode(tokens[n-1:])); ok && id == tokens[n-1] {
			tokens = tokens[:n-1]
		}
	}
	text = tok.Decode(tokens)
	if s.Stop == rollout.Stopped {
		for _, stop := range stops {
			if rest, cut := strings.CutSuffix(text, stop); cut {
				text = rest
				break
			}
		}
	}
	return tokens, strings.ToValidUTF8(strings.ReplaceAll(text, "\r\n", "\n"), "\uFFFD")
}
