package dataset

import (
	"slices"
	"strings"
	"testing"

	"trainer/internal/chat"
	"trainer/internal/diag"
	"trainer/recipe"
)

// forgetful writes reasoning in the last message alone, tools first, and calls behind the content.
const forgetful = `{% if tools %}<|reserved_0|>{{ tools | tojson }}<|end|>{% endif %}{% for m in messages %}<|{{ m.role }}|>` +
	`{% if m.reasoning_content and loop.last %}({{ m.reasoning_content }}){% endif %}{{ m.content }}` +
	`{% for c in m.tool_calls or [] %}[{{ c.function.name }} {{ c.function.arguments | tojson }}]{% endfor %}<|end|>{% endfor %}` +
	`{% if add_generation_prompt %}<|assistant|>{% endif %}`

// shownRows opens rows under the template and returns the examples of each as text.
func shownRows(t *testing.T, rows string, change ...func(*recipe.Dataset)) ([][]string, *Data, error) {
	t.Helper()
	f := newFixture(t, map[string]string{"rows.jsonl": rows}, recipe.Source{Path: "rows.jsonl"})
	f.tpl = byteTemplate(t, recipe.Chat{Template: forgetful})
	for _, c := range change {
		c(&f.r.Dataset)
	}
	data, err := f.open()
	if err != nil {
		return nil, nil, err
	}
	var out [][]string
	for i := range data.Train.Len() {
		row, err := data.Train.Row(i)
		if err != nil {
			t.Fatal(err)
		}
		var texts []string
		for _, d := range row.Data {
			ids := append(slices.Clone(d.Input[:1]), d.Targets...)
			texts = append(texts, f.tpl.Tokenizer().Decode(ids))
		}
		out = append(out, texts)
	}
	return out, data, nil
}

const user = `{"role": "user", "content": "u"}`

func TestRowsUnderATemplate(t *testing.T) {
	for _, c := range []struct {
		name, row string
		want      []string
	}{
		{"tool calls that are null", `{"messages": [` + user + `, {"role": "assistant", "content": "a", "tool_calls": null}]}`, []string{"<|user|>u<|end|><|assistant|>a<|end|>"}},
		{"content that is null beside calls", `{"messages": [` + user + `, {"role": "assistant", "content": null, "tool_calls": [{"function": {"name": "f", "arguments": {"z": 1, "a": 2.0}}}]}]}`,
			[]string{`<|user|>u<|end|><|assistant|>[f {"z": 1, "a": 2.0}]<|end|>`}},
		{"no parts in a system message", `{"messages": [{"role": "system", "content": []}, ` + user + `, {"role": "assistant", "content": "a"}]}`, []string{"<|system|><|end|><|user|>u<|end|><|assistant|>a<|end|>"}},
		{"empty text as a part", `{"messages": [{"role": "system", "content": [{"type": "text", "text": ""}]}, ` + user + `, {"role": "assistant", "content": "a"}]}`, []string{"<|system|><|end|><|user|>u<|end|><|assistant|>a<|end|>"}},
		{"a result of a tool", `{"messages": [` + user + `, {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f", "arguments": "{\"a\":1}"}}]}, {"role": "tool", "tool_call_id": "1", "name": "f", "content": "r"}, {"role": "assistant", "content": "a"}]}`,
			[]string{`<|user|>u<|end|><|assistant|>[f {"a": 1}]<|end|><|tool|>r<|end|><|assistant|>a<|end|>`}},
		{"tools in the order of the row", `{"tools": [{"type": "function", "function": {"name": "f", "b": 1, "a": 1e2}}], "messages": [` + user + `, {"role": "assistant", "content": "a"}]}`,
			[]string{`<|reserved_0|>[{"type": "function", "function": {"name": "f", "b": 1, "a": 100.0}}]<|end|><|user|>u<|end|><|assistant|>a<|end|>`}},
		{"a null in a list of arguments", `{"messages": [` + user + `, {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f", "arguments": {"l": [null, "a"]}}}]}]}`,
			[]string{`<|user|>u<|end|><|assistant|>[f {"l": [null, "a"]}]<|end|>`}},
		{"tools as JSON text", `{"tools": "[{\"name\": \"f\"}]", "messages": [` + user + `, {"role": "assistant", "content": "a"}]}`,
			[]string{`<|reserved_0|>[{"name": "f"}]<|end|><|user|>u<|end|><|assistant|>a<|end|>`}},
		{"no tools as text", `{"tools": "", "messages": [` + user + `, {"role": "assistant", "content": "a"}]}`, []string{"<|user|>u<|end|><|assistant|>a<|end|>"}},
		{"tools beside a prompt and its completion", `{"tools": [{"name": "f"}], "prompt": "u", "completion": "a"}`, []string{`<|reserved_0|>[{"name": "f"}]<|end|><|user|>u<|end|><|assistant|>a<|end|>`}},
		{"reasoning and calls as parts", `{"messages": [` + user + `, {"role": "assistant", "content": [{"type": "reasoning", "value": "hm"}, {"type": "text", "text": "a"}, {"type": "tool_call", "value": "{\"name\": \"f\", \"arguments\": {\"a\": 1}}"}]}]}`,
			[]string{`<|user|>u<|end|><|assistant|>(hm)a[f {"a": 1}]<|end|>`}},
		{"reasoning that is history later makes two examples", `{"messages": [` + user + `, {"role": "assistant", "content": "a", "reasoning_content": "hm"}, ` + user + `, {"role": "assistant", "content": "b"}]}`,
			[]string{"<|user|>u<|end|><|assistant|>(hm)a<|end|>", "<|user|>u<|end|><|assistant|>a<|end|><|user|>u<|end|><|assistant|>b<|end|>"}},
		{"what spells a control token", `{"messages": [{"role": "user", "content": "<|end|>"}, {"role": "assistant", "content": "a"}]}`, []string{"<|user|><|end|><|end|><|assistant|>a<|end|>"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, _, err := shownRows(t, c.row+"\n")
			if err != nil || !slices.Equal(got[0], c.want) {
				t.Errorf("%v, got %q, want %q", err, got, c.want)
			}
		})
	}
}

func TestBadRowsUnderATemplate(t *testing.T) {
	for _, c := range []struct{ name, row, want string }{
		{"a trained answer without parts", `{"messages": [` + user + `, {"role": "assistant", "content": []}]}`, "rows.jsonl:1: messages.1.content: empty; an assistant message that is trained needs text, or train: false"},
		{"a key that the template does not read", `{"messages": [` + user + `, {"role": "assistant", "content": "a", "mood": "good"}]}`, "rows.jsonl:1: messages.1.mood: not a key of a message (role, content, train, weight), and the template reads none of this name"},
		{"documents without a place", `{"documents": [{"text": "d"}], "messages": [` + user + `, {"role": "assistant", "content": "a"}]}`, "rows.jsonl:1: documents: the template has no place for them"},
		{"tools that are none", `{"tools": "x", "messages": [` + user + `, {"role": "assistant", "content": "a"}]}`, "rows.jsonl:1: tools: text that is not JSON"},
		{"a tool that is none", `{"tools": [1], "messages": [` + user + `, {"role": "assistant", "content": "a"}]}`, "rows.jsonl:1: tools.0: a number where an object is due"},
		{"an assistant of another name", `{"messages": [` + user + `, {"role": "model", "content": "a"}]}`, `rows.jsonl:1: no trained token; chat.train_on is all_assistant_messages; a message of "model" is none of the assistant`},
		{"a call as it was once written", `{"messages": [` + user + `, {"role": "assistant", "function_call": {"name": "f", "arguments": "{}"}}]}`,
			"rows.jsonl:1: messages.1.function_call: the template cannot render it, so training would drop it; write it as tool_calls, "},
		{"a call that is none", `{"messages": [` + user + `, {"role": "assistant", "content": [{"type": "tool_call", "value": "{}"}]}]}`, "rows.jsonl:1: messages.1.content.0.value: a tool call needs a name and arguments"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, _, err := shownRows(t, c.row+"\n")
			if err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

// A row of two examples counts its tokens once for each, and its length is the longer one's.
func TestRowsOfSeveralExamples(t *testing.T) {
	row := `{"messages": [` + user + `, {"role": "assistant", "content": "a", "reasoning_content": "hm"}, ` + user + `, {"role": "assistant", "content": "b"}]}` + "\n"
	_, data, err := shownRows(t, row)
	if err != nil {
		t.Fatal(err)
	}
	if tokens, trained := data.Train.Count(0); tokens != 10+12 || trained != 6+2 || data.Train.Longest(0) != 12 {
		t.Errorf("%d tokens, %d trained, the longest example has %d; want 22, 8 and 12", tokens, trained, data.Train.Longest(0))
	}
	limit := func(n int, overlong string) func(*recipe.Dataset) {
		return func(d *recipe.Dataset) { d.MaxLength, d.Overlong = n, overlong }
	}
	if _, _, err := shownRows(t, row, limit(12, "error")); err != nil {
		t.Errorf("12 tokens are the limit, and its examples have 10 and 12: %v", err)
	}
	if _, _, err := shownRows(t, row, limit(11, "error")); err == nil {
		t.Error("12 tokens pass a limit of 11")
	}
	got, data, err := shownRows(t, row, limit(10, "keep_start"))
	if err != nil || data.Cut != 1 || len(got[0]) != 1 {
		t.Errorf("%v, %q; the second example loses what it trains, and the first stays", err, got)
	}
	if _, err := data.Train.Rendered(); err != nil {
		t.Error(err)
	}
}

// The sandbox's own layout has no place for tools: they are refused, not ignored.
func TestToolsUnderTheByteLayout(t *testing.T) {
	f := newFixture(t, map[string]string{"rows.jsonl": `{"tools": [{"name": "f"}], "messages": [` + user + `, {"role": "assistant", "content": "a"}]}` + "\n"}, recipe.Source{Path: "rows.jsonl"})
	_, err := f.open()
	if want := "rows.jsonl:1: tools: the template has no place for them"; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v, want %s…", err, want)
	}
}

func FuzzRowsUnderATemplate(f *testing.F) {
	for _, s := range []string{
		`{"messages": [{"role": "user", "content": "u"}, {"role": "assistant", "content": "a", "reasoning_content": "hm"}, {"role": "user", "content": "<|end|>"}, {"role": "assistant", "content": null, "tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]}]}`,
		`{"tools": "[{\"name\": \"f\"}]", "prompt": "u", "completion": [{"role": "assistant", "content": [{"type": "thinking", "thinking": "x"}, "y"]}]}`,
		`{"messages": [{"role": "assistant", "content": "a</think>b<think>"}], "documents": [{"x": 1e400}]}`,
		`{"messages": [{"role": "", "content": "\ue000"}, {"role": "assistant", "tool_calls": [[], {"name": 1}, {"function": []}]}], "tools": [{}]}`,
	} {
		f.Add([]byte(s), true)
		f.Add([]byte(s), false)
	}
	tpls := map[bool]*chat.Template{}
	for _, allow := range []bool{true, false} {
		tpls[allow] = byteTemplate(f, recipe.Chat{Template: forgetful, AllowControlTokens: allow, TrainOn: map[bool]string{true: "all_messages", false: "all_assistant_messages"}[allow]})
	}
	f.Fuzz(func(t *testing.T, raw []byte, allow bool) {
		tpl, s := tpls[allow], &source{section: recipe.Source{Format: "auto"}, takes: supervisedRows}
		if check(raw) != nil || !trimmed(raw).isObject() || s.begin(trimmed(raw), diag.Pos{}, tpl) != nil {
			return
		}
		x := &index{section: recipe.Dataset{MaxLength: 64, Overlong: "keep_end"}, template: tpl}
		made, fault := x.encode(s, raw)
		if fault != nil {
			if fault.msg == "" {
				t.Fatalf("%q: a fault without a message at %q", raw, fault.key)
			}
			return
		}
		for _, ex := range made.sides {
			if n := len(ex.IDs); n == 0 || n > 64 || len(ex.Weights) != n {
				t.Fatalf("%q: %d ids, %d weights", raw, n, len(ex.Weights))
			}
		}
		if trainedIn(made.sides) == 0 {
			t.Fatalf("%q: nothing trains", raw)
		}
	})
}
