package rollout

import (
	"slices"
	"testing"
)

// TestCompare: what Step trains, and nothing else, gets the part of its row that is about its own tokens.
func TestCompare(t *testing.T) {
	fresh := func() []Group {
		gs := []Group{group(0, 1), group(1, 1), group(0, 1)}
		gs[0].Prompt = []int32{1, 2, 3}
		gs[0].Members[0].Tokens = []int32{7, 8}
		gs[1].Dropped = ZeroVariance
		gs[0].Members[0].Trained, gs[2].Members[1].Trained = true, true
		return gs
	}
	gs, rows := fresh(), [][]float64{{-9, -9, -1, -2}, {-3}}
	if err := Compare(gs, rows); err != nil {
		t.Fatal(err)
	}
	if a, b := gs[0].Members[0].Ref, gs[2].Members[1].Ref; !slices.Equal(a, []float64{-1, -2}) || !slices.Equal(b, []float64{-3}) {
		t.Errorf("got %v and %v", a, b)
	}
	if gs[0].Members[1].Ref != nil || gs[1].Members[0].Ref != nil {
		t.Error("what is not trained is compared")
	}
	data := Step(gs)
	if !slices.Equal(data[0].RefLogprobs, []float64{0, 0, -1, -2}) || !slices.Equal(data[1].RefLogprobs, []float64{-3}) {
		t.Errorf("got %v and %v", data[0].RefLogprobs, data[1].RefLogprobs)
	}
	gs = fresh()
	gs[0].Members[0].Prompt, gs[0].Members[0].Observed = []int32{4}, []Span{{1, 2}} // of a conversation: its own prompt, and what an environment wrote
	if err := Compare(gs, [][]float64{{-1, -2}, {-3}}); err != nil || !slices.Equal(gs[0].Members[0].Ref, []float64{-1, 0}) {
		t.Errorf("of a conversation %v, %v", gs[0].Members[0].Ref, err)
	}
	for _, bad := range [][][]float64{nil, rows[:1], {{-1, -2}, {-3}}, {rows[0], rows[1], rows[1]}} {
		if err := Compare(fresh(), bad); err == nil {
			t.Errorf("%v fits", bad)
		}
	}
}
