package tokenizer

import (
	"slices"
	"strings"
	"testing"
)

func TestPieces(t *testing.T) {
	tok := Bytes()
	for _, c := range []struct {
		name string
		ids  []int32
		want []Piece
	}{
		{"nothing", nil, []Piece{}},
		{"letters and a control token", []int32{'a', 257, 'b'}, []Piece{{"a", 1}, {"<|end|>", 1}, {"b", 1}}},
		{"a character of several tokens", []int32{'a', 0xe6, 0xbc, 0xa2, 'b'}, []Piece{{"a", 1}, {"漢", 3}, {"b", 1}}},
		{"half a character", []int32{0xe6, 0xbc, 'b'}, []Piece{{"\xe6", 1}, {"\xbc", 1}, {"b", 1}}},
		{"half a character at the end", []int32{'b', 0xe6, 0xbc}, []Piece{{"b", 1}, {"\xe6", 1}, {"\xbc", 1}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := tok.Pieces(c.ids); !slices.Equal(got, c.want) {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func FuzzPieces(f *testing.F) {
	f.Add("a漢字 é<|end|>\xff👩‍👩‍👧")
	tok := Bytes()
	f.Fuzz(func(t *testing.T, text string) {
		ids, _ := tok.EncodeControl(text)
		var joined strings.Builder
		n := 0
		for _, p := range tok.Pieces(ids) {
			joined.WriteString(p.Text)
			n += p.Tokens
		}
		if joined.String() != tok.Decode(ids) || n != len(ids) {
			t.Errorf("%q: pieces of %d of %d ids join to %q", text, n, len(ids), joined.String())
		}
	})
}
