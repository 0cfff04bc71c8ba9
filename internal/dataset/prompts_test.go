package dataset

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"trainer/recipe"
)

func (f *fixture) reinforced() *fixture {
	f.r.Loss.Type = "grpo"
	return f
}

func TestPrompts(t *testing.T) {
	column := func(c string) recipe.Field { return recipe.Field{Columns: []string{c}} }
	for _, c := range []struct {
		name, row, template string
		fields              map[string]recipe.Field
		ids, target         string
	}{
		{"text becomes a user message", `{"prompt": "2+2?", "target": "4"}`, "auto", nil, "<|begin|><|user|>2+2?<|end|><|assistant|>", `"4"`},
		{"messages are a conversation", `{"prompt": [{"role": "system", "content": "s"}, {"role": "user", "content": "q"}]}`, "auto", nil,
			"<|begin|><|system|>s<|end|><|user|>q<|end|><|assistant|>", ""},
		{"without roles it is raw text", `{"prompt": "once", "target": null}`, "none", nil, "<|begin|>once", ""},
		{"a number is a target as it is written", `{"prompt": "q", "target": 4.50}`, "auto", nil, "<|begin|><|user|>q<|end|><|assistant|>", "4.50"},
		{"several targets are a list", `{"prompt": "q", "target": ["4", 5]}`, "auto", nil, "<|begin|><|user|>q<|end|><|assistant|>", `["4", 5]`},
		{"a completion beside it is a column like others", `{"prompt": "q", "completion": "a"}`, "auto", nil, "<|begin|><|user|>q<|end|><|assistant|>", ""},
		{"columns are mapped, and cut", `{"question": "q", "answer": "so\n#### 7"}`, "auto",
			map[string]recipe.Field{"prompt": column("question"), "target": {Columns: []string{"answer"}, Regex: `#### (\S+)`}}, "<|begin|><|user|>q<|end|><|assistant|>", `"7"`},
		{"messages may stand under their own name", `{"messages": [{"role": "user", "content": "q"}]}`, "auto",
			map[string]recipe.Field{"prompt": column("messages")}, "<|begin|><|user|>q<|end|><|assistant|>", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t, map[string]string{"rows.jsonl": c.row}, recipe.Source{Path: "rows.jsonl", Fields: c.fields}).reinforced()
			f.tpl = byteTemplate(t, recipe.Chat{Template: c.template})
			set := f.mustOpen(t).Train
			p, err := set.Prompt(0)
			if err != nil {
				t.Fatal(err)
			}
			target := string(p.Target)
			if got := f.tpl.Tokenizer().Decode(p.IDs); got != c.ids || target != c.target || string(p.Row) != c.row {
				t.Errorf("got %s, target %s, row %s; want %s, target %s", got, target, p.Row, c.ids, c.target)
			}
			if tokens, trained := set.Count(0); tokens != len(p.IDs) || trained != 0 {
				t.Errorf("%d tokens, %d trained; want %d, 0", tokens, trained, len(p.IDs))
			}
		})
	}
}

func TestPromptsAtFault(t *testing.T) {
	for _, c := range []struct{ name, row, want string }{
		{"an empty prompt", `{"prompt": ""}`, "rows.jsonl:1: prompt: empty; a prompt needs text"},
		{"no message", `{"prompt": []}`, "rows.jsonl:1: prompt: empty; a prompt needs a message"},
		{"a target that is an object", `{"prompt": "q", "target": {"a": 1}}`, "rows.jsonl:1: target: an object where text or a number is due"},
		{"a target in a target", `{"prompt": "q", "target": ["a", []]}`, "rows.jsonl:1: target.1: a list where text or a number is due"},
		{"a conversation", `{"messages": [{"role": "user", "content": "q"}]}`, "messages rows do not go with this loss; it samples completions of prompts, whose columns fields maps, as {prompt: question, target: answer}"},
		{"names of others", `{"question": "q", "answer": "a"}`, "such as fields: {prompt: question, target: answer}"},
		{"a prompt that is too long", `{"prompt": "` + strings.Repeat("x", 5000) + `"}`, "rows.jsonl:1: 5004 tokens, and dataset.max_length is 4096"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t, map[string]string{"rows.jsonl": c.row}, recipe.Source{Path: "rows.jsonl"}).reinforced()
			if _, err := f.open(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}

func TestAPromptThatHasChanged(t *testing.T) {
	f := newFixture(t, map[string]string{"rows.jsonl": `{"prompt": "q"}`}, recipe.Source{Path: "rows.jsonl"}).reinforced()
	set := f.mustOpen(t).Train
	if err := os.WriteFile(filepath.Join(f.dir, "rows.jsonl"), []byte(`{"prompt": "r"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := set.Prompt(0); !errors.Is(err, ErrChanged) {
		t.Errorf("got %v, want %v", err, ErrChanged)
	}
}

func TestAPromptAsGradersAreGivenIt(t *testing.T) {
	for _, c := range []struct{ row, template, want string }{
		{`{"prompt": "a \"q\""}`, "auto", `[{"role":"user","content":"a \"q\""}]`},
		{`{"prompt": [{"role": "user", "content": "q"}]}`, "auto", `[{"role": "user", "content": "q"}]`},
		{`{"prompt": "q"}`, "none", `"q"`},
	} {
		f := newFixture(t, map[string]string{"rows.jsonl": c.row}, recipe.Source{Path: "rows.jsonl"}).reinforced()
		f.tpl = byteTemplate(t, recipe.Chat{Template: c.template})
		if p, err := f.mustOpen(t).Train.Prompt(0); err != nil || string(p.Asked) != c.want {
			t.Errorf("%s under %s: %s, %v; want %s", c.row, c.template, p.Asked, err, c.want)
		}
	}
}
