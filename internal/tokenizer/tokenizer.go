// Package tokenizer turns text into token ids and back. A round trip gives the same bytes, also where they are no
// UTF-8, and text that happens to spell a control token stays text unless the caller asks otherwise: rows come from
// strangers, and a row must not be able to end its own turn.
package tokenizer

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// Tokenizer is a vocabulary. It is read-only and safe for concurrent use.
type Tokenizer struct {
	name    string
	control []string // control token i has the id 256+i
}

// Name says which vocabulary it is, as messages show it.
func (t *Tokenizer) Name() string { return t.name }

// Size is the number of ids: they are 0 to Size-1.
func (t *Tokenizer) Size() int { return 256 + len(t.control) }

// Encode returns the ids of text, [n], and for each the byte offset in text behind it, [n]. What spells a control token
// is encoded as the text it is.
func (t *Tokenizer) Encode(text string) (ids []int32, ends []int) {
	return appendBytes(make([]int32, 0, len(text)), make([]int, 0, len(text)), text, 0)
}

// Append appends the ids of text, as Encode gives them, to dst: for callers that need no offsets.
func (t *Tokenizer) Append(dst []int32, text string) []int32 {
	at := len(dst)
	dst = slices.Grow(dst, len(text))[:at+len(text)]
	for i := range len(text) {
		dst[at+i] = int32(text[i])
	}
	return dst
}

// EncodeControl is Encode, but what spells a control token becomes that token.
func (t *Tokenizer) EncodeControl(text string) (ids []int32, ends []int) {
	done := 0
	for at := strings.Index(text, "<|"); at >= 0; {
		n := 2
		if id, ok := t.controlAt(text[at:]); ok {
			n = len(t.control[id-256])
			ids, ends = appendBytes(ids, ends, text[done:at], done)
			done = at + n
			ids, ends = append(ids, id), append(ends, done)
		}
		next := strings.Index(text[at+n:], "<|")
		if next < 0 {
			break
		}
		at += n + next
	}
	return appendBytes(ids, ends, text[done:], done)
}

// Control returns the id of a control token by its name, as "<|end|>".
func (t *Tokenizer) Control(name string) (id int32, ok bool) {
	i := slices.Index(t.control, name)
	return int32(256 + i), i >= 0
}

// Decode returns the text of ids: control tokens by their names, bytes as they are, an id outside of the vocabulary as
// "<|unknown 300|>".
func (t *Tokenizer) Decode(ids []int32) string {
	out := make([]byte, 0, len(ids))
	for _, id := range ids {
		switch {
		case id >= 0 && id < 256:
			out = append(out, byte(id))
		case id >= 256 && int(id) < t.Size():
			out = append(out, t.control[id-256]...)
		default:
			out = fmt.Appendf(out, "<|unknown %d|>", id)
		}
	}
	return string(out)
}

// Hash names the vocabulary by content, in lower-case hex: equal hashes encode every text alike.
func (t *Tokenizer) Hash() string {
	h := sha256.New()
	fmt.Fprintf(h, "bytes 0-255, then %q", t.control)
	return hex.EncodeToString(h.Sum(nil))
}

// controlAt is the control token that text starts with. Every name ends in the only |> it has, so at most one fits.
func (t *Tokenizer) controlAt(text string) (int32, bool) {
	i := slices.IndexFunc(t.control, func(name string) bool { return strings.HasPrefix(text, name) })
	return int32(256 + i), i >= 0
}

func appendBytes(ids []int32, ends []int, text string, offset int) ([]int32, []int) {
	for i := range len(text) {
		ids, ends = append(ids, int32(text[i])), append(ends, offset+i+1)
	}
	return ids, ends
}
