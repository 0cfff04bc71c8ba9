package tokenizer

import (
	"fmt"
	"slices"
	"strings"
)

// addedTokens reads added_tokens.
func (b *builder) addedTokens(top fields) error {
	b.indexOf = map[string]int{}
	s, ok := top.value("added_tokens")
	if !ok {
		return nil
	}
	return s.array("added_tokens", func(i int) error {
		f, err := s.fields("added_tokens[" + itoa(i) + "]")
		if err != nil {
			return err
		}
		t, err := readAdded(f)
		if err != nil {
			return err
		}
		n, err := f.number("id", -1)
		if err != nil || n < 0 {
			return f.refuse("id", "an id should be here, from 0 to %d", maxID)
		}
		if t.id = int32(n); t.content == "" {
			return nil // the reference passes over it
		}
		if want := b.nextID(t.content); want != t.id {
			return f.refuse("id", "%d, where the reference gives %q the id %d: the file was not written by the library", t.id, t.content, want)
		}
		b.add(t)
		return nil
	})
}

// readAdded reads a token and its flags.
func readAdded(f fields) (t added, err error) {
	if t.content, err = f.string("content"); err != nil {
		return t, err
	}
	for _, flag := range []struct {
		name string
		into *bool
	}{{"single_word", &t.singleWord}, {"lstrip", &t.lstrip}, {"rstrip", &t.rstrip}, {"normalized", &t.normalized}, {"special", &t.special}} {
		if *flag.into, err = f.flag(flag.name, false); err != nil {
			return t, err
		}
	}
	t.control = isControl(t.content, t.special)
	return t, nil
}

// nextID is the id that the reference gives a token that is added now: its own in the vocabulary, else the next one behind the
// vocabulary and all added so far.
func (b *builder) nextID(content string) int32 {
	if i, ok := b.indexOf[content]; ok {
		return b.tokens[i].id
	}
	if id, ok := b.ids[content]; ok {
		return id
	}
	next := int32(b.count)
	for _, t := range b.tokens {
		next = max(next, t.id+1)
	}
	return next
}

func (b *builder) add(t added) {
	if i, ok := b.indexOf[t.content]; ok {
		b.tokens[i] = t
		return
	}
	b.indexOf[t.content] = len(b.tokens)
	b.tokens = append(b.tokens, t)
}

// addExtra adds a token of a file beside tokenizer.json, where that lacks it.
func (b *builder) addExtra(file string, t added) error {
	if _, ok := b.indexOf[t.content]; ok || t.content == "" {
		return nil
	}
	if want := b.nextID(t.content); want != t.id {
		return fmt.Errorf("%s: the files beside it give %q the id %d, and the reference gives it %d", file, t.content, t.id, want)
	}
	b.add(t)
	b.t.extra = append(b.t.extra, t)
	return nil
}

// finish puts the parts together.
func (b *builder) finish(top fields) (*pipeline, error) {
	t := b.t
	var raw, late []added
	forms := map[string]string{}
	for i := range b.tokens {
		a := &b.tokens[i]
		if a.form = a.content; a.normalized && t.normalizer != nil {
			a.form = t.normalizer.apply(piece{text: a.content}, false).text
		}
		key := fmt.Sprint(a.normalized, a.form)
		if other, twice := forms[key]; twice || a.form == "" {
			return nil, top.fail(0, "added_tokens: %q and %q are looked for as the same text %q", other, a.content, a.form)
		}
		if forms[key] = a.content; a.normalized {
			late = append(late, *a)
		} else {
			raw = append(raw, *a)
		}
		b.grow(a.id)
		b.byID[a.id], b.has[a.id] = a.form, true
		if a.control {
			t.control[a.content] = a.id
		}
	}
	t.raw, t.late = newMatcher(raw), newMatcher(late)
	t.added = b.tokens
	slices.SortFunc(t.added, func(x, y added) int { return int(x.id) - int(y.id) })
	b.show()
	for _, id := range t.begin {
		if int(id) >= t.size() {
			return nil, top.refuse("post_processor", "puts id %d before a text, which no token has", id)
		}
	}
	return t, nil
}

// show lays out the texts that decoders take.
func (b *builder) show() {
	t := b.t
	t.absent = map[int32]bool{}
	t.shown = make([]string, len(b.byID))
	raw := t.decoders == nil
	for id, text := range b.byID {
		switch {
		case !b.has[id]:
			t.absent[int32(id)] = true
		case b.addedAt(int32(id)) || raw != t.model.byteLevel:
			t.shown[id] = strings.Clone(text)
			if bytes, ok := unmap(text); ok && raw && !b.ranks {
				t.shown[id] = bytes
			}
		default:
			t.shown[id] = t.model.texts[id]
		}
	}
	t.model.texts = nil
}

// addedAt says that an id is an added token's.
func (b *builder) addedAt(id int32) bool {
	_, ok := slices.BinarySearchFunc(b.t.added, id, func(a added, id int32) int { return int(a.id) - int(id) })
	return ok
}
