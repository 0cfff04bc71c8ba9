package tokenizer

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// readModel reads the model, a BPE.
func (b *builder) readModel(f fields) error {
	kind, err := f.optional("type")
	if err != nil {
		return err
	}
	if kind != "" && kind != "BPE" {
		return f.unsupported(kind, "models: BPE; "+otherwise)
	}
	if b.t.model == nil {
		b.t.model = &bpe{}
	}
	if err := b.modelOptions(f); err != nil {
		return err
	}
	if err := b.vocabulary(f); err != nil {
		return err
	}
	if err := b.modelSymbols(f); err != nil {
		return err
	}
	if err := b.merges(f); err != nil {
		return err
	}
	b.modelTexts()
	return nil
}

func (b *builder) modelOptions(f fields) (err error) {
	m := b.t.model
	for _, option := range []struct {
		name string
		into *bool
	}{{"byte_fallback", &m.byteFallback}, {"ignore_merges", &m.ignoreMerges}, {"fuse_unk", &m.fuseUnknown}} {
		if *option.into, err = f.flag(option.name, false); err != nil {
			return err
		}
	}
	for _, name := range []string{"continuing_subword_prefix", "end_of_word_suffix"} {
		if text, err := f.optional(name); err != nil {
			return err
		} else if text != "" {
			return f.refuse(name, "%q is not supported", text)
		}
	}
	if s, ok := f.value("dropout"); ok {
		var share float64
		if err := s.decode("model.dropout", &share); err != nil {
			return err
		}
		if share != 0 {
			return f.refuse("dropout", "%v is not supported: it makes tokens random", share)
		}
	}
	return nil
}

// vocabulary reads model.vocab.
func (b *builder) vocabulary(f fields) error {
	s, ok := f.value("vocab")
	if !ok {
		return f.refuse("vocab", "missing; the vocabulary should be here")
	}
	b.ids = make(map[string]int32, (len(f.src)-s.at)/64)
	err := s.object("model.vocab", func(token string) error {
		s.peek()
		at := s.at
		id, err := s.id()
		if err != nil {
			return err
		}
		if _, twice := b.ids[token]; twice {
			return s.fail(at, "model.vocab: %q has two ids", token)
		}
		return b.name(s, at, token, id)
	})
	b.count = len(b.ids)
	return err
}

// name gives an id to a token of the vocabulary.
func (b *builder) name(s *scanner, at int, token string, id int32) error {
	b.grow(id)
	if b.has[id] {
		return s.fail(at, "model.vocab: id %d is of %q and of %q", id, b.byID[id], token)
	}
	b.ids[token], b.byID[id], b.has[id] = id, token, true
	return nil
}

// grow makes room for an id.
func (b *builder) grow(id int32) {
	if n := int(id) + 1; n > len(b.byID) {
		b.byID = slices.Grow(b.byID, n-len(b.byID))[:n]
		b.has = slices.Grow(b.has, n-len(b.has))[:n]
	}
}

// modelSymbols finds the tokens of single bytes, and the unknown token.
func (b *builder) modelSymbols(f fields) error {
	m := b.t.model
	found := 0
	for i := range m.symbols {
		name := string(byteRunes[i])
		if !m.byteLevel {
			name = fmt.Sprintf("<0x%02X>", i)
		}
		m.symbols[i] = -1
		if id, ok := b.ids[name]; ok {
			m.symbols[i] = id
			found++
		}
	}
	m.unknown = -1
	if m.byteFallback && !m.byteLevel {
		if b := b.unreachable(); found > 0 && b >= 0 {
			return f.refuse("byte_fallback", "true, but the vocabulary has no <0x%02X>: only all of the bytes or none are supported", b)
		}
		m.byteFallback = found > 0
	}
	unknown, err := f.optional("unk_token")
	if err != nil || unknown == "" {
		return err
	}
	id, ok := b.ids[unknown]
	if ok {
		m.unknown = id
	} else if found < 256 {
		err = f.refuse("unk_token", "%q is not in the vocabulary", unknown)
	}
	return err
}

// unreachable is a byte that has neither a token nor, as a character, one of its own; -1 where there is none.
func (b *builder) unreachable() int {
	for i, id := range b.t.model.symbols {
		if _, whole := b.ids[string(rune(i))]; id < 0 && (i >= utf8.RuneSelf || !whole) {
			return i
		}
	}
	return -1
}

// merges reads model.merges, as "a b" or ["a", "b"].
func (b *builder) merges(f fields) error {
	s, ok := f.value("merges")
	if !ok {
		return f.refuse("merges", "missing; the merges should be here")
	}
	type merge struct{ a, b, into int32 }
	var all []merge
	var joined []byte
	err := s.array("model.merges", func(i int) error {
		s.peek()
		at := s.at
		left, right, err := s.pair()
		if err != nil {
			return err
		}
		a, okA := b.ids[left]
		c, okB := b.ids[right]
		joined = append(append(joined[:0], left...), right...)
		into, ok := b.ids[string(joined)]
		if !ok || !okA || !okB {
			return s.fail(at, "model.merges[%d]: %q and %q make %q, and not all of them are in the vocabulary", i, left, right, joined)
		}
		all = append(all, merge{a, c, into})
		return nil
	})
	b.t.model.merges = newMergeTable(len(all))
	for rank, m := range all {
		b.t.model.merges.put(m.a, m.b, rank, m.into)
	}
	return err
}

// pair takes the two sides of a merge.
func (s *scanner) pair() (left, right string, err error) {
	if s.peek() != '[' {
		at := s.at
		text, err := s.text("a merge")
		left, right, ok := strings.Cut(text, " ")
		if err == nil && (!ok || strings.Contains(right, " ")) {
			err = s.fail(at, "a merge is two tokens with one space between, not %q", text)
		}
		return left, right, err
	}
	sides := [2]*string{&left, &right}
	at, n := s.at, 0
	err = s.array("a merge", func(i int) error {
		text, err := s.text("a token")
		if n++; err == nil && i < 2 {
			*sides[i] = text
		}
		return err
	})
	if err == nil && n != 2 {
		err = s.fail(at, "a merge is two tokens, not %d", n)
	}
	return left, right, err
}

// modelTexts lays out what tokens stand for, apart from the file, which is then no longer needed.
func (b *builder) modelTexts() {
	m := b.t.model
	var all []byte
	ends := make([]int, len(b.byID))
	mapped := make([]bool, len(b.byID)) // spelt in the alphabet of bytes, where there is one
	for id, text := range b.byID {
		raw, ok := text, true
		if m.byteLevel {
			if raw, ok = unmap(text); !ok {
				raw = text
			}
		}
		all, mapped[id] = append(all, raw...), ok
		ends[id] = len(all)
	}
	arena, from := string(all), 0
	m.texts, m.widths = make([]string, len(ends)), make([]int32, len(ends))
	for id, end := range ends {
		m.texts[id], m.widths[id], from = arena[from:end], int32(end-from), end
	}
	if !m.byteLevel || m.ignoreMerges {
		m.ids = make(map[string]int32, b.count)
		for id, text := range m.texts {
			if b.has[id] && mapped[id] {
				m.ids[text] = int32(id)
			}
		}
	}
	if m.byteLevel {
		return
	}
	for _, id := range m.symbols {
		if m.byteFallback && id >= 0 {
			m.widths[id] = 1
		}
	}
	if _, ok := m.ids["▁"]; ok {
		m.inside = crossing(m.texts)
	}
}
