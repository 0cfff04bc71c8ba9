package chat

import (
	"slices"
	"strings"

	"trainer/internal/chat/jinja"
)

// reasoningOf is the reasoning of a message and the key under which it stands, which is the content where tags set it off
// there; "" for none.
func reasoningOf(m Message) (thought, key string) {
	if m.Fields != nil {
		for _, name := range reasoningKeys {
			if s, _ := m.Fields.Get(name); !blank(s) {
				thought, _ = s.(string)
				return thought, name
			}
		}
	}
	before, _, found := strings.Cut(m.Content, "</think>")
	if !found {
		return "", ""
	}
	if _, inner, opened := strings.Cut(before, "<think>"); opened {
		before = inner
	}
	if thought = strings.TrimSpace(before); thought == "" {
		return "", ""
	}
	return thought, keyContent
}

// unthought refuses reasoning in a trained turn where the recipe asks for a model that does not reason.
func (j *job) unthought(i int) error {
	if j.p.noThink == "" {
		return nil
	}
	if _, key := reasoningOf(j.c.Messages[i]); key != "" {
		return faultf(i, key, "has reasoning, and chat.args says %s: false, so the model would learn to reason where it is told not to; leave out the argument, or the reasoning", j.p.noThink)
	}
	return nil
}

// reopened is a turn of a model whose prompt opens its reasoning and whose template leaves the reasoning out of every
// message, as it is meant to be history: the turn is then what the model writes, its reasoning, the tag that ends it, and
// what the template does write. nil where that is not the case, or the message has no reasoning.
func (j *job) reopened(i int, r, prompt *rendering) *rendering {
	n := common(prompt.text, r.text)
	thought, _ := reasoningOf(j.c.Messages[i])
	if thought == "" || strings.TrimSpace(prompt.text[n:]) != "<think>" || j.lost(i, r.text[n:], true) == nil {
		return nil
	}
	thought = strings.TrimSpace(thought)
	behind := "\n</think>\n\n"
	out := &rendering{text: prompt.text + thought + behind + strings.TrimLeft(r.text[n:], "\n"), messages: prompt.messages}
	out.literal = slices.Clone(prompt.literal)
	if j.guard != nil {
		for _, s := range j.guard.spelt(thought) {
			out.literal = append(out.literal, jinja.Span{Start: len(prompt.text) + s.Start, End: len(prompt.text) + s.End})
		}
	}
	moved := len(prompt.text) + len(thought) + len(behind) - (len(r.text) - len(strings.TrimLeft(r.text[n:], "\n")))
	for _, s := range r.literal {
		if s.Start >= n {
			out.literal = append(out.literal, jinja.Span{Start: s.Start + moved, End: s.End + moved})
		}
	}
	return out
}
