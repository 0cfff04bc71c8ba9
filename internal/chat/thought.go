package chat

import (
	"slices"
	"strings"

	"trainer/internal/chat/hf"
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

// answered is message i behind its prompt, where the rendering r of the conversation up to it does not start with that:
// because the template writes what stands before it otherwise once the message is there, or because it leaves out the
// reasoning that the prompt has opened. nil where neither is the case.
func (j *job) answered(i int, r, prompt *rendering) *rendering {
	if out := spliced(i, r, prompt); out != nil {
		return out
	}
	return j.reopened(i, r, prompt)
}

// spliced takes message i out of r, from behind the header that the prompt ends in.
func spliced(i int, r, prompt *rendering) *rendering {
	before, ok := prompt.span(i - 1)
	s, written := r.span(i)
	if !ok || !written {
		return nil
	}
	header := prompt.text[before.End:]
	if !strings.HasPrefix(r.text[s.Start:], header) {
		return nil
	}
	return follow(i, prompt, "", nil, r, s.Start+len(header))
}

// reopened is message i behind a prompt that goes on, behind the header, otherwise than the template writes the message: with
// space, with reasoning that is empty or with a tag that opens it. The message follows there as a model would write it, whose
// template leaves reasoning out of every message, as it is meant to be history. What is open is closed first, behind the
// reasoning that the message has; a message says that it has none with reasoning that is empty.
func (j *job) reopened(i int, r, prompt *rendering) *rendering {
	n := tagStart(prompt.text, common(prompt.text, r.text))
	if s, ok := prompt.span(i - 1); !ok || n < s.End {
		return nil
	}
	at := n
	for at < len(r.text) && r.text[at] == '\n' {
		at++
	}
	closes := strings.HasPrefix(r.text[at:], "</think>")
	switch given := strings.TrimSpace(prompt.text[n:]); {
	case given == "", given == "<think>" && closes:
		return follow(i, prompt, "", nil, r, at)
	case given == "<think>":
	case slices.ContainsFunc(thoughtEnds, func(end string) bool { return strings.HasSuffix(given, end) }):
		if closes {
			at += len("</think>")
		}
		return follow(i, prompt, "", nil, r, at)
	default:
		return nil
	}
	thought, key := reasoningOf(j.c.Messages[i])
	if key == "" && !saysNone(j.c.Messages[i]) || strings.Contains(r.text[at:], "</think>") {
		return nil
	}
	thought = strings.TrimSpace(thought)
	var literal []jinja.Span
	if j.guard != nil {
		literal = j.guard.spelt(thought)
	}
	return follow(i, prompt, thought+"\n</think>\n\n", literal, r, at)
}

// thoughtEnds are what templates close reasoning with.
var thoughtEnds = []string{"</think>", "<channel|>", "<|END_THINKING|>", "[/THINK]"}

// tagStart is the start of the tag that byte n stands in, and n where it stands in none.
func tagStart(text string, n int) int {
	if at := strings.LastIndexByte(text[:n], '<'); at >= 0 && !strings.ContainsAny(text[at:n], ">\n ") {
		return at
	}
	return n
}

// saysNone tells whether a message says that it has no reasoning.
func saysNone(m Message) bool {
	if m.Fields == nil {
		return false
	}
	return slices.ContainsFunc(reasoningKeys, func(name string) bool {
		s, ok := m.Fields.Get(name)
		return ok && s == ""
	})
}

// follow is a prompt, and message i behind it: text with its literal spans, and what r has from byte at on.
func follow(i int, prompt *rendering, text string, literal []jinja.Span, r *rendering, at int) *rendering {
	n := len(prompt.text)
	out := &rendering{text: prompt.text + text + r.text[at:], literal: slices.Clone(prompt.literal)}
	before := 0
	if k := len(prompt.messages); k > 0 {
		before = prompt.messages[k-1].End
	}
	out.messages = append(slices.Clone(prompt.messages), hf.MessageSpan{Message: i, Span: jinja.Span{Start: before, End: len(out.text)}})
	move := func(s jinja.Span, by int) jinja.Span { return jinja.Span{Start: s.Start + by, End: s.End + by} }
	for _, s := range literal {
		out.literal = append(out.literal, move(s, n))
	}
	by := n + len(text) - at
	for _, s := range r.literal {
		if s.Start >= at {
			out.literal = append(out.literal, move(s, by))
		}
	}
	if text != "" && len(r.generation) > 0 { // what is put in is the model's own
		out.generation = append(out.generation, jinja.Span{Start: n, End: n + len(text)})
	}
	for _, s := range r.generation {
		if s.End > at {
			out.generation = append(out.generation, jinja.Span{Start: max(s.Start, at) + by, End: s.End + by})
		}
	}
	return out
}
