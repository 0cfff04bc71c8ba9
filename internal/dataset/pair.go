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

// shared counts the tokens of the prompt: those with which both sides, or the only one, begin and of which none is trained.
func shared(a, b chat.Example) int {
	n := 0
	for n < min(len(a.IDs), len(b.IDs)) && a.IDs[n] == b.IDs[n] && a.Weights[n] == 0 && b.Weights[n] == 0 {
		n++
	}
	return n
}

// shortenCompared takes the first tokens of the prompt off a row that is compared, which keeps the rest of it: a side that is
// cut alone, or at its end, would be compared for what was done to it, and the label of a completion is of all of it.
func (r *rendered) shortenCompared(over int, how string) *fault {
	last := r.sides[len(r.sides)-1]
	switch n := shared(r.sides[0], last); {
	case how == "keep_start" && r.pair:
		return &fault{overlong: true, msg: "dataset.overlong: keep_start would cut one side of the pair and not the other; keep_end takes the start of the prompt off both, drop leaves such pairs out"}
	case how == "keep_start":
		return &fault{overlong: true, msg: "dataset.overlong: keep_start would cut the completion, and the label is of all of it; keep_end takes the start of the prompt off, drop leaves such rows out"}
	case over >= n:
		what := map[bool]string{true: "of the pair would be cut completions", false: "would be a cut completion, and the label is of all of it"}[r.pair]
		return bad("", "%d tokens too many, and the prompt has %d: what is left %s; raise dataset.max_length, or leave such rows out: dataset.overlong: drop", over, n, what)
	}
	for i, side := range r.sides {
		r.sides[i] = side.Cut(over, len(side.IDs))
	}
	r.cut = true
	return nil
}
