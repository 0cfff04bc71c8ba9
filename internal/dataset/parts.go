package dataset

import (
	"strings"

	"trainer/internal/chat"
	"trainer/internal/chat/jinja"
)

// partType is the type of a part of a message's content; text where it does not say.
func partType(part value) string {
	if !part.isObject() {
		return "text"
	}
	kind := part.member("type")
	if kind == nil || !kind.isText() {
		return "text"
	}
	return kind.text()
}

// hasOther tells whether a list of parts has one that is not text.
func hasOther(v value) bool {
	for _, part := range v.items() {
		if partType(part) != "text" {
			return true
		}
	}
	return false
}

// partText is the text of a part, which stands by itself or under a key: text, the name of the type, or, as some writers have
// it, value.
func partText(part value, key string) (string, *fault) {
	if part.isText() {
		return part.text(), nil
	}
	if !part.isObject() {
		return "", bad(key, "%s where text is due", part.kind())
	}
	for _, name := range []string{"text", partType(part), "value"} {
		switch text := part.member(name); {
		case text == nil:
		case !text.isText():
			return "", bad(key+"."+name, "%s where text is due", text.kind())
		default:
			return text.text(), nil
		}
	}
	return "", bad(key+".text", "missing; a part is {\"type\": \"text\", \"text\": …}")
}

// readParts reads content of which parts are no text: reasoning and tool calls go to the keys under which messages have them.
// What is no words is refused: there is nothing at the service to put it into.
func readParts(m *chat.Message, v value, key string) *fault {
	var content, reasoning strings.Builder
	calls := &jinja.List{}
	for i, part := range v.items() {
		place := element(key, i, "")
		switch kind := partType(part); kind {
		case "text", "reasoning", "thinking":
			text, f := partText(part, place)
			if f != nil {
				return f
			}
			if kind == "text" {
				content.WriteString(text)
			} else {
				reasoning.WriteString(text)
			}
		case "tool_call", "tool_use":
			call, f := partCall(part, place)
			if f != nil {
				return f
			}
			calls.Items = append(calls.Items, call)
		default:
			return bad(place+".type", "%q cannot be rendered; only parts of type text, reasoning and tool_call", kind)
		}
	}
	m.Content = content.String()
	m.Fields.Set("content", m.Content)
	if reasoning.Len() > 0 {
		m.Fields.Set("reasoning_content", reasoning.String())
	}
	if len(calls.Items) > 0 {
		m.Fields.Set("tool_calls", calls)
	}
	return nil
}

// partCall is a tool call that stands as a part: with its name and arguments (or input) in it, or in an object or JSON text under
// its value.
func partCall(part value, key string) (jinja.Value, *fault) {
	if inner := part.member("value"); inner != nil {
		part, key = inner, key+".value"
		if part.isText() {
			raw := unquote(part)
			if err := check(raw); err != nil {
				return nil, bad(key, "text that is not JSON: %v", err)
			}
			part = trimmed(raw)
		}
	}
	if !part.isObject() {
		return nil, bad(key, "%s where a tool call is due, as {\"name\": …, \"arguments\": …}", part.kind())
	}
	function := jinja.NewDict()
	arguments := part.member("arguments")
	if arguments == nil {
		arguments = part.member("input")
	}
	if part.member("name") == nil || arguments == nil {
		return nil, bad(key, "a tool call needs a name and arguments")
	}
	if f := setField(function, "name", part.member("name"), key+".name"); f != nil {
		return nil, f
	}
	if f := setField(function, "arguments", arguments, key+".arguments"); f != nil {
		return nil, f
	}
	call := jinja.NewDict("type", "function", "function", function)
	if id := part.member("id"); id != nil && id.isText() {
		call.Set("id", id.text())
	}
	return call, nil
}
