package tokenizer

import "strings"

// normalizer makes a piece into what the model is given. It keeps align where aligned; a piece that it does not change comes back
// as it is. Where bytes move, they are aligned as the reference does it.
type normalizer interface {
	apply(p piece, aligned bool) piece
}

// prepended puts a text before every piece that is not empty.
type prepended string

func (n prepended) apply(p piece, aligned bool) piece { return p.prepend(string(n), aligned) }

// replaced makes one text into another wherever it stands.
type replaced struct{ from, to string }

func (n replaced) apply(p piece, aligned bool) piece { return p.replace(n.from, n.to, aligned) }

// inOrder is one normalizer after the other.
type inOrder []normalizer

func (n inOrder) apply(p piece, aligned bool) piece {
	for _, step := range n {
		p = step.apply(p, aligned)
	}
	return p
}

func indexFrom(s, what string, from int) int {
	if i := strings.Index(s[from:], what); i >= 0 {
		return from + i
	}
	return -1
}
