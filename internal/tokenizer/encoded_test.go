package tokenizer

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// What is not encoded again has the tokens that it would have: in every small tokenizer, for texts that part anywhere.
func TestEncodeLike(t *testing.T) {
	toks := small(t)
	toks["bytes"] = Bytes()
	for name, tok := range toks {
		rng := rand.New(rand.NewPCG(1, uint64(len(name))))
		saved := 0
		for range 400 {
			a, b := mixed(rng, tok), mixed(rng, tok)
			a = b[:rng.IntN(len(b)+1)] + a
			where := rng.Uint64() | rng.Uint64() | rng.Uint64()
			control := func(from, _ int) bool { return where>>(from&63)&1 == 1 }
			if rng.IntN(2) == 0 {
				control = func(int, int) bool { return true }
			}
			var before Encoded
			for _, text := range []string{a, b, b, a[:len(a)/2], a} {
				if tok.sound(text) {
					saved += tok.shared(before, text, control)
				}
				got := tok.EncodeLike(before, text, control)
				ids, ends := tok.EncodeWhere(text, control)
				if got.Text != text || !slices.Equal(got.IDs, ids) || !slices.Equal(got.Ends, ends) {
					t.Fatalf("%s: %q behind %q:\n got %v to %v\nwant %v to %v", name, text, before.Text, got.IDs, got.Ends, ids, ends)
				}
				before = got
			}
		}
		if saved == 0 {
			t.Errorf("%s: nothing was shared", name)
		}
	}
}

// mixed is control tokens, and much that could reach over their ends.
func mixed(rng *rand.Rand, tok *Tokenizer) string {
	parts := []string{" ", "\n", "a", "word", "'s", "\u0301", "\u0338", "é", "▁", "世", "1234", "<", "<|", "|>", "\xff", "<think>", " alone "}
	for id := range int32(tok.Size()) {
		if tok.IsControl(id) {
			name := tok.Decode([]int32{id})
			parts = append(parts, name, name, name, name[:len(name)/2])
		}
	}
	var out strings.Builder
	for range 4 + rng.IntN(40) {
		out.WriteString(parts[rng.IntN(len(parts))])
	}
	return out.String()
}
