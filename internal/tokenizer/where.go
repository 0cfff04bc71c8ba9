package tokenizer

// EncodeWhere is Encode of one whole text, but what spells a control token at bytes [from, to) becomes that token where
// control says so.
func (t *Tokenizer) EncodeWhere(text string, control func(from, to int) bool) (ids []int32, ends []int) {
	done := 0
	for at := 0; at < len(text); {
		id, ok := int32(0), false
		if text[at] == '<' || text[at] == '[' {
			id, ok = t.controlAt(text[at:])
		}
		if !ok {
			at++
			continue
		}
		n := len(t.control[id-256])
		if control(at, at+n) {
			ids, ends = appendBytes(ids, ends, text[done:at], done)
			done = at + n
			ids, ends = append(ids, id), append(ends, done)
		}
		at += n
	}
	return appendBytes(ids, ends, text[done:], done)
}

// Begin is what is put before a lone text.
func (t *Tokenizer) Begin() []int32 { return []int32{256} }

// End is the end token.
func (t *Tokenizer) End() (int32, bool) { return 257, true }

// IsControl tells control tokens.
func (t *Tokenizer) IsControl(id int32) bool { return id >= 256 }

// ConfigJSON is the tokenizer_config.json, nil for none.
func (t *Tokenizer) ConfigJSON() []byte { return nil }

// ChatTemplates are those in files of their own, by name.
func (t *Tokenizer) ChatTemplates() map[string]string { return nil }
