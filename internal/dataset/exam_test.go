package dataset

import (
	"slices"
	"strings"
	"testing"

	"trainer/recipe"
)

// examined is a row of a loop that trains on rows, and grades what its evaluations sample.
func examined(t *testing.T, loss string, section recipe.Chat, row string) *fixture {
	t.Helper()
	f := newFixture(t, map[string]string{"rows.jsonl": row + "\n"}, recipe.Source{Path: "rows.jsonl"})
	f.r.Loss.Type, f.r.Reward, f.tpl = loss, []recipe.Reward{{Type: "exact"}}, byteTemplate(t, section)
	return f
}

// TestWhatAnAnswerIsAnAnswerTo: of rows that train, in whatever shape, the prompt is token for token what the row trains its last
// answer behind; graders are given the messages before it, and the target that the row has.
func TestWhatAnAnswerIsAnAnswerTo(t *testing.T) {
	for name, c := range map[string]struct {
		loss               string
		chat               recipe.Chat
		row, asked, target string
	}{
		"messages": {"cross_entropy", recipe.Chat{}, `{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"c"},{"role":"assistant","content":"d"}],"target":"d"}`,
			`[{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}]`, `"d"`},
		"messages whose last answer does not train": {"cross_entropy", recipe.Chat{}, `{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"c"},{"role":"assistant","content":"d","train":false}]}`,
			`[{"role": "user", "content": "a"}]`, ""},
		"every message trains": {"cross_entropy", recipe.Chat{TrainOn: "all_messages"}, `{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]}`,
			`[{"role": "user", "content": "a"}]`, ""},
		"from and value": {"cross_entropy", recipe.Chat{}, `{"conversations":[{"from":"human","value":"a"},{"from":"gpt","value":"b"}],"target":3}`,
			`[{"role": "user", "content": "a"}]`, "3"},
		"a prompt and its completion": {"cross_entropy", recipe.Chat{System: ptr("s")}, `{"prompt":"a","completion":"b","target":["x","y"]}`,
			`[{"role": "user", "content": "a"}]`, `["x","y"]`},
		"both as messages": {"cross_entropy", recipe.Chat{}, `{"prompt":[{"role":"user","content":"a"}],"completion":[{"role":"assistant","content":"b"},{"role":"user","content":"c"},{"role":"assistant","content":"d"}]}`,
			`[{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}]`, ""},
		"without roles":           {"cross_entropy", recipe.Chat{Template: "none"}, `{"prompt":"a ","completion":"b"}`, `"a "`, ""},
		"a pair":                  {"dpo", recipe.Chat{}, `{"prompt":"a","chosen":"b","rejected":"c"}`, `[{"role": "user", "content": "a"}]`, ""},
		"a pair of conversations": {"dpo", recipe.Chat{}, `{"chosen":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}],"rejected":[{"role":"user","content":"a"},{"role":"assistant","content":"c"}]}`, `[{"role": "user", "content": "a"}]`, ""},
		"a labelled row":          {"kto", recipe.Chat{}, `{"prompt":"a","completion":"b","label":false}`, `[{"role": "user", "content": "a"}]`, ""},
		"instruction and output":  {"cross_entropy", recipe.Chat{}, `{"instruction":"a","input":"i","output":"b"}`, `[{"role": "user", "content": "a\n\ni"}]`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			set := examined(t, c.loss, c.chat, c.row).mustOpen(t).Train
			p, err := set.Prompt(0)
			if err != nil {
				t.Fatal(err)
			}
			if string(p.Asked) != c.asked || string(p.Target) != c.target || string(p.Row) != c.row {
				t.Errorf("asked %s, target %s, row %s", p.Asked, p.Target, p.Row)
			}
			row, err := set.Row(0)
			if err != nil {
				t.Fatal(err)
			}
			d, n := row.Data[0], len(p.IDs)
			ids := append([]int32{d.Input[0]}, d.Targets...)
			if n >= len(ids) || !slices.Equal(p.IDs, ids[:n]) || d.Weights[n-1] == 0 {
				t.Errorf("sampled behind %v; the row is %v, and weighs %v there", p.IDs, ids, d.Weights)
			}
		})
	}
}

func TestRowsWithoutAPrompt(t *testing.T) {
	for want, c := range map[string]struct {
		chat recipe.Chat
		row  string
	}{
		"rows.jsonl:1: begins with the answer that trains":       {recipe.Chat{}, `{"messages":[{"role":"assistant","content":"b"}]}`},
		"rows.jsonl:1: no message of the assistant trains":       {recipe.Chat{TrainOn: "all_messages"}, `{"messages":[{"role":"user","content":"b"}]}`},
		"rows.jsonl:1: rows of text have no prompt":              {recipe.Chat{}, `{"text":"b"}`},
		"rows.jsonl:1: target: an object where text or a number": {recipe.Chat{}, `{"prompt":"a","completion":"b","target":{}}`},
	} {
		_, err := examined(t, "cross_entropy", c.chat, c.row).mustOpen(t).Train.Prompt(0)
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", c.row, err, want)
		}
	}
}
