package dataset

import "trainer/internal/chat"

// encodeText reads {"text": …}: all of it is trained, whatever chat.train_on says, as there is no one who speaks.
func encodeText(s *source, row value, t *chat.Template) (chat.Example, *fault) {
	c := s.columns["text"]
	text, f := c.text(row)
	if f != nil {
		return chat.Example{}, f
	}
	ex, err := t.Text(text)
	if err != nil {
		return ex, fromChat(err, func(int, string) string { return c.String() })
	}
	return ex, nil
}
