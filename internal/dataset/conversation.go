package dataset

import (
	"fmt"
	"strings"

	"trainer/internal/chat"
	"trainer/internal/chat/jinja"
)

// conversation joins messages and what the row has beside them for the template.
func (s *source) conversation(row value, ms []chat.Message) (c chat.Conversation, f *fault) {
	c.Messages = ms
	if c.Tools, f = s.objects(row, "tools"); f != nil {
		return c, f
	}
	c.Documents, f = s.objects(row, "documents")
	return c, f
}

// encoded renders messages, with what the row has beside them; at is where the row has message i, or a field of it, as place.
func (s *source) encoded(row value, ms []chat.Message, t *chat.Template, at func(i int, field string) string) ([]chat.Example, *fault) {
	system, f := s.system(row, ms)
	if f != nil {
		return nil, f
	}
	place := at
	if system != nil {
		ms = append([]chat.Message{*system}, ms...)
		place = func(i int, field string) string {
			if i == 0 {
				return s.columns["system"].String()
			}
			return at(max(i-1, -1), field)
		}
	}
	conv, f := s.conversation(row, ms)
	if f != nil {
		return nil, f
	}
	return render(t, conv, place)
}

// system is the system message that a row which is compared has in a column; nil where it has none, or begins with the same.
func (s *source) system(row value, ms []chat.Message) (*chat.Message, *fault) {
	c := s.columns["system"]
	if c == nil || !s.format.compared() {
		return nil, nil
	}
	if v := c.raw(row); c.whole() && (v == nil || v.isBlank()) {
		return nil, nil
	}
	text, f := c.text(row)
	if f != nil {
		return nil, f
	}
	if len(ms) > 0 && ms[0].Role == "system" {
		if ms[0].Content == text {
			return nil, nil
		}
		return nil, bad(c.String(), "stands beside another system message; one is due")
	}
	return &chat.Message{Role: "system", Content: text, Given: true, Fields: jinja.NewDict("role", "system", "content", text)}, nil
}

// noSystem refuses a system message of a column where text has no roles.
func (s *source) noSystem(row value) *fault {
	m, f := s.system(row, nil)
	if f == nil && m != nil {
		f = bad(s.columns["system"].String(), "chat.template: none writes no roles, so a system message has no place; put it into the prompt")
	}
	return f
}

// place is where the row has message i, or a field of it; for -1 the conversation, or what stands beside it.
func (s *source) place(messages string, i int, field string) string {
	if i >= 0 || field == "" {
		return element(messages, i, field)
	}
	name, rest, dotted := strings.Cut(field, ".")
	if c := s.columns[name]; c != nil {
		name = c.String()
	}
	if dotted {
		return name + "." + rest
	}
	return name
}

// objects is a list of objects beside the messages, such as tools; nil where the row has none. Some writers put it down as
// JSON text.
func (s *source) objects(row value, field string) ([]*jinja.Dict, *fault) {
	c := s.columns[field]
	if c == nil {
		return nil, nil
	}
	v := c.raw(row)
	if v == nil || v.isBlank() {
		return nil, nil
	}
	if v.isText() {
		inner := unquote(v)
		if err := check(inner); err != nil {
			return nil, bad(c.String(), "text that is not JSON: %v", err)
		}
		if v = trimmed(inner); v.isBlank() {
			return nil, nil
		}
	}
	return objects(v, c.String())
}

// objects reads a list of objects that stands under key.
func objects(v value, key string) ([]*jinja.Dict, *fault) {
	if !v.isList() {
		return nil, bad(key, "%s where a list of objects is due", v.kind())
	}
	var out []*jinja.Dict
	for i, item := range v.items() {
		if !item.isObject() {
			return nil, bad(element(key, i, ""), "%s where an object is due", item.kind())
		}
		t, err := decoded(item)
		if err != nil {
			return nil, bad(element(key, i, ""), "%v", err)
		}
		out = append(out, t.(*jinja.Dict))
	}
	return out, nil
}

// decoded is a checked value as templates see it: keys in order, whole numbers apart from fractions.
func decoded(v value) (jinja.Value, error) {
	switch v[0] {
	case '"':
		return v.text(), nil
	case 't', 'f':
		return v[0] == 't', nil
	case 'n':
		return nil, nil
	case '[':
		l := &jinja.List{Items: []jinja.Value{}}
		for i, item := range v.items() {
			t, err := decoded(item)
			if err != nil {
				return nil, fmt.Errorf("%d: %w", i, err)
			}
			l.Items = append(l.Items, t)
		}
		return l, nil
	case '{':
		d := jinja.NewDict()
		for k, item := range v.members() {
			t, err := decoded(item)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", k, err)
			}
			d.Set(string(k), t)
		}
		return d, nil
	}
	return jinja.Decode(v)
}
