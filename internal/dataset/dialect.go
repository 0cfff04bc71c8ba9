package dataset

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"trainer/internal/diag"
)

// dialect is another way to write down conversations. Rows of one are rewritten to the columns of a format, with role and
// content in each message, before the format reads them; a fault is placed where the row itself has it.
type dialect struct {
	name    string // as people are told of it
	rewrite func(s *source, row value) (value, *fault)
	// place is where the row has what stands at key in the rewritten one.
	place func(s *source, row value, key string) string
}

// turned is the dialect of rows that become {"messages": […], "tools": […]}. turns writes the messages, each behind a comma
// but the first; place is where the row has message i, i >= 0, behind the system message of a column, and rest in it.
func turned(name string, turns func(c *conversion, row value) *fault, place func(s *source, row value, i int, rest string) string) *dialect {
	return &dialect{name,
		func(s *source, row value) (value, *fault) { return s.asMessages(row, turns) },
		func(s *source, row value, key string) string { return s.placeOfTurn(row, key, place) }}
}

// Columns that hold a conversation under auto, where fields maps none.
var conversationColumns = []string{"messages", "conversations", "conversation"}

// listens finds the dialect of a source by its first row: nil when rows are as the format wants them.
func (s *source) listens(row value) *dialect {
	if s.section.Format != "auto" && s.section.Format != "messages" {
		return nil
	}
	for _, c := range []string{"chosen", "rejected"} {
		if row.member(c) != nil {
			return nil // conversations are the prompt of a pair, whose format knows how they are written
		}
	}
	if label := row.member("label"); label != nil && s.section.Format == "auto" {
		if _, is := label.truth(); is {
			return nil
		}
	}
	if c, list := s.listColumn(row); c != nil {
		_, mapped := s.section.Fields["system"]
		return dialectOf(list, mapped || c.paths[0] != "messages")
	}
	if s.isAlpaca(row) {
		return turned("instruction, input and output, with system and history", alpacaTurns, alpacaPlace)
	}
	return nil
}

// dialectOf tells by the first message; nil for the shape that the format reads itself, where renamed does not ask for a
// rewrite in any case. The name is of the first message: each is read by its own shape.
func dialectOf(list value, renamed bool) *dialect {
	name := "conversations of role and content"
	switch first := list.item(0); {
	case first != nil && isSpoken(first):
		name = "conversations of from and value"
	case !renamed:
		return nil
	}
	return turned(name, listTurns, listPlace)
}

// isSpoken tells whether a message is {"from": …, "value": …}.
func isSpoken(m value) bool {
	return m.isObject() && m.member("from") != nil && m.member("role") == nil
}

// listColumn is the column of a conversation, and what the first row has in it; nil when there is none.
func (s *source) listColumn(row value) (*column, value) {
	names := conversationColumns
	if f, mapped := s.section.Fields["messages"]; mapped {
		c, err := compileColumn(f)
		if err != nil || !c.whole() {
			return nil, nil // compile says so
		}
		names = c.paths
	}
	for _, name := range names {
		c := newColumn(name)
		if v := c.raw(row); v != nil && v.isList() && (name != "conversation" || firstIsObject(v)) {
			return c, v
		}
	}
	return nil, nil
}

func firstIsObject(v value) bool {
	first := v.item(0)
	return first != nil && first.isObject()
}

// conversion writes the messages of one row.
type conversion struct {
	s   *source
	out []byte
	n   int // messages
}

// next stands before every message.
func (c *conversion) next() {
	if c.n++; c.n > 1 {
		c.out = append(c.out, ',')
	}
}

// message begins one, with all but its end.
func (c *conversion) message(role string) {
	c.next()
	c.out = append(append(c.out, `{"role":"`...), role...)
	c.out = append(c.out, '"')
}

// key writes a key of the message; its value follows.
func (c *conversion) key(name string) { c.out = fmt.Appendf(c.out, ",%q:", name) }

// say writes a message of text, which is JSON text already.
func (c *conversion) say(role string, text value) {
	c.message(role)
	c.key("content")
	c.out = append(append(c.out, text...), '}')
}

// canonical rewrites a row of a dialect; other rows stay as they are.
func (s *source) canonical(row value) (value, *fault) {
	if s.dialect == nil {
		return row, nil
	}
	return s.dialect.rewrite(s, row)
}

// asMessages rewrites a row to messages.
func (s *source) asMessages(row value, turns func(c *conversion, row value) *fault) (value, *fault) {
	c := &conversion{s: s, out: append(make([]byte, 0, len(row)+256), `{"messages":[`...)}
	if system := s.systemOf(row); system != nil {
		if f := s.alone(row, system); f != nil {
			return nil, f
		}
		c.say("system", system)
	}
	if f := turns(c, row); f != nil {
		return nil, f
	}
	c.out = append(c.out, ']')
	if f := c.tools(row); f != nil {
		return nil, f
	}
	return c.rest(row, "messages", "tools", "system"), nil
}

// rest writes the columns that went into none of these fields, and ends the row.
func (c *conversion) rest(row value, fields ...string) value {
	for key, v := range row.members() {
		name := string(key)
		consumed := slices.ContainsFunc(fields, func(field string) bool {
			column := c.s.given[field]
			return name == field || (column != nil && column.paths[0] == name)
		})
		if !consumed {
			c.out = append(appendQuoted(append(c.out, ','), name), ':')
			c.out = append(c.out, v...)
		}
	}
	return value(append(c.out, '}'))
}

// systemOf is the system message that a column has; nil when it has none.
func (s *source) systemOf(row value) value {
	if v := s.given["system"].raw(row); v != nil && !v.isBlank() {
		return v
	}
	return nil
}

// alone refuses what is no system message, or not the only one.
func (s *source) alone(row, system value) *fault {
	key := s.given["system"].String()
	if !system.isText() {
		return bad(key, "%s where text is due", system.kind())
	}
	list := s.given["messages"].raw(row)
	if list == nil || !list.isList() {
		return nil
	}
	for _, name := range []string{"from", "role"} {
		if first := list.item(0); first != nil && first.isObject() {
			if who := first.member(name); who != nil && string(who) == `"system"` {
				return bad(key, "stands beside a system message in %s; one is due", s.given["messages"])
			}
		}
	}
	return nil
}

// tools writes the functions of the row: a list, or text that is one. One that is named without its type gets it.
func (c *conversion) tools(row value) *fault {
	v := c.s.given["tools"].raw(row)
	if v == nil || v.isBlank() {
		return nil
	}
	key := c.s.given["tools"].String()
	list, f := inner(v, key)
	if f != nil {
		return f
	}
	if !list.isList() {
		return bad(key, "%s where a list of functions is due", list.kind())
	}
	c.out = append(c.out, `,"tools":[`...)
	for i, tool := range list.items() {
		if i > 0 {
			c.out = append(c.out, ',')
		}
		bare := tool.isObject() && tool.member("name") != nil && tool.member("type") == nil && tool.member("function") == nil
		if bare {
			c.out = append(c.out, `{"type":"function","function":`...)
		}
		if c.out = append(c.out, tool...); bare {
			c.out = append(c.out, '}')
		}
	}
	c.out = append(c.out, ']')
	return nil
}

// inner is what JSON text holds, itself JSON; anything else is itself.
func inner(v value, key string) (value, *fault) {
	if !v.isText() {
		return v, nil
	}
	text := unquote(v)
	if err := check(text); err != nil {
		return nil, bad(key, "text that is not JSON: %v", err)
	}
	return trimmed(text), nil
}

// restore places a fault of a rewritten row where the row itself has it.
func (s *source) restore(row value, f *fault) *fault {
	if s.dialect != nil && f != nil {
		f.key = s.dialect.place(s, row, f.key)
	}
	return f
}

func (s *source) placeOfTurn(row value, key string, place func(s *source, row value, i int, rest string) string) string {
	head, rest, _ := strings.Cut(key, ".")
	switch head {
	case "tools":
		return joined(s.given["tools"].String(), rest)
	case "messages":
		number, rest, _ := strings.Cut(rest, ".")
		i, err := strconv.Atoi(number)
		switch {
		case err != nil:
			return s.given["messages"].String()
		case s.systemOf(row) == nil:
			return place(s, row, i, rest)
		case i == 0:
			return s.given["system"].String()
		}
		return place(s, row, i-1, rest)
	}
	return key
}

func joined(key, rest string) string {
	if rest == "" {
		return key
	}
	return key + "." + rest
}

// listPlace is the place in a list of messages.
func listPlace(s *source, row value, i int, rest string) string {
	column := s.given["messages"]
	var m value
	if list := column.raw(row); list != nil && list.isList() {
		m = list.item(i)
	}
	return placeIn(m, element(column.String(), i, ""), rest)
}

// placeIn is the place in a message, nil where there is none, that stands at key.
func placeIn(m value, key, rest string) string {
	role, content := "role", "content"
	if m != nil && isSpoken(m) {
		role, content = "from", "value"
	}
	switch name, inside, _ := strings.Cut(rest, "."); name {
	case "role":
		return key + "." + role
	case "content":
		return joined(key+"."+content, inside)
	case "tool_calls", "reasoning_content":
		return key + "." + content
	}
	return joined(key, rest)
}

// listTurns reads a list of messages.
func listTurns(c *conversion, row value) *fault {
	column := c.s.given["messages"]
	list := column.raw(row)
	switch {
	case list == nil:
		return missing(row, column.String())
	case !list.isList():
		return bad(column.String(), "%s where a list of messages is due", list.kind())
	}
	return c.each(list, column.String())
}

// each writes the messages of a list, each by its own shape.
func (c *conversion) each(list value, key string) (f *fault) {
	for i, m := range list.items() {
		if f = c.one(m, element(key, i, "")); f != nil {
			break
		}
	}
	return f
}

func (c *conversion) one(m value, key string) *fault {
	if isSpoken(m) {
		return c.spoken(m, key)
	}
	c.next() // as a format reads it, or at fault in its words
	c.out = append(c.out, m...)
	return nil
}

// speakers are what others call the roles.
var speakers = map[string]string{
	"human": "user", "user": "user", "gpt": "assistant", "assistant": "assistant", "model": "assistant", "chatgpt": "assistant", "bot": "assistant",
	"system": "system", "observation": "tool", "tool": "tool", "function": "tool", "function_response": "tool", "tool_response": "tool",
	"function_call": calls, "tool_call": calls,
}

// calls is the speaker whose value is a call of a function, or a list of them.
const calls = "calls"

// spoken reads {"from": "human", "value": …}.
func (c *conversion) spoken(m value, key string) *fault {
	from, said := m.member("from"), m.member("value")
	switch {
	case !from.isText():
		return bad(key+".from", "%s where text is due", from.kind())
	case said == nil:
		return bad(key+".value", "missing")
	case !said.isText():
		return bad(key+".value", "%s where text is due", said.kind())
	}
	role, known := speakers[from.text()]
	switch {
	case !known:
		names := []string{"human", "gpt", "system", "function_call", "observation", "tool"}
		return bad(key+".from", "%s is not a speaker (%s)%s", brief(from.text()), strings.Join(names, ", "), diag.DidYouMean(from.text(), names))
	case role == calls:
		c.message("assistant")
		c.key("content")
		c.out = append(c.out, `""`...)
		if f := c.calls([]value{said}, key+".value"); f != nil {
			return f
		}
	default:
		c.message(role)
		c.key("content")
		c.out = append(c.out, said...)
	}
	return c.others(m, key, ofMessage, []string{"from", "value"})
}

// others writes the keys of an object that have no other name here, and ends it. Blank ones say nothing; one that was
// written already, under another name, is refused.
func (c *conversion) others(m value, key string, written, but []string) *fault {
	for k, v := range m.members() {
		name := string(k)
		if v.isBlank() || slices.Contains(but, name) {
			continue
		}
		if slices.Contains(written, name) {
			return bad(key+"."+name, "stands beside what says the same (%s); give one", strings.Join(but, ", "))
		}
		c.out = append(appendQuoted(append(c.out, ','), name), ':')
		c.out = append(c.out, v...)
	}
	c.out = append(c.out, '}')
	return nil
}

// ofMessage are the keys that a rewritten message may have.
var ofMessage = []string{"role", "content", "reasoning_content", "tool_calls"}

// calls writes the calls of a message, each {"name": …, "arguments": …}, or a list of those, as JSON text or itself.
func (c *conversion) calls(each []value, key string) *fault {
	c.key("tool_calls")
	c.out = append(c.out, '[')
	first := true
	for _, v := range each {
		v, f := inner(v, key)
		if f != nil {
			return f
		}
		many := []value{v}
		if v.isList() {
			many = nil
			for _, one := range v.items() {
				many = append(many, one)
			}
		}
		for _, one := range many {
			if !first {
				c.out = append(c.out, ',')
			}
			first = false
			if f := c.call(one, key); f != nil {
				return f
			}
		}
	}
	if first {
		return bad(key, "no call; one is due, as {\"name\": …, \"arguments\": {…}}")
	}
	c.out = append(c.out, ']')
	return nil
}

func (c *conversion) call(v value, key string) *fault {
	if !v.isObject() {
		return bad(key, "%s where a call is due, as {\"name\": …, \"arguments\": {…}}", v.kind())
	}
	if function := v.member("function"); function != nil && function.isObject() {
		c.out = append(c.out, v...) // it has the shape already
		return nil
	}
	name, arguments := v.member("name"), v.member("arguments")
	if arguments == nil {
		arguments = v.member("parameters")
	}
	switch {
	case name == nil || !name.isText():
		return bad(key, "a call without the name of its function; one is {\"name\": …, \"arguments\": {…}}")
	case arguments == nil || arguments.isNull():
		arguments = value("{}")
	case !arguments.isObject() && !arguments.isText():
		return bad(key, "%s where the arguments of a call are due, as {…}", arguments.kind())
	}
	c.out = append(c.out, `{"type":"function","function":{"name":`...)
	c.out = append(append(c.out, name...), `,"arguments":`...)
	c.out = append(append(c.out, arguments...), '}')
	return c.others(v, key, []string{"function"}, []string{"name", "arguments", "parameters", "type"})
}
