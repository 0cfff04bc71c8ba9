package runner

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"trainer/recipe"
)

func TestKeeps(t *testing.T) {
	loss := func(done int, v float64) measured {
		return measured{Done: done, Metrics: map[string]float64{evalLoss: v}}
	}
	var p past
	p.evals = map[int]measured{20: loss(20, 3), 40: loss(40, 1), 60: loss(60, 2), 80: loss(80, 1), 120: loss(120, 9)}
	// Ids whose order as text is not that of their steps, and training and inference of the same steps.
	for _, done := range []int{20, 40, 60, 80, 100, 120} {
		for _, kind := range []string{"training", "inference"} {
			p.saves = append(p.saves, checkpointRecord{Done: done, Kind: kind, ID: fmt.Sprintf("%c%d", kind[0], done)})
		}
	}
	lowest, highest := &recipe.KeepBest{Metric: evalLoss, Mode: "min"}, &recipe.KeepBest{Metric: evalLoss, Mode: "max"}
	for name, c := range map[string]struct {
		rule      recipe.Checkpoint
		from      string
		forgotten []string
		want      []string
	}{
		"one is the newest, never none":             {recipe.Checkpoint{KeepLast: 1}, "", nil, []string{"i120 newest", "t120 newest"}},
		"the last by steps, not by text":            {recipe.Checkpoint{KeepLast: 2}, "", nil, []string{"i100 keep_last", "i120 newest", "t100 keep_last", "t120 newest"}},
		"more than there are":                       {recipe.Checkpoint{KeepLast: 99}, "t60", []string{"t20", "t40", "t60", "t80", "i20", "i40", "i60", "i80"}, []string{"i100 keep_last", "i120 newest", "t100 keep_last", "t120 newest", "t60 in use"}},
		"of equally good ones the newest":           {recipe.Checkpoint{KeepLast: 1, KeepBest: lowest}, "", nil, []string{"i120 newest", "i80 keep_best", "t120 newest", "t80 keep_best"}},
		"the best is the newest":                    {recipe.Checkpoint{KeepLast: 1, KeepBest: highest}, "", nil, []string{"i120 newest", "t120 newest"}},
		"what is forgotten is the best no more":     {recipe.Checkpoint{KeepLast: 1, KeepBest: lowest}, "", []string{"t80", "t40"}, []string{"i120 newest", "i80 keep_best", "t120 newest", "t60 keep_best"}},
		"what a session began from":                 {recipe.Checkpoint{KeepLast: 1}, "t20", nil, []string{"i120 newest", "t120 newest", "t20 in use"}},
		"a metric that nothing measured is no best": {recipe.Checkpoint{KeepLast: 1, KeepBest: &recipe.KeepBest{Metric: "x", Mode: "min"}}, "", nil, []string{"i120 newest", "t120 newest"}},
	} {
		p.forgotten = nil
		for _, id := range c.forgotten {
			p.forget(forgetRecord{ID: id, Why: "x"})
		}
		p.gens = []*generation{newGeneration(0, 0, origin{CheckpointID: c.from})}
		var got []string
		for _, id := range slices.Sorted(maps.Keys(p.keeps(c.rule))) {
			got = append(got, id+" "+p.keeps(c.rule)[id])
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

func TestVariant(t *testing.T) {
	for _, c := range []struct {
		saved SavedCheckpoint
		lora  bool
		want  string
	}{
		{SavedCheckpoint{Registered: "ml_1", Adapter: true}, true, Adapter},
		{SavedCheckpoint{Registered: "ml_1"}, true, Merged}, // LoRA on weights of one's own
		{SavedCheckpoint{}, true, Adapter},                  // not registered
		{SavedCheckpoint{Registered: "ml_1"}, false, Merged},
		{SavedCheckpoint{}, false, Merged},
	} {
		if got := Variant(c.saved, c.lora); got != c.want {
			t.Errorf("%+v, LoRA %v: %s, want %s", c.saved, c.lora, got, c.want)
		}
	}
}
