package dataset

import (
	"strings"
	"testing"

	"trainer/internal/chat"
	"trainer/internal/diag"
	"trainer/recipe"
)

// FuzzRow reads foreign rows under every way to cut them: each is an example that keeps the promises of one, or a fault
// that says something, and none brings the program down.
func FuzzRow(f *testing.F) {
	for _, s := range seeds() {
		f.Add([]byte(s))
	}
	for _, s := range []string{
		`{"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": [{"type": "text", "text": "a"}], "weight": 0.5}]}`,
		`{"prompt": "q", "completion": "a"}`, `{"prompt": [], "completion": [{"role": "assistant", "content": "a"}]}`,
		`{"instruction": "i", "input": null, "output": "o"}`, `{"text": "t"}`, `{"tokens": [1, 2, 271], "weights": [0, 0.5, 1]}`, `{"tokens": []}`,
		`{"messages": [[], 1, {"role": 1}]}`, `{"messages": {"role": "user"}}`, `{"prompt": {"a": 1}, "completion": ["b"]}`, `{"chosen": 1, "rejected": 2}`, `{"text": []}`, `{"text": ""}`,
		`{"conversations": [{"from": "human", "value": "q"}, {"from": "function_call", "value": "{\"name\": \"f\"}"}], "system": "s", "tools": "[{\"name\": 1}]"}`,
		`{"conversation": [{"role": "user", "content": [{"type": "text", "value": "q"}, {"type": "tool_call", "value": {"name": "f", "arguments": {}}}]}], "messages": 1}`,
		`{"prompt": [{"from": "human", "value": "q"}], "completion": {"from": "gpt", "value": "a"}, "tools": 1}`, `{"prompt": {"role": "user", "content": "q"}, "completion": ""}`,
		`{"instruction": "i", "output": "o", "history": [["a", "b"], ["c"]], "system": "s"}`,
		`{"messages": [[], 1, {"role": 1}]}`, `{"messages": {"role": "user"}}`, `{"prompt": {"a": 1}, "completion": ["b"]}`, `{"chosen": 1, "rejected": 2}`, `{"prompt": "q", "chosen": "a", "rejected": "b"}`,
		`{"conversations": [{"from": "human", "value": "q"}], "chosen": {"from": "gpt", "value": "a"}, "rejected": {"from": "gpt", "value": "b"}}`,
		`{"chosen": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}], "rejected": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "bb"}]}`,
		`{"prompt": "q", "completion": "a", "label": true}`, `{"messages": [{"from": "human", "value": "q"}, {"from": "gpt", "value": "a"}], "label": false}`,
		`{"prompt": null, "chosen": [], "rejected": [{}]}`, `{"messages": [], "label": true}`, `{"text": []}`, `{"text": ""}`,
	} {
		f.Add([]byte(s))
	}
	tpl := byteTemplate(f, recipe.Chat{})
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, takes := range [][]string{supervisedRows, {"preference"}, {"labelled"}} {
			for _, overlong := range []string{"error", "drop", "keep_start", "keep_end"} {
				rowIsSound(t, raw, takes, overlong, tpl)
			}
		}
	})
}

var supervisedRows = []string{"messages", "prompt_completion", "text", "tokens"}

// rowIsSound: a row is refused with a reason, dropped, or rendered within its length, with something to train on each side.
func rowIsSound(t *testing.T, raw []byte, takes []string, overlong string, tpl *chat.Template) {
	s := &source{section: recipe.Source{Format: "auto"}, takes: takes}
	if check(raw) == nil && trimmed(raw).isObject() {
		if p := s.begin(trimmed(raw), diag.Pos{File: "rows.jsonl", Line: 1}, tpl); p != nil {
			if !strings.HasPrefix(p.key, ".format") || p.msg == "" {
				t.Fatalf("%q: a problem at %q: %q", raw, p.key, p.msg)
			}
			return
		}
		if row, f := s.canonical(trimmed(raw)); f == nil && check(row) != nil {
			t.Fatalf("%q is rewritten to %q: %v", raw, row, check(row))
		}
	}
	x := &index{section: recipe.Dataset{MaxLength: 12, Overlong: overlong, OnIdenticalPair: "drop"}, template: tpl}
	got, fault := x.encode(s, raw)
	if fault != nil {
		if fault.msg == "" || got.dropped {
			t.Fatalf("%q: fault %+v beside %+v", raw, fault, got)
		}
		return
	}
	if got.dropped || got.same {
		return
	}
	if want := map[bool]int{true: 2, false: 1}[takes[0] == "preference"]; len(got.sides) != want {
		t.Fatalf("%q: %d sides", raw, len(got.sides))
	}
	longest := 0
	for _, ex := range got.sides {
		n := len(ex.IDs)
		longest = max(longest, n)
		if n < 2 || n > 12 || len(ex.Weights) != n || trainedIn([]chat.Example{ex}) == 0 {
			t.Fatalf("%q under %s: %d ids, %d weights, %d trained", raw, overlong, n, len(ex.Weights), trainedIn([]chat.Example{ex}))
		}
		d := datum(ex)
		for i := range d.Input {
			if d.Targets[i] != ex.IDs[i+1] || d.Input[i] != ex.IDs[i] || d.Weights[i] != ex.Weights[i+1] {
				t.Fatalf("%q: position %d is not shifted by one", raw, i)
			}
		}
	}
	if got.cut && longest != 12 {
		t.Fatalf("%q under %s: cut to %d", raw, overlong, longest)
	}
}
