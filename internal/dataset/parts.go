package dataset

// isParted tells whether the content of a message is parts that have what they say under value.
func isParted(m value) bool {
	if !m.isObject() {
		return false
	}
	content, role := m.member("content"), m.member("role")
	if content == nil || !content.isList() || role == nil || !role.isText() {
		return false
	}
	first := content.item(0)
	return first != nil && first.isObject() && first.member("type") != nil && first.member("value") != nil
}

// parted reads a message whose content is a list of {"type": …, "value": …}: text, reasoning, and calls of functions.
func (c *conversion) parted(m value, key string) *fault {
	content, role := m.member("content"), m.member("role")
	var text, thought []byte
	var called []value
	thinks := false
	for i, part := range content.items() {
		place := element(key+".content", i, "")
		kind, v, f := typedValue(part, place)
		if f != nil {
			return f
		}
		switch kind {
		case "text":
			text = append(text, unquote(v)...)
		case "reasoning", "thinking":
			thinks, thought = true, append(thought, unquote(v)...)
		case "tool_call", "function_call":
			called = append(called, v)
		default:
			return bad(place+".type", "%s cannot be rendered; only parts of text, reasoning and tool_call", brief(kind))
		}
	}
	c.next()
	c.out = append(append(c.out, `{"role":`...), role...)
	if thinks {
		c.key("reasoning_content")
		c.out = appendQuoted(c.out, string(thought))
	}
	c.key("content")
	c.out = appendQuoted(c.out, string(text))
	if len(called) > 0 {
		if f := c.calls(called, key+".content"); f != nil {
			return f
		}
	}
	return c.others(m, key, ofMessage, []string{"role", "content"})
}

func typedValue(part value, key string) (kind string, v value, f *fault) {
	if !part.isObject() {
		return "", nil, bad(key, "%s where a part is due, as {\"type\": \"text\", \"value\": …}", part.kind())
	}
	t, v := part.member("type"), part.member("value")
	switch {
	case t == nil || !t.isText():
		return "", nil, bad(key+".type", "missing; a part is {\"type\": \"text\", \"value\": …}")
	case v == nil:
		return "", nil, bad(key+".value", "missing")
	}
	if kind = t.text(); !v.isText() && kind != "tool_call" && kind != "function_call" {
		return "", nil, bad(key+".value", "%s where text is due", v.kind())
	}
	return kind, v, nil
}

// appendQuoted writes JSON text. What it is given is UTF-8, as it comes from rows that were checked.
func appendQuoted(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for i := 0; i < len(s); i++ {
		switch b := s[i]; {
		case b == '"' || b == '\\':
			dst = append(dst, '\\', b)
		case b < 0x20:
			dst = append(dst, '\\', 'u', '0', '0', "0123456789abcdef"[b>>4], "0123456789abcdef"[b&15])
		default:
			dst = append(dst, b)
		}
	}
	return append(dst, '"')
}
