package tokenizer

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// Bytes is the vocabulary of the sandbox's own models, 272 ids: 0 to 255 are bytes, 256 to 271 the control tokens
// <|begin|>, <|end|>, <|system|>, <|user|>, <|assistant|>, <|tool|> and <|reserved_0|> to <|reserved_9|>. A round trip gives the
// same bytes, also where they are no UTF-8.
func Bytes() *Tokenizer {
	control := []string{"<|begin|>", "<|end|>", "<|system|>", "<|user|>", "<|assistant|>", "<|tool|>"}
	for i := range 10 {
		control = append(control, fmt.Sprintf("<|reserved_%d|>", i))
	}
	h := sha256.New()
	fmt.Fprintf(h, "bytes 0-255, then %q", control)
	end := 256 + int32(slices.Index(control, "<|end|>"))
	return &Tokenizer{name: "bytes", hash: hex.EncodeToString(h.Sum(nil)), vocabulary: byteVocabulary(control), end: end}
}

// byteVocabulary is a token a byte, and control tokens from 256 on.
type byteVocabulary []string

func (v byteVocabulary) size() int { return 256 + len(v) }

// append copies bytes where no token counts, which are by far the most calls, and the longest.
func (v byteVocabulary) append(dst []int32, text string, counts counter) []int32 {
	if counts.all || counts.where != nil {
		ids, _ := v.encode(Encoded{}, 0, text, counts)
		return append(dst, ids...)
	}
	at := len(dst)
	dst = slices.Grow(dst, len(text))[:at+len(text)]
	for i := range len(text) {
		dst[at+i] = int32(text[i])
	}
	return dst
}

func (v byteVocabulary) encode(known Encoded, from int, text string, counts counter) (ids []int32, ends []int) {
	n := len(known.IDs) + len(text) - from
	ids = append(make([]int32, 0, n), known.IDs...)
	ends = append(make([]int, 0, n), known.Ends...)
	for i := from; i < len(text); {
		id, to := int32(text[i]), i+1
		if c, ok := v.at(text[i:]); ok && counts.control(span{i, i + len(v[c-256])}) {
			id, to = c, i+len(v[c-256])
		}
		ids, ends = append(ids, id), append(ends, to)
		i = to
	}
	return ids, ends
}

// at is the control token that text starts with. Every name ends in the only |> it has, so at most one fits.
func (v byteVocabulary) at(text string) (int32, bool) {
	if !strings.HasPrefix(text, "<|") {
		return 0, false
	}
	i := slices.IndexFunc(v, func(name string) bool { return strings.HasPrefix(text, name) })
	return int32(256 + i), i >= 0
}

// decode shows an id outside of the vocabulary as "<|unknown 300|>".
func (v byteVocabulary) decode(ids []int32) string {
	out := make([]byte, 0, len(ids))
	for _, id := range ids {
		switch {
		case id >= 0 && id < 256:
			out = append(out, byte(id))
		case v.isControl(id):
			out = append(out, v[id-256]...)
		default:
			out = fmt.Appendf(out, "<|unknown %d|>", id)
		}
	}
	return string(out)
}

func (v byteVocabulary) controlID(name string) (int32, bool) {
	i := slices.Index(v, name)
	return int32(256 + i), i >= 0
}

func (v byteVocabulary) parts(id int32) bool { return v.isControl(id) }

func (v byteVocabulary) longest() int {
	n := 0
	for _, name := range v {
		n = max(n, len(name))
	}
	return n
}

func (v byteVocabulary) isControl(id int32) bool { return id >= 256 && int(id) < v.size() }
