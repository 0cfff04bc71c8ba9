package chat

import (
	"slices"

	"trainer/internal/chat/jinja"
)

// Part is the tokens [From, To) of an example that belong to a message: its header, its text and what ends it. Tokens in no
// part are the template's own.
type Part struct {
	Role     string
	From, To int
}

// Cut is the tokens [from, to) of an example, and what is left of its parts.
func (ex Example) Cut(from, to int) Example {
	out := Example{IDs: ex.IDs[from:to], Weights: ex.Weights[from:to]}
	if ex.TopIDs != nil {
		out.TopIDs, out.TopLogprobs = ex.TopIDs[from:to], ex.TopLogprobs[from:to]
	}
	if ex.Teacher != nil {
		out.Teacher = ex.Teacher[from:to]
	}
	if ex.Sampled != nil {
		out.Sampled = ex.Sampled[from:to]
	}
	for _, p := range ex.Parts {
		if p.From, p.To = max(p.From, from)-from, min(p.To, to)-from; p.From < p.To {
			out.Parts = append(out.Parts, p)
		}
	}
	return out
}

// parts are the messages of a rendering in tokens that end at ends.
func (j *job) parts(r *rendering, ends []int) []Part {
	out := make([]Part, 0, len(r.messages))
	for _, m := range r.messages {
		if m.Message < 0 || m.Message >= len(j.c.Messages) || m.Span.Start >= m.Span.End {
			continue
		}
		p := Part{Role: j.c.Messages[m.Message].Role, From: tokenAt(ends, m.Span), To: tokenBehind(ends, m.Span)}
		if n := len(out); n > 0 {
			p.From = max(p.From, out[n-1].To) // a token across the boundary is the earlier message's
		}
		if p.From < p.To {
			out = append(out, p)
		}
	}
	return out
}

// tokenAt is the first token with a byte behind the start of s.
func tokenAt(ends []int, s jinja.Span) int {
	k, _ := slices.BinarySearch(ends, s.Start+1)
	return k
}

// tokenBehind is the first token that starts at or behind the end of s.
func tokenBehind(ends []int, s jinja.Span) int {
	k, _ := slices.BinarySearch(ends, s.End)
	if k == len(ends) {
		return k
	}
	for end := ends[k]; k < len(ends) && ends[k] == end; { // several tokens end at one byte where they share a character
		k++
	}
	return k
}
