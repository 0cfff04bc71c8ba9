package chat

import (
	"slices"
	"strings"
	"unicode/utf8"

	"trainer/internal/chat/jinja"
)

// guard keeps text of a row that spells a control token apart from the tokens that the template writes. While a template
// works on it the first character of each such text is another, one that nobody uses; where that comes out again is text
// of the row.
type guard struct {
	tokens []string
	firsts []rune // of the tokens, each once
	base   rune   // stands for firsts[0], the next rune for firsts[1], and so on
}

func newGuard(tokens []string, given ...[]*jinja.Dict) *guard {
	g := &guard{tokens: tokens, base: '\uE000'}
	for _, token := range tokens {
		if first, _ := utf8.DecodeRuneInString(token); !slices.Contains(g.firsts, first) {
			g.firsts = append(g.firsts, first)
		}
	}
	used := func(r rune) bool {
		return slices.ContainsFunc(slices.Concat(given...), func(d *jinja.Dict) bool { return holds(d, string(r)) })
	}
	for i := 0; i < len(g.firsts); i++ {
		if used(g.base + rune(i)) {
			g.base, i = g.base+rune(i)+1, -1
		}
	}
	return g
}

// objects are copies with every text guarded.
func (g *guard) objects(all []*jinja.Dict) []*jinja.Dict {
	if all == nil {
		return nil
	}
	out := make([]*jinja.Dict, len(all))
	for i, d := range all {
		out[i] = g.value(d).(*jinja.Dict)
	}
	return out
}

func (g *guard) value(v jinja.Value) jinja.Value {
	switch v := v.(type) {
	case string:
		return g.text(v)
	case *jinja.List:
		out := &jinja.List{Items: make([]jinja.Value, len(v.Items))}
		for i, item := range v.Items {
			out.Items[i] = g.value(item)
		}
		return out
	case *jinja.Dict:
		out := jinja.NewDict()
		for k, item := range v.All() {
			out.Set(g.value(k), g.value(item))
		}
		return out
	}
	return v
}

func (g *guard) text(s string) string {
	for _, token := range g.tokens {
		first, n := utf8.DecodeRuneInString(token)
		s = strings.ReplaceAll(s, token, string(g.base+rune(slices.Index(g.firsts, first)))+token[n:])
	}
	return s
}

// spelt are the tokens in a text that is not guarded.
func (g *guard) spelt(s string) (spans []jinja.Span) {
	for at := 0; at < len(s); {
		i := slices.IndexFunc(g.tokens, func(token string) bool { return strings.HasPrefix(s[at:], token) })
		if i < 0 {
			at++
			continue
		}
		spans = append(spans, jinja.Span{Start: at, End: at + len(g.tokens[i])})
		at += len(g.tokens[i])
	}
	return spans
}

// restore puts the characters back, and notes where they were.
func (g *guard) restore(r *rendering) {
	var out strings.Builder
	type shift struct{ at, by int } // from byte at of the guarded text on, a position moves by
	var shifts []shift
	moved := 0
	for i, c := range r.text {
		k := int(c - g.base)
		if k < 0 || k >= len(g.firsts) {
			out.WriteRune(c)
			continue
		}
		at := out.Len()
		out.WriteRune(g.firsts[k])
		behind := i + utf8.RuneLen(c)
		moved += utf8.RuneLen(g.firsts[k]) - utf8.RuneLen(c)
		shifts = append(shifts, shift{behind, moved})
		for _, token := range g.tokens {
			if first, n := utf8.DecodeRuneInString(token); first == g.firsts[k] && strings.HasPrefix(r.text[behind:], token[n:]) {
				r.literal = append(r.literal, jinja.Span{Start: at, End: at + len(token)})
				break
			}
		}
	}
	r.text = out.String()
	to := func(at int) int {
		i, _ := slices.BinarySearchFunc(shifts, at+1, func(s shift, at int) int { return s.at - at })
		if i == 0 {
			return at
		}
		return at + shifts[i-1].by
	}
	r.messages, r.generation = slices.Clone(r.messages), slices.Clone(r.generation)
	for i, s := range r.messages {
		r.messages[i].Span = jinja.Span{Start: to(s.Start), End: to(s.End)}
	}
	for i, s := range r.generation {
		r.generation[i] = jinja.Span{Start: to(s.Start), End: to(s.End)}
	}
}
