package dataset

import (
	"fmt"
	"strings"

	"trainer/internal/chat"
	"trainer/internal/diag"
)

// encodeMessages reads {"messages": [{"role": …, "content": …}, …]}.
func encodeMessages(s *source, row value, t *chat.Template) (chat.Example, *fault) {
	c := s.columns["messages"]
	v := c.raw(row)
	if v == nil {
		return chat.Example{}, missing(row, c.String())
	}
	ms, f := messages(v, c.String())
	if f != nil {
		return chat.Example{}, f
	}
	return render(t, ms, func(i int, field string) string { return element(c.String(), i, field) })
}

// render encodes a conversation, with its faults placed in the row.
func render(t *chat.Template, ms []chat.Message, place func(int, string) string) (chat.Example, *fault) {
	ex, err := t.Encode(ms)
	if err != nil {
		return chat.Example{}, fromChat(err, place)
	}
	return ex, nil
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

// message reads one. What it holds beyond role, content, train and weight is refused, as training would drop it in
// silence, unless it is blank.
func message(v value, key string) (m chat.Message, f *fault) {
	if !v.isObject() {
		return m, bad(key, "%s where a message is due, as {\"role\": …, \"content\": …}", v.kind())
	}
	var role, content bool
	for k, item := range v.members() {
		place := key + "." + string(k)
		switch string(k) {
		case "role":
			if role = item.isText(); !role {
				return m, bad(place, "%s where text is due", item.kind())
			}
			m.Role = item.text()
		case "content":
			content = true
			if m.Content, f = messageContent(item, place); f != nil {
				return m, f
			}
		case "train":
			if m.Train, f = optionalTruth(item, place); f != nil {
				return m, f
			}
		case "weight":
			if m.Weight, f = optionalNumber(item, place); f != nil {
				return m, f
			}
		default:
			if !item.isBlank() {
				return m, bad(place, "%s", unknownMessageKey(string(k)))
			}
		}
	}
	switch {
	case !role:
		return m, bad(key+".role", "missing")
	case !content:
		return m, bad(key+".content", "missing")
	}
	return m, nil
}

// messageContent reads text, or a list of parts of text, which are joined as they are. Some writers call the text of a
// part its value.
func messageContent(v value, key string) (string, *fault) {
	if v.isText() {
		return v.text(), nil
	}
	if !v.isList() {
		return "", bad(key, "%s where text is due", v.kind())
	}
	var out strings.Builder
	for i, part := range v.items() {
		place := element(key, i, "")
		if part.isText() {
			out.WriteString(part.text())
			continue
		}
		if !part.isObject() {
			return "", bad(place, "%s where text is due", part.kind())
		}
		if kind := part.member("type"); kind != nil && kind.isText() && kind.text() != "text" {
			return "", bad(place+".type", "%q cannot be rendered; only parts of type text", kind.text())
		}
		key, text := place+".text", part.member("text")
		if text == nil {
			key, text = place+".value", part.member("value")
		}
		switch {
		case text == nil:
			return "", bad(place+".text", "missing; a part is {\"type\": \"text\", \"text\": …}")
		case !text.isText():
			return "", bad(key, "%s where text is due", text.kind())
		}
		out.WriteString(text.text())
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

func unknownMessageKey(key string) string {
	switch key {
	case "from":
		return `not a key of a message; here it is called "role"`
	case "value", "text":
		return `not a key of a message; here it is called "content"`
	case "tool_calls", "function_call", "tool_call_id", "name", "reasoning_content", "reasoning", "thinking":
		return "the template cannot render it, so training would drop it; write it into the content, or leave it out"
	}
	keys := []string{"role", "content", "train", "weight"}
	return "not a key of a message (" + strings.Join(keys, ", ") + ")" + diag.DidYouMean(key, keys)
}
