package tokenizer

import (
	"strings"
	"unicode/utf8"
)

// Piece is the text of Tokens ids that follow each other: of one, or of the few that share a character.
type Piece struct {
	Text   string
	Tokens int
}

// A character has at most so many bytes, and a token at least one.
const characterTokens = utf8.UTFMax

// Pieces cuts ids into the least pieces that are whole text; joined, they are what Decode gives, for people to look at.
// What is no text even together stays as Decode shows it, a piece an id.
func (t *Tokenizer) Pieces(ids []int32) []Piece {
	out := make([]Piece, 0, len(ids))
	var before []int32 // of the last piece: some vocabularies write a first token otherwise
	for at := 0; at < len(ids); {
		p := t.piece(before, ids[at:])
		before = ids[at : at+p.Tokens]
		at += p.Tokens
		out = append(out, p)
	}
	return out
}

func (t *Tokenizer) piece(before, ids []int32) Piece {
	for n := 1; n <= min(characterTokens, len(ids)); n++ {
		text := t.behind(before, ids[:n])
		if utf8.ValidString(text) && !strings.HasSuffix(text, string(utf8.RuneError)) {
			return Piece{text, n}
		}
	}
	return Piece{t.behind(before, ids[:1]), 1}
}

// behind is the text of ids behind those before.
func (t *Tokenizer) behind(before, ids []int32) string {
	if len(before) == 0 {
		return t.Decode(ids)
	}
	both := make([]int32, 0, len(before)+len(ids))
	text, ok := strings.CutPrefix(t.Decode(append(append(both, before...), ids...)), t.Decode(before))
	if !ok {
		return t.Decode(ids)
	}
	return text
}
