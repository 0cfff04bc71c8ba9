package dataset

import (
	"strings"
	"testing"

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
	} {
		f.Add([]byte(s))
	}
	tpl := byteTemplate(f, recipe.Chat{})
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, overlong := range []string{"error", "drop", "keep_start", "keep_end"} {
			s := &source{section: recipe.Source{Format: "auto"}}
			if check(raw) == nil && trimmed(raw).isObject() {
				if p := s.begin(trimmed(raw), diag.Pos{File: "rows.jsonl", Line: 1}, tpl); p != nil {
					if !strings.HasPrefix(p.key, ".format") || p.msg == "" {
						t.Fatalf("%q: a problem at %q: %q", raw, p.key, p.msg)
					}
					return
				}
			}
			if check(raw) == nil && trimmed(raw).isObject() {
				if row, f := s.canonical(trimmed(raw)); f == nil && check(row) != nil {
					t.Fatalf("%q is rewritten to %q: %v", raw, row, check(row))
				}
			}
			x := &index{section: recipe.Dataset{MaxLength: 12, Overlong: overlong}, template: tpl}
			exs, cut, dropped, fault := x.encode(s, raw)
			if fault != nil {
				if fault.msg == "" || cut || dropped {
					t.Fatalf("%q: fault %+v beside cut %v, dropped %v", raw, fault, cut, dropped)
				}
				continue
			}
			if dropped {
				continue
			}
			if len(exs) != 1 {
				t.Fatalf("%q: %d examples; the byte vocabulary writes history as it was sampled", raw, len(exs))
			}
			ex := exs[0]
			n := len(ex.IDs)
			if n < 2 || n > 12 || len(ex.Weights) != n || trainedIn(exs) == 0 || (cut && n != 12) {
				t.Fatalf("%q under %s: %d ids, %d weights, %d trained, cut %v", raw, overlong, n, len(ex.Weights), trainedIn(exs), cut)
			}
			d := datum(ex)
			for i := range d.Input {
				if d.Targets[i] != ex.IDs[i+1] || d.Input[i] != ex.IDs[i] || d.Weights[i] != ex.Weights[i+1] {
					t.Fatalf("%q: position %d is not shifted by one", raw, i)
				}
			}
		}
	})
}
