package chat

import (
	"fmt"
	"slices"
	"testing"

	"trainer/internal/tokenizer"
	"trainer/recipe"
)

func ptr[T any](v T) *T { return &v }

func template(t testing.TB, section recipe.Chat) *Template {
	t.Helper()
	if section.Template == "" {
		section.Template = "auto"
	}
	if section.TrainOn == "" {
		section.TrainOn = "all_assistant_messages"
	}
	tpl, err := New(section, tokenizer.Bytes(), Source{})
	if err != nil {
		t.Fatal(err)
	}
	return tpl
}

// only is the one example of a conversation.
func only(exs []Example, err error) (Example, error) {
	if err == nil && len(exs) != 1 {
		err = fmt.Errorf("%d examples, want one", len(exs))
	}
	if err != nil {
		return Example{}, err
	}
	return exs[0], nil
}

// The conversation of the golden masks. Its layout, a token a column:
//
//	<|begin|> <|system|> S <|end|> <|user|> u 1 <|end|> <|assistant|> a 1 <|end|>
//	<|user|> u 2 <|end|> <|assistant|> a 2 <|end|> <|tool|> t <|end|> <|assistant|> a 3 <|end|>
func conversation() []Message {
	return []Message{
		{Role: "system", Content: "S"},
		{Role: "user", Content: "u1"}, {Role: "assistant", Content: "a1"},
		{Role: "user", Content: "u2"}, {Role: "assistant", Content: "a2"},
		{Role: "tool", Content: "t"}, {Role: "assistant", Content: "a3"},
	}
}

func TestMasks(t *testing.T) {
	ids := []int32{256, 258, 'S', 257, 259, 'u', '1', 257, 260, 'a', '1', 257,
		259, 'u', '2', 257, 260, 'a', '2', 257, 261, 't', 257, 260, 'a', '3', 257}
	for _, c := range []struct {
		name, mode string
		change     func([]Message)
		want       string // one digit a token; h is a half
	}{
		{"all_assistant_messages trains text and end of each", "all_assistant_messages", nil,
			"0" + "000" + "0000" + "0111" + "0000" + "0111" + "000" + "0111"},
		{"last_assistant_message trains one", "last_assistant_message", nil,
			"0" + "000" + "0000" + "0000" + "0000" + "0000" + "000" + "0111"},
		{"last_assistant_turn trains all behind the last user message", "last_assistant_turn", nil,
			"0" + "000" + "0000" + "0000" + "0000" + "0111" + "000" + "0111"},
		{"all_messages trains every text and end, no header", "all_messages", nil,
			"0" + "011" + "0111" + "0111" + "0111" + "0111" + "011" + "0111"},
		{"all_tokens trains all but the first", "all_tokens", nil,
			"0" + "111" + "1111" + "1111" + "1111" + "1111" + "111" + "1111"},
		{"per_message trains what says so, of any role", "per_message",
			func(ms []Message) { ms[1].Train, ms[4].Train = ptr(true), ptr(true) },
			"0" + "000" + "0111" + "0000" + "0000" + "0111" + "000" + "0000"},
		{"per_message trains no message that is silent", "per_message",
			func(ms []Message) { ms[2].Weight = ptr(1.0) },
			"0" + "000" + "0000" + "0000" + "0000" + "0000" + "000" + "0000"},
		{"train: false excludes", "all_assistant_messages",
			func(ms []Message) { ms[2].Train = ptr(false) },
			"0" + "000" + "0000" + "0000" + "0000" + "0111" + "000" + "0111"},
		{"weight: 0 excludes", "all_assistant_messages",
			func(ms []Message) { ms[2].Weight = ptr(0.0) },
			"0" + "000" + "0000" + "0000" + "0000" + "0111" + "000" + "0111"},
		{"weight: 0 excludes from all_tokens, header too", "all_tokens",
			func(ms []Message) { ms[3].Weight = ptr(0.0) },
			"0" + "111" + "1111" + "1111" + "0000" + "1111" + "111" + "1111"},
		{"train: true does not outdo weight: 0", "per_message",
			func(ms []Message) { ms[2].Train, ms[2].Weight, ms[4].Train = ptr(true), ptr(0.0), ptr(true) },
			"0" + "000" + "0000" + "0000" + "0000" + "0111" + "000" + "0000"},
		{"an excluded last message leaves nothing to last_assistant_message", "last_assistant_message",
			func(ms []Message) { ms[6].Train = ptr(false) },
			"0" + "000" + "0000" + "0000" + "0000" + "0000" + "000" + "0000"},
		{"a fraction multiplies", "all_assistant_messages",
			func(ms []Message) { ms[4].Weight = ptr(0.5) },
			"0" + "000" + "0000" + "0111" + "0000" + "0hhh" + "000" + "0111"},
		{"train: true changes nothing outside of per_message", "all_assistant_messages",
			func(ms []Message) { ms[1].Train = ptr(true) },
			"0" + "000" + "0000" + "0111" + "0000" + "0111" + "000" + "0111"},
		{"a given answer is no target", "all_assistant_messages",
			func(ms []Message) { ms[0].Given, ms[1].Given, ms[2].Given, ms[3].Given = true, true, true, true },
			"0" + "000" + "0000" + "0000" + "0000" + "0111" + "000" + "0111"},
		{"all_messages trains what is given", "all_messages",
			func(ms []Message) { ms[1].Given = true },
			"0" + "011" + "0111" + "0111" + "0111" + "0111" + "011" + "0111"},
	} {
		t.Run(c.name, func(t *testing.T) {
			ms := conversation()
			if c.change != nil {
				c.change(ms)
			}
			ex, err := only(template(t, recipe.Chat{TrainOn: c.mode}).Encode(Conversation{Messages: ms}))
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(ex.IDs, ids) {
				t.Errorf("ids %v, want %v", ex.IDs, ids)
			}
			if got := digits(ex.Weights); got != c.want {
				t.Errorf("weights\n%s, want\n%s", got, c.want)
			}
		})
	}
}

func digits(weights []float64) string {
	out := make([]byte, len(weights))
	for i, w := range weights {
		out[i] = map[float64]byte{0: '0', 1: '1', 0.5: 'h'}[w]
	}
	return string(out)
}

func TestSystemOfTheRecipe(t *testing.T) {
	for _, c := range []struct {
		name, mode string
		ms         []Message
		text, want string
	}{
		{"goes before a conversation without one", "all_assistant_messages", []Message{{Role: "user", Content: "u"}, {Role: "assistant", Content: "a"}},
			"<|begin|><|system|>Z<|end|><|user|>u<|end|><|assistant|>a<|end|>", "0000000011"},
		{"leaves one that is there alone", "all_assistant_messages", []Message{{Role: "system", Content: ""}, {Role: "assistant", Content: "a"}},
			"<|begin|><|system|><|end|><|assistant|>a<|end|>", "000011"},
		{"is a message to all_messages", "all_messages", []Message{{Role: "assistant", Content: "a"}},
			"<|begin|><|system|>Z<|end|><|assistant|>a<|end|>", "0011011"},
		{"has nobody to train it per message", "per_message", []Message{{Role: "assistant", Content: "a", Train: ptr(true)}},
			"<|begin|><|system|>Z<|end|><|assistant|>a<|end|>", "0000011"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tpl := template(t, recipe.Chat{TrainOn: c.mode, System: ptr("Z")})
			ex, err := only(tpl.Encode(Conversation{Messages: c.ms}))
			if err != nil {
				t.Fatal(err)
			}
			if got := tpl.Tokenizer().Decode(ex.IDs); got != c.text {
				t.Errorf("rendered %s, want %s", got, c.text)
			}
			if got := digits(ex.Weights); got != c.want {
				t.Errorf("weights %s, want %s", got, c.want)
			}
		})
	}
}
