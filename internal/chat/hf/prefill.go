package hf

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"trainer/internal/chat/jinja"
)

// continueTag is put behind the text that is to be continued, and found again in the rendering. The space at its end
// tells whether the template strips the text.
const continueTag = "CONTINUE_FINAL_MESSAGE_TAG "

// prefill is the text that a rendering ends in.
type prefill struct{ text string }

// tag puts the tag into the last of the prepared messages.
func (t *Template) tag(messages []*jinja.Dict, o Options) (*prefill, error) {
	last := messages[len(messages)-1]
	v, _ := last.Get(o.Continue)
	switch {
	case o.AddGenerationPrompt:
		return nil, errors.New("the last message cannot be continued and a new one be started; choose one")
	case v == nil:
		return nil, fmt.Errorf("the last message has no %q to continue", o.Continue)
	}
	keys := []string{o.Continue}
	if slices.Contains(reasoningKeys, o.Continue) { // it stands under several names, and the template reads one of them
		keys = slices.DeleteFunc(slices.Clone(reasoningKeys), func(k string) bool {
			other, _ := last.Get(k)
			return other != v
		})
	}
	if !slices.ContainsFunc(keys, func(k string) bool { return strings.Contains(t.source, k) }) {
		return nil, fmt.Errorf("the template does not read %q, so it cannot be continued", o.Continue)
	}
	switch v := v.(type) {
	case string:
		for _, k := range keys {
			last.Set(k, v+continueTag)
		}
		return &prefill{v}, nil
	case *jinja.List:
		parts, text, err := tagParts(v)
		if err != nil {
			return nil, err
		}
		last.Set(o.Continue, parts)
		return &prefill{text}, nil
	}
	return nil, fmt.Errorf("the %q of the last message is not text, so it cannot be continued", o.Continue)
}

// tagParts puts the tag into the last part that has text.
func tagParts(parts *jinja.List) (*jinja.List, string, error) {
	out := slices.Clone(parts.Items)
	for i, part := range slices.Backward(out) {
		d, ok := part.(*jinja.Dict)
		if !ok {
			continue
		}
		v, ok := d.Get("text")
		if !ok {
			continue
		}
		text, ok := v.(string)
		if !ok {
			return nil, "", errors.New("the last text of the last message is no string, so it cannot be continued")
		}
		tagged := d.Clone()
		tagged.Set("text", text+continueTag)
		out[i] = tagged
		return &jinja.List{Items: out}, text, nil
	}
	return nil, "", errors.New("the last message has no text to continue")
}

// cut ends the rendering where the tag is.
func (p *prefill) cut(r *Rendered) (*Rendered, error) {
	at := strings.LastIndex(r.Text, strip(continueTag))
	if at < 0 || !strings.Contains(r.Text, strip(p.text)) {
		return nil, errors.New("the text to continue does not appear in the rendering; the template drops or changes it")
	}
	text := r.Text[:at]
	if !strings.HasPrefix(r.Text[at:], continueTag) { // the template strips the text, and so what is continued has no space either
		text = strings.TrimRightFunc(text, isSpace)
	}
	r.Text = text
	r.Generation = slices.DeleteFunc(r.Generation, func(s jinja.Span) bool { return s.Start > len(text) })
	for i := range r.Generation {
		r.Generation[i].End = min(r.Generation[i].End, len(text))
	}
	r.Messages = slices.DeleteFunc(r.Messages, func(s MessageSpan) bool { return s.Start >= len(text) })
	for i := range r.Messages {
		r.Messages[i].End = min(r.Messages[i].End, len(text))
	}
	return r, nil
}

func strip(s string) string { return strings.TrimFunc(s, isSpace) }

// isSpace is Python's str.isspace of a character.
func isSpace(r rune) bool { return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f }
