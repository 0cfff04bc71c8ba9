package dataset

import (
	"trainer/internal/chat"
	"trainer/internal/chat/jinja"
)

// turns reads one message or a list of them, as role and content or as from and value; text is one message of role.
func turns(s *source, c *column, row value, role string) ([]chat.Message, *fault) {
	v := c.raw(row)
	switch {
	case v == nil:
		return nil, missing(row, c.String())
	case !c.whole() || v.isText():
		text, f := c.text(row)
		m := chat.Message{Role: role, Content: text, Fields: jinja.NewDict("role", role, "content", text)} // as it would be read from a list
		return []chat.Message{m}, f
	case v.isObject():
		list, f := s.spelled(v, c.String(), false)
		if f != nil {
			return nil, f
		}
		m, f := message(list.item(0), c.String())
		return []chat.Message{m}, f
	case !v.isList():
		return nil, bad(c.String(), "%s where text, a message or a list of messages is due", v.kind())
	}
	list, f := s.spelled(v, c.String(), true)
	if f != nil {
		return nil, f
	}
	return messages(list, c.String())
}

// spelled writes messages of from and value as those of role and content.
func (s *source) spelled(v value, key string, list bool) (value, *fault) {
	c := &conversion{s: s, out: append(make([]byte, 0, len(v)+64), '[')}
	var f *fault
	if list {
		f = c.each(v, key)
	} else {
		f = c.one(v, key)
	}
	return value(append(c.out, ']')), f
}
