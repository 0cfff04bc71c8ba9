package dataset

import "trainer/internal/chat"

// spoken are the names that conversations of from and value give to the roles.
var spoken = map[string]string{
	"human": "user", "user": "user", "gpt": "assistant", "assistant": "assistant", "function_call": "assistant",
	"observation": "tool", "tool": "tool", "system": "system",
}

// turns reads one message or a list of them, as role and content or as from and value; text is one message of role.
func turns(c *column, row value, role string) ([]chat.Message, *fault) {
	v := c.raw(row)
	switch {
	case v == nil:
		return nil, missing(row, c.String())
	case !c.whole() || v.isText():
		text, f := c.text(row)
		return []chat.Message{{Role: role, Content: text}}, f
	case v.isObject():
		m, f := turn(v, c.String())
		return []chat.Message{m}, f
	case !v.isList():
		return nil, bad(c.String(), "%s where text, a message or a list of messages is due", v.kind())
	}
	var ms []chat.Message
	for i, item := range v.items() {
		m, f := turn(item, element(c.String(), i, ""))
		if f != nil {
			return nil, f
		}
		ms = append(ms, m)
	}
	return ms, nil
}

// turn reads one message of either dialect.
func turn(v value, key string) (chat.Message, *fault) {
	if !v.isObject() || v.member("from") == nil {
		return message(v, key)
	}
	from, text := v.member("from"), v.member("value")
	switch {
	case !from.isText():
		return chat.Message{}, bad(key+".from", "%s where text is due", from.kind())
	case text == nil:
		return chat.Message{}, bad(key+".value", "missing")
	case !text.isText():
		return chat.Message{}, bad(key+".value", "%s where text is due", text.kind())
	}
	role, known := spoken[from.text()]
	if !known {
		return chat.Message{}, bad(key+".from", "%s is not a speaker (human, gpt, system, observation, function_call)", brief(from.text()))
	}
	for k, item := range v.members() {
		if name := string(k); name != "from" && name != "value" && !item.isBlank() {
			return chat.Message{}, bad(key+"."+name, "not a key of a message (from, value)")
		}
	}
	return chat.Message{Role: role, Content: text.text()}, nil
}
