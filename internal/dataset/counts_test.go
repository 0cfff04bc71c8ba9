package dataset

import (
	"reflect"
	"testing"

	"trainer/recipe"
)

func TestWhatIsLeftOutIsCountedBySourceAndReason(t *testing.T) {
	long := `{"prompt": "0123456789", "completion": "0123456789"}` + "\n"
	f := newFixture(t, map[string]string{"a.jsonl": pairRow + "x\n" + long + pairRow + "y\n", "b.jsonl": long + `{"prompt": "q", "completion": "a"}`, "v.jsonl": "z\n" + pairRow},
		recipe.Source{Path: "a.jsonl"}, recipe.Source{Path: "b.jsonl", Format: "prompt_completion"})
	f.r.Dataset.Validation = f.sources("validation", []recipe.Source{{Path: "v.jsonl"}})
	f.r.Dataset.OnBadRow, f.r.Dataset.Overlong, f.r.Dataset.MaxLength = "skip", "drop", 12
	data := f.mustOpen(t)
	type line struct {
		Name, Format, Told string
		Rows               int
		Counts             Counts
	}
	var got []line
	for _, s := range data.Sources() {
		got = append(got, line{s.Name, s.Format, s.Told, s.Rows, s.Counts})
	}
	want := []line{
		{"a.jsonl", "prompt_completion", "by the columns prompt, completion of a.jsonl:1", 2, Counts{Seen: 5, Bad: 2, Overlong: 1, Tokens: 14, Trained: 4}},
		{"b.jsonl", "prompt_completion", "by the recipe", 1, Counts{Seen: 2, Overlong: 1, Tokens: 7, Trained: 2}},
		{"v.jsonl", "prompt_completion", "by the columns prompt, completion of v.jsonl:2", 1, Counts{Seen: 2, Bad: 1, Tokens: 7, Trained: 2}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if data.SkippedRows != 3 || data.Dropped != 2 || data.Cut != 0 {
		t.Errorf("%d skipped, %d dropped, %d cut", data.SkippedRows, data.Dropped, data.Cut)
	}
	f.r.Dataset.Overlong = "keep_end"
	if c := f.mustOpen(t).Sources()[1].Counts; c != (Counts{Seen: 2, Cut: 1, Tokens: 19, Trained: 13}) {
		t.Errorf("cut: %+v", c)
	}
}

func TestHowADialectWasToldIsSaid(t *testing.T) {
	f := newFixture(t, map[string]string{"a.json": `[{"conversations": [{"from": "human", "value": "q"}, {"from": "gpt", "value": "a"}], "system": "s"}]`}, recipe.Source{Path: "a.json"})
	data := f.mustOpen(t)
	s := data.Train.Sources()[0]
	if want := "by the columns conversations, system of a.json:1: conversations of from and value"; s.Told != want || s.Format != "messages" {
		t.Errorf("%s rows, told %s; want messages, told %s", s.Format, s.Told, want)
	}
	want := "<|begin|><|system|>s<|end|><|user|>q<|end|><|assistant|>a<|end|>"
	if got := f.rows(t, data.Train); got[0] != want {
		t.Errorf("got %s, want %s", got[0], want)
	}
}

func TestRowsOnBothSidesAreCounted(t *testing.T) {
	f := newFixture(t, map[string]string{"a.jsonl": numbered("a", 3) + numbered("b", 2) + numbered("b", 1), "v.jsonl": numbered("b", 1) + numbered("c", 1)}, recipe.Source{Path: "a.jsonl"})
	if n := f.mustOpen(t).Leaked; n != 0 {
		t.Errorf("%d leaked without a held-out set", n)
	}
	f.r.Dataset.Validation = f.sources("validation", []recipe.Source{{Path: "v.jsonl"}})
	if n := f.mustOpen(t).Leaked; n != 2 {
		t.Errorf("%d leaked, want the two copies of b0", n)
	}
}
