package dataset

import (
	"slices"

	"trainer/internal/chat"
)

// identical tells a pair whose sides are the same: it has nothing to compare.
func (r rendered) identical() bool {
	return r.pair && slices.Equal(r.sides[0].IDs, r.sides[1].IDs) && slices.Equal(r.sides[0].Weights, r.sides[1].Weights)
}

// side names a side of a pair, as messages do; the row as a whole where it has one.
func (r rendered) side(i int) string {
	if !r.pair {
		return ""
	}
	return [2]string{"chosen", "rejected"}[i]
}

// shared counts the tokens of the prompt: those with which both sides begin and of which none is trained.
func shared(a, b chat.Example) int {
	n := 0
	for n < min(len(a.IDs), len(b.IDs)) && a.IDs[n] == b.IDs[n] && a.Weights[n] == 0 && b.Weights[n] == 0 {
		n++
	}
	return n
}

// shortenPair takes the first tokens of the prompt off both sides, which keep the rest of it: a side that is cut alone, or
// at its end, would be compared for what was done to it.
func (r *rendered) shortenPair(over int, how string) *fault {
	if how == "keep_start" {
		return &fault{overlong: true, msg: "dataset.overlong: keep_start would cut one side of the pair and not the other; keep_end takes the start of the prompt off both, drop leaves such pairs out"}
	}
	if n := shared(r.sides[0], r.sides[1]); over >= n {
		return bad("", "%d tokens too many, and the prompt has %d: what is left of the pair would be cut completions", over, n)
	}
	r.sides[0], r.sides[1], r.cut = r.sides[0].Cut(over, len(r.sides[0].IDs)), r.sides[1].Cut(over, len(r.sides[1].IDs)), true
	return nil
}
