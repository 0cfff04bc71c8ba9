package tokenizer

import "unicode/utf8"

// Encoded is a text with what EncodeWhere gives for it: ids and the offsets behind them, both [n]. Nothing may change it.
type Encoded struct {
	Text string
	IDs  []int32
	Ends []int

	sound bool // whether Text is one that the vocabulary takes as it is
}

// EncodeLike is EncodeWhere of a text that may start as before does: what the two share, up to a control token, is not encoded
// again. So renderings of one conversation that grows cost little more than the longest of them. control must say of what the
// texts share what it said then; it is asked there of some tokens only.
func (t *Tokenizer) EncodeLike(before Encoded, text string, control func(from, to int) bool) Encoded {
	if !t.sound(text) {
		ids, ends := t.EncodeWhere(text, control)
		return Encoded{Text: text, IDs: ids, Ends: ends}
	}
	known, from := Encoded{}, 0
	if n := t.shared(before, text, control); n > 0 {
		known, from = Encoded{IDs: before.IDs[:n], Ends: before.Ends[:n]}, before.Ends[n-1]
	}
	ids, ends := t.vocabulary.encode(known, from, text, counter{where: control})
	return Encoded{text, ids, ends, true}
}

// shared is how many tokens of before are also the first of text: up to a control token behind which encoding starts anew. It
// stands far enough before the first difference that no longer token, and no word beside it, could come of that.
func (t *Tokenizer) shared(before Encoded, text string, control func(from, to int) bool) int {
	if !before.sound {
		return 0
	}
	room := common(before.Text, text) - t.vocabulary.longest() - utf8.UTFMax
	for n := len(before.IDs); n > 1; n-- {
		from, to := before.Ends[n-2], before.Ends[n-1]
		if from <= room && t.vocabulary.parts(before.IDs[n-1]) && t.Decode(before.IDs[n-1:n]) == text[from:to] && control(from, to) {
			return n
		}
	}
	return 0
}

// common is how many bytes a and b start with alike.
func common(a, b string) int {
	const block = 64
	n, end := 0, min(len(a), len(b))
	for n+block <= end && a[n:n+block] == b[n:n+block] {
		n += block
	}
	for n < end && a[n] == b[n] {
		n++
	}
	return n
}
