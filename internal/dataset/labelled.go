package dataset

import "trainer/internal/chat"

// encodeLabelled reads {"prompt": …, "completion": …, "label": true}, prompt and completion as rows of those are read.
func encodeLabelled(s *source, row value, t *chat.Template) (rendered, *fault) {
	good, f := label(s.columns["label"], row)
	if f != nil {
		return rendered{}, f
	}
	ex, f := encodePromptCompletion(s, row, t)
	return rendered{sides: []chat.Example{ex}, desirable: good}, f
}

// encodeLabelledMessages reads {"messages": […], "label": true}: the last message is what the label is of, and those before
// it are its prompt.
func encodeLabelledMessages(s *source, row value, t *chat.Template) (rendered, *fault) {
	c := s.columns["messages"]
	good, f := label(s.columns["label"], row)
	if f != nil {
		return rendered{}, f
	}
	ms, f := turns(c, row, "assistant")
	if f != nil {
		return rendered{}, f
	}
	last := len(ms) - 1
	if last < 0 || ms[last].Role != "assistant" {
		return rendered{}, bad(element(c.String(), last, ""), "a label is of the last message, which has to be the assistant's")
	}
	for i := range ms[:last] {
		ms[i].Given = true
	}
	ex, f := render(t, ms, func(i int, field string) string { return element(c.String(), i, field) })
	return rendered{sides: []chat.Example{ex}, desirable: good}, f
}

func label(c *column, row value) (bool, *fault) {
	v := c.raw(row)
	if v == nil {
		return false, missing(row, c.String())
	}
	good, ok := v.truth()
	if !ok {
		return false, bad(c.String(), "%s where a label is due: true for a completion that is wanted, false for one that is not", v.kind())
	}
	return good, nil
}
