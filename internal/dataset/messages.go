package dataset

import (
	"cmp"
	"fmt"
	"strings"

	"trainer/internal/chat"
	"trainer/internal/chat/jinja"
)

// encodeMessages reads {"messages": [{"role": …, "content": …}, …]}, with the tools and documents of the row.
func encodeMessages(s *source, row value, t *chat.Template) ([]chat.Example, *fault) {
	c := s.columns["messages"]
	v := c.raw(row)
	if v == nil {
		return nil, missing(row, c.String())
	}
	ms, f := messages(v, c.String())
	if f != nil {
		return nil, f
	}
	conv, f := s.conversation(row, ms)
	if f != nil {
		return nil, f
	}
	return render(t, conv, func(i int, field string) string { return s.place(c.String(), i, field) })
}

// render encodes a conversation, with its faults placed in the row.
func render(t *chat.Template, c chat.Conversation, place func(int, string) string) ([]chat.Example, *fault) {
	exs, err := t.Encode(c)
	if err != nil {
		return nil, fromChat(err, place)
	}
	return exs, nil
}

// element is the key of a list's element, or of a field of it; of the list itself for a negative index.
func element(key string, i int, field string) string {
	switch {
	case i < 0:
		return key
	case field == "":
		return fmt.Sprintf("%s.%d", key, i)
	}
	return fmt.Sprintf("%s.%d.%s", key, i, field)
}

// messages reads a list of messages that stands under key.
func messages(v value, key string) ([]chat.Message, *fault) {
	if !v.isList() {
		return nil, bad(key, "%s where a list of messages is due", v.kind())
	}
	var ms []chat.Message
	for i, item := range v.items() {
		m, f := message(item, element(key, i, ""))
		if f != nil {
			return nil, f
		}
		ms = append(ms, m)
	}
	return ms, nil
}

// message reads one. What it holds beyond role, content, train and weight goes to the template, which refuses what it would
// drop; what is null or an empty list or object is left out.
func message(v value, key string) (m chat.Message, f *fault) {
	if kind := v.kind(); kind != "an object" {
		return m, bad(key, "%s where a message is due, as {\"role\": …, \"content\": …}", kind)
	}
	m.Fields = jinja.NewDict()
	var role, content, more bool
	other := "" // the first key of no message
	for k, item := range v.members() {
		name, place := string(k), key+"."+string(k)
		switch name {
		case "role":
			if role = item.isText(); !role {
				return m, bad(place, "%s where text is due", item.kind())
			}
			m.Role = item.text()
			m.Fields.Set(name, m.Role)
		case "content":
			if content = !item.isNull(); !content {
				continue
			}
			if f = readContent(&m, item, place); f != nil {
				return m, f
			}
		case "train":
			m.Train, f = optionalTruth(item, place)
		case "weight":
			m.Weight, f = optionalNumber(item, place)
		default:
			if item.isNull() || item.isBlank() && !item.isText() {
				continue
			}
			more = more || !item.isBlank() && name != "name"
			if !item.isBlank() {
				other = cmp.Or(other, name)
			}
			f = setField(m.Fields, name, item, place)
		}
		if f != nil {
			return m, f
		}
	}
	switch {
	case !role && other != "":
		return m, bad(key+"."+other, "%s", chat.UnknownKey(other))
	case !role:
		return m, bad(key+".role", "missing")
	case content || more && m.Role == "assistant":
		return m, nil
	case v.member("content") != nil:
		return m, bad(key+".content", "null where text is due")
	}
	return m, bad(key+".content", "missing")
}

// setField sets a key of a message to what the row has there.
func setField(d *jinja.Dict, name string, v value, key string) *fault {
	val, err := decoded(v)
	if err != nil {
		return bad(key, "%v", err)
	}
	d.Set(name, val)
	return nil
}

// readContent reads text, or a list of parts. Parts of text are joined as they are, as most templates take no others; those
// of reasoning and of tool calls go to the keys under which messages have them.
func readContent(m *chat.Message, v value, key string) (f *fault) {
	if v.isList() && hasOther(v) {
		return readParts(m, v, key)
	}
	if m.Content, f = messageContent(v, key); f == nil {
		m.Fields.Set("content", m.Content)
	}
	return f
}

// messageContent reads text, or a list of parts of text, which are joined as they are.
func messageContent(v value, key string) (string, *fault) {
	if v.isText() {
		return v.text(), nil
	}
	if !v.isList() {
		return "", bad(key, "%s where text is due", v.kind())
	}
	var out strings.Builder
	for i, part := range v.items() {
		text, f := partText(part, element(key, i, ""))
		if f != nil {
			return "", f
		}
		out.WriteString(text)
	}
	return out.String(), nil
}

func optionalTruth(v value, key string) (*bool, *fault) {
	if v.isNull() {
		return nil, nil
	}
	is, ok := v.truth()
	if !ok {
		return nil, bad(key, "%s where true or false is due", v.kind())
	}
	return &is, nil
}

func optionalNumber(v value, key string) (*float64, *fault) {
	if v.isNull() {
		return nil, nil
	}
	n, ok := v.number()
	if !ok {
		return nil, bad(key, "%s where a number is due", v.kind())
	}
	return &n, nil
}
