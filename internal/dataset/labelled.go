package dataset

import "trainer/internal/chat"

// encodeLabelled reads {"prompt": …, "completion": …, "label": true}, prompt and completion as rows of those are read.
func encodeLabelled(s *source, row value, t *chat.Template) (rendered, *fault) {
	good, f := label(s.columns["label"], row)
	if f != nil {
		return rendered{}, f
	}
	exs, f := encodePromptCompletion(s, row, t)
	return labelled(s.columns["completion"], good, exs, f)
}

// encodeLabelledMessages reads {"messages": […], "label": true}: the last message is what the label is of, and those before
// it are its prompt.
func encodeLabelledMessages(s *source, row value, t *chat.Template) (rendered, *fault) {
	c := s.columns["messages"]
	good, f := label(s.columns["label"], row)
	if f != nil {
		return rendered{}, f
	}
	ms, f := turns(s, c, row, "assistant")
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
	exs, f := s.encoded(row, ms, t, func(i int, field string) string { return s.place(c.String(), i, field) })
	return labelled(c, good, exs, f)
}

// labelled is a row of which c has what is labelled.
func labelled(c *column, good bool, exs []chat.Example, f *fault) (rendered, *fault) {
	if f == nil {
		f = single(exs, c.String())
	}
	if f != nil {
		return rendered{}, f
	}
	return rendered{sides: exs, desirable: good}, nil
}

// single is the fault of a side that is more than one sequence: what is compared is one.
func single(exs []chat.Example, key string) *fault {
	if len(exs) == 1 {
		return nil
	}
	return bad(key, "the template writes earlier answers otherwise once they are history, which makes %d sequences of the trained ones, and one is compared; chat.train_on: last_assistant_message trains the last alone", len(exs))
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
