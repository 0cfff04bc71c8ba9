package dataset

import (
	"fmt"

	"trainer/internal/chat"
)

// encodePromptCompletion reads {"prompt": …, "completion": …}: each is text, or a list of messages; text beside a list
// is one message. Under template: none both are text.
func encodePromptCompletion(s *source, row value, t *chat.Template) (chat.Example, *fault) {
	p, c := s.columns["prompt"], s.columns["completion"]
	if p.holdsList(row) || c.holdsList(row) {
		return encodeSides(p, c, row, t)
	}
	prompt, f := p.text(row)
	if f != nil {
		return chat.Example{}, f
	}
	completion, f := c.text(row)
	if f != nil {
		return chat.Example{}, f
	}
	ex, err := t.PromptCompletion(prompt, completion)
	if err != nil {
		return ex, fromChat(err, func(i int, _ string) string { return [2]string{p.String(), c.String()}[min(max(i, 0), 1)] })
	}
	return ex, nil
}

// encodeSides joins the two lists of messages to one conversation, those of the prompt marked as given.
func encodeSides(p, c *column, row value, t *chat.Template) (chat.Example, *fault) {
	given, f := side(p, row, "user")
	if f != nil {
		return chat.Example{}, f
	}
	for i := range given {
		given[i].Given = true
	}
	rest, f := side(c, row, "assistant")
	if f != nil {
		return chat.Example{}, f
	}
	if len(rest) == 0 {
		return chat.Example{}, bad(c.String(), "empty; a completion needs a message")
	}
	return render(t, append(given, rest...), func(i int, field string) string {
		if i < len(given) {
			return element(p.String(), i, field)
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
