package chat

import (
	"slices"
	"testing"

	"trainer/internal/chat/jinja"
	"trainer/internal/tokenizer"
	"trainer/recipe"
)

// Data writes null for the content of a message that calls tools. A template that looks into it all the same renders the
// message as it does with empty text.
func TestCallsWithoutContent(t *testing.T) {
	dir := t.TempDir()
	f := family{eos: "<|im_end|>", control: []string{"<|im_start|>"}}
	writeTokenizer(t, dir, f)
	tok, err := tokenizer.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	const strict = `{% for m in messages %}<|im_start|>{{ m.role }}
{% if m.content.startswith("x") %}!{% endif %}{{ m.content }}{% for c in m.tool_calls or [] %}<call>{{ c.function.name }} {{ c.function.arguments | tojson }}</call>{% endfor %}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}{% if tools %}{% endif %}`
	tpl, err := New(recipe.Chat{Template: strict, TrainOn: "all_assistant_messages"}, tok, Source{})
	if err != nil {
		t.Fatal(err)
	}
	calls := &jinja.List{Items: []jinja.Value{jinja.NewDict("type", "function", "function", jinja.NewDict("name", "look", "arguments", jinja.NewDict("at", "x")))}}
	encode := func(fields *jinja.Dict) []Example {
		t.Helper()
		exs, err := tpl.Encode(Conversation{Messages: []Message{{Role: "user", Content: "q"}, {Role: "assistant", Fields: fields}}})
		if err != nil {
			t.Fatal(err)
		}
		return exs
	}
	without := encode(jinja.NewDict("role", "assistant", "tool_calls", calls))
	with := encode(jinja.NewDict("role", "assistant", "content", "", "tool_calls", calls))
	if !slices.Equal(without[0].IDs, with[0].IDs) || !slices.Equal(without[0].Weights, with[0].Weights) {
		t.Errorf("without content %q, with an empty one %q", tok.Decode(without[0].IDs), tok.Decode(with[0].IDs))
	}
	if got, want := tok.Decode(without[0].IDs), "<|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\n<call>look {\"at\": \"x\"}</call><|im_end|>\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
