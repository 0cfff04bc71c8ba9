package dataset

// isAlpaca tells whether rows of instruction and output have columns that make conversations of them; those that have not
// are a prompt and its completion. A format that is named messages asks for it, also where the first row has none of them.
func (s *source) isAlpaca(row value) bool {
	if row.member("instruction") == nil || row.member("output") == nil || (s.section.Format == "auto" && len(s.section.Fields) > 0) {
		return false
	}
	return s.section.Format == "messages" || row.member("system") != nil || row.member("history") != nil
}

// alpacaTurns reads {"system": …, "history": [[question, answer], …], "instruction": …, "input": …, "output": …}: the turns
// of history are the assistant's as its last one is.
func alpacaTurns(c *conversion, row value) *fault {
	if v := row.member("history"); v != nil && !v.isBlank() {
		if !v.isList() {
			return bad("history", "%s where a list of questions with their answers is due", v.kind())
		}
		for i, pair := range v.items() {
			if f := c.exchange(pair, element("history", i, "")); f != nil {
				return f
			}
		}
	}
	prompt, f := c.s.given["prompt"].text(row)
	if f != nil {
		return f
	}
	completion, f := c.s.given["completion"].text(row)
	if f != nil {
		return f
	}
	c.say("user", appendQuoted(nil, prompt))
	c.say("assistant", appendQuoted(nil, completion))
	return nil
}

// exchange reads [question, answer].
func (c *conversion) exchange(pair value, key string) *fault {
	if !pair.isList() {
		return bad(key, "%s where [question, answer] is due", pair.kind())
	}
	n := 0
	for i, text := range pair.items() {
		if n++; i > 1 || !text.isText() {
			return bad(element(key, i, ""), "%s where [question, answer] is due, two texts", text.kind())
		}
		c.say([]string{"user", "assistant"}[i], text)
	}
	if n != 2 {
		return bad(key, "%d texts where [question, answer] is due", n)
	}
	return nil
}

// alpacaPlace finds the column of message i.
func alpacaPlace(s *source, row value, i int, _ string) string {
	past := 0
	if v := row.member("history"); v != nil && v.isList() {
		for range v.items() {
			past += 2
		}
	}
	switch {
	case i < past:
		return element("history", i/2, []string{"0", "1"}[i%2])
	case i == past:
		return s.given["prompt"].String()
	}
	return s.given["completion"].String()
}

// unheard refuses a row that has turns which its source is read without, as training would drop them in silence.
func (s *source) unheard(row value) *fault {
	if s.dialect != nil || s.format.joins == nil {
		return nil
	}
	for _, key := range []string{"system", "history"} {
		v := row.member(key)
		if v == nil || v.isBlank() || s.columns[key] != nil {
			continue
		}
		if s.format.compared() {
			return bad(key, "not read in %s rows; write the earlier turns as messages, in prompt", s.format.name)
		}
		return bad(key, "the first row, %s, has no such column, so the source is read without; format: messages reads it", s.first)
	}
	return nil
}
