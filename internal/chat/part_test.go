package chat

import (
	"slices"
	"testing"

	"trainer/internal/tokenizer"
	"trainer/recipe"
)

// spelledParts are the parts of an example as text, by role.
func spelledParts(tok *tokenizer.Tokenizer, ex Example) []string {
	var out []string
	for _, p := range ex.Parts {
		out = append(out, p.Role+": "+tok.Decode(ex.IDs[p.From:p.To]))
	}
	return out
}

func TestPartsAreTheMessages(t *testing.T) {
	tok := tokenizer.Bytes()
	c := Conversation{Messages: []Message{{Role: "user", Content: "é"}, {Role: "assistant", Content: "a"}}}
	const written = "{{ bos_token }}{% for m in messages %}[{{ m.role }}]{{ m.content }}<|end|>{% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}"
	for _, k := range []struct {
		name, template string
		want           []string
	}{
		{"layout", "auto", []string{"user: <|user|>é<|end|>", "assistant: <|assistant|>a<|end|>"}},
		{"template", written, []string{"user: [user]é<|end|>", "assistant: [assistant]a<|end|>"}},
	} {
		t.Run(k.name, func(t *testing.T) {
			for _, mode := range []string{"all_assistant_messages", "all_tokens"} {
				tpl, err := New(recipe.Chat{Template: k.template, TrainOn: mode}, tok, Source{})
				if err != nil {
					t.Fatal(err)
				}
				exs, err := tpl.Encode(c)
				if err != nil || len(exs) != 1 {
					t.Fatalf("%d examples, %v", len(exs), err)
				}
				if got := spelledParts(tok, exs[0]); !slices.Equal(got, k.want) {
					t.Errorf("%s: got %q, want %q", mode, got, k.want)
				}
			}
		})
	}
}

func TestACutExampleKeepsItsParts(t *testing.T) {
	ex := Example{IDs: []int32{1, 2, 3, 4, 5, 6}, Weights: []float64{0, 0, 0, 1, 1, 1}, Parts: []Part{{"user", 1, 3}, {"assistant", 3, 6}}}
	got := ex.Cut(2, 5)
	if !slices.Equal(got.IDs, []int32{3, 4, 5}) || !slices.Equal(got.Weights, []float64{0, 1, 1}) ||
		!slices.Equal(got.Parts, []Part{{"user", 0, 1}, {"assistant", 1, 3}}) {
		t.Errorf("got %+v", got)
	}
	if got := ex.Cut(3, 6).Parts; !slices.Equal(got, []Part{{"assistant", 0, 3}}) {
		t.Errorf("a message that is cut away is still there: %+v", got)
	}
}
