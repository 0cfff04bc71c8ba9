package dataset

import "strings"

// hearSides finds out whether prompt and completion are messages of another dialect, or one message without its list.
func (s *source) hearSides(row value) {
	for _, field := range []string{"prompt", "completion"} {
		c := s.columns[field]
		v := c.raw(row)
		if !c.whole() || v == nil {
			continue
		}
		first := v
		if v.isList() {
			first = v.item(0)
		}
		if first == nil || !first.isObject() || (v.isList() && !isSpoken(first)) {
			continue
		}
		s.dialect = &dialect{"prompt and completion as messages of from and value", sides, sidePlace}
		if !isSpoken(first) {
			s.dialect.name = "prompt and completion as messages"
		}
		s.given, s.columns = s.columns, s.format.columns()
		s.columns["prompt"], s.columns["completion"] = newColumn("prompt"), newColumn("completion")
		return
	}
}

// sides rewrites prompt and completion: a list of messages, or one message as a list of it, or text.
func sides(s *source, row value) (value, *fault) {
	c := &conversion{s: s, out: append(make([]byte, 0, len(row)+64), '{')}
	for i, field := range []string{"prompt", "completion"} {
		column := s.given[field]
		if i > 0 {
			c.out = append(c.out, ',')
		}
		c.out = append(appendQuoted(c.out, field), ':')
		v := column.raw(row)
		switch {
		case !column.whole() || v == nil || v.isText():
			text, f := column.text(row)
			if f != nil {
				return nil, f
			}
			c.out = appendQuoted(c.out, text)
			continue
		case !v.isList() && !v.isObject():
			return nil, bad(column.String(), "%s where text or messages are due", v.kind())
		}
		c.n, c.out = 0, append(c.out, '[')
		var f *fault
		if v.isObject() {
			f = c.one(v, column.String())
		} else {
			f = c.each(v, column.String())
		}
		if f != nil {
			return nil, f
		}
		c.out = append(c.out, ']')
	}
	return c.rest(row, "prompt", "completion"), nil
}

// sidePlace finds the message of a side, or the side.
func sidePlace(s *source, row value, key string) string {
	field, rest, _ := strings.Cut(key, ".")
	column := s.given[field]
	if column == nil {
		return key
	}
	v := column.raw(row)
	if !column.whole() || v == nil || v.isText() {
		return column.String()
	}
	number, rest, _ := strings.Cut(rest, ".")
	if v.isObject() {
		return placeIn(v, column.String(), rest)
	}
	return placeIn(lookup(v, number), joined(column.String(), number), rest)
}
