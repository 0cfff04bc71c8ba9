package engine

import (
	"math"
	"slices"
	"testing"
)

// A ranking has one order, whether its ids come from the heap, from what is put in order at once, or change over.
func TestARankingIsInOrderToItsEnd(t *testing.T) {
	draw := newStream(1, "logprobs")
	logprobs := make([]float32, 5*restAfter)
	for i := range logprobs {
		// Many are equal, some have no probability at all.
		logprobs[i] = float32(math.Round(draw.uniform(uint64(i))*300)/10 - 30)
		if i%97 == 0 {
			logprobs[i] = float32(math.Inf(-1))
		}
	}
	var want []Candidate
	for i, l := range logprobs {
		want = append(want, Candidate{int32(i), l})
	}
	slices.SortFunc(want, func(a, b Candidate) int {
		if a.before(b) {
			return -1
		}
		return 1
	})
	var r ranking
	for range 2 { // the second time in the room of the first
		r.ranked(logprobs)
		for i, w := range want {
			if got, ok := r.next(); got != w || !ok {
				t.Fatalf("rank %d is %v, want %v", i, got, w)
			}
		}
		if c, ok := r.next(); ok {
			t.Fatalf("%v is beyond the last", c)
		}
	}
}

func TestARankingOfATwoLevelVocabularyIsThatOfItsLogProbabilities(t *testing.T) {
	c := Tiny(40 * restAfter)
	m := NewModel(NewBase(c, 3), nil)
	var mem arena
	hidden := make([]float32, c.Dim)
	draw := newStream(2, "hidden")
	for i := range hidden {
		hidden[i] = float32(draw.normal(uint64(i)))
	}
	logits := make([]float32, m.heads[0].out)
	m.heads[0].forward(logits, hidden, 1, dropping{}, &mem)
	var all, opened ranking
	all.ranked(m.all(hidden, logits, &mem))
	opened.begin(m, hidden, logits, c.Vocab, &mem)
	for i := range c.Vocab {
		want, _ := all.next()
		if got, ok := opened.next(); got != want || !ok {
			t.Fatalf("rank %d is %v, want %v", i, got, want)
		}
	}
}
