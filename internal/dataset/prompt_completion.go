package dataset

import (
	"fmt"

	"trainer/internal/chat"
)

// encodePromptCompletion reads {"prompt": …, "completion": …}: each is text, or a list of messages; text beside a list
// is one message. Under template: none both are text.
func encodePromptCompletion(s *source, row value, t *chat.Template) ([]chat.Example, *fault) {
	p, c := s.columns["prompt"], s.columns["completion"]
	if p.holdsList(row) || c.holdsList(row) {
		return encodeSides(s, p, c, row, t)
	}
	prompt, f := p.text(row)
	if f != nil {
		return nil, f
	}
	completion, f := c.text(row)
	if f != nil {
		return nil, f
	}
	if t.HasRoles() {
		return encodeTurns(s, p, c, row, t, []chat.Message{{Role: "user", Content: prompt, Given: true}, {Role: "assistant", Content: completion}})
	}
	if f := s.noSystem(row); f != nil {
		return nil, f
	}
	exs, err := t.PromptCompletion(prompt, completion)
	if err != nil {
		return nil, fromChat(err, func(i int, _ string) string { return [2]string{p.String(), c.String()}[min(max(i, 0), 1)] })
	}
	return exs, nil
}

// encodeTurns encodes a prompt and a completion that are text, with the tools and documents of the row.
func encodeTurns(s *source, p, c *column, row value, t *chat.Template, ms []chat.Message) ([]chat.Example, *fault) {
	return s.encoded(row, ms, t, func(i int, field string) string {
		if i < 0 {
			return s.place(p.String(), i, field)
		}
		return [2]string{p.String(), c.String()}[i]
	})
}

// encodeSides joins the two lists of messages to one conversation, those of the prompt marked as given.
func encodeSides(s *source, p, c *column, row value, t *chat.Template) ([]chat.Example, *fault) {
	given, f := side(p, row, "user")
	if f != nil {
		return nil, f
	}
	for i := range given {
		given[i].Given = true
	}
	rest, f := side(c, row, "assistant")
	if f != nil {
		return nil, f
	}
	if len(rest) == 0 {
		return nil, bad(c.String(), "empty; a completion needs a message")
	}
	return s.encoded(row, append(given, rest...), t, func(i int, field string) string {
		if i < len(given) {
			return s.place(p.String(), i, field)
		}
		return element(c.String(), i-len(given), field)
	})
}

// side reads a list of messages, or text as one message of role.
func side(c *column, row value, role string) ([]chat.Message, *fault) {
	if c.holdsList(row) {
		ms, f := messages(c.raw(row), c.String())
		if f != nil {
			f.msg += c.noMessages(row)
		}
		return ms, f
	}
	text, f := c.text(row)
	if f != nil {
		return nil, f
	}
	return []chat.Message{{Role: role, Content: text}}, nil
}

// noMessages helps where a list is none of messages: what is meant is a text somewhere in it.
func (c *column) noMessages(row value) string {
	first := c.raw(row).item(0)
	if first == nil || !first.isObject() {
		return ""
	}
	for _, key := range []string{"role", "content", "from"} {
		if first.member(key) != nil {
			return ""
		}
	}
	for name, v := range first.members() {
		if v.isText() && !v.isBlank() {
			return fmt.Sprintf("; a list is read as messages, and a text in it has a path, such as %s.0.%s", c, name)
		}
	}
	return ""
}

func (c *column) holdsList(row value) bool {
	v := c.raw(row)
	return c.whole() && v != nil && v.isList()
}
