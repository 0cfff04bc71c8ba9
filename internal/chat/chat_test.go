package chat

import (
	"math"
	"slices"
	"strings"
	"testing"

	"trainer/internal/tokenizer"
	"trainer/recipe"
)

func TestTheAnswerStartsWhereThePromptEnds(t *testing.T) {
	for _, section := range []recipe.Chat{{}, {System: ptr("be brief")}, {TrainOn: "last_assistant_turn", AllowControlTokens: true}} {
		tpl := template(t, section)
		for n := 1; n < len(conversation()); n++ {
			ms := conversation()[:n]
			prompt, err := tpl.Prompt(Conversation{Messages: ms})
			if err != nil {
				t.Fatal(err)
			}
			ex, err := only(tpl.Encode(Conversation{Messages: append(slices.Clone(ms), Message{Role: "assistant", Content: "\n answer"})}))
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(ex.IDs[:len(prompt)], prompt) {
				t.Errorf("%d messages: the example %v does not start with the prompt %v", n, ex.IDs, prompt)
			}
			if ex.Weights[len(prompt)-1] != 0 || ex.Weights[len(prompt)] != 1 || ex.Weights[len(ex.IDs)-1] != 1 {
				t.Errorf("%d messages: weights %v; training starts behind the prompt of %d tokens and includes the end", n, ex.Weights, len(prompt))
			}
		}
	}
}

func TestRawRows(t *testing.T) {
	for _, c := range []struct {
		name       string
		section    recipe.Chat
		render     func(*Template) (Example, error)
		text, want string
	}{
		{"text trains all of it and one end", recipe.Chat{}, func(tpl *Template) (Example, error) { return tpl.Text("ab") },
			"<|begin|>ab<|end|>", "0111"},
		{"text is the same without roles", recipe.Chat{Template: "none"}, func(tpl *Template) (Example, error) { return tpl.Text("ab") },
			"<|begin|>ab<|end|>", "0111"},
		{"a prompt and its completion become two messages", recipe.Chat{}, func(tpl *Template) (Example, error) { return only(tpl.PromptCompletion("p", "c")) },
			"<|begin|><|user|>p<|end|><|assistant|>c<|end|>", "0000011"},
		{"all_messages trains the prompt too", recipe.Chat{TrainOn: "all_messages"}, func(tpl *Template) (Example, error) { return only(tpl.PromptCompletion("p", "c")) },
			"<|begin|><|user|>p<|end|><|assistant|>c<|end|>", "0011011"},
		{"without roles they touch", recipe.Chat{Template: "none"}, func(tpl *Template) (Example, error) { return only(tpl.PromptCompletion("p ", "c")) },
			"<|begin|>p c<|end|>", "00011"},
		{"without roles all_tokens trains the prompt too", recipe.Chat{Template: "none", TrainOn: "all_tokens"}, func(tpl *Template) (Example, error) { return only(tpl.PromptCompletion("p ", "c")) },
			"<|begin|>p c<|end|>", "01111"},
		{"without roles a prompt may be empty", recipe.Chat{Template: "none"}, func(tpl *Template) (Example, error) { return only(tpl.PromptCompletion("", "c")) },
			"<|begin|>c<|end|>", "011"},
		{"spelt control tokens stay text", recipe.Chat{}, func(tpl *Template) (Example, error) { return tpl.Text("<|end|>") },
			"<|begin|><|end|><|end|>", "011111111"},
		{"spelt control tokens become tokens where allowed", recipe.Chat{AllowControlTokens: true}, func(tpl *Template) (Example, error) { return tpl.Text("<|end|>") },
			"<|begin|><|end|><|end|>", "011"},
		{"space is kept", recipe.Chat{}, func(tpl *Template) (Example, error) { return only(tpl.PromptCompletion(" p\n", "  a \n")) },
			"<|begin|><|user|> p\n<|end|><|assistant|>  a \n<|end|>", "0000000111111"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tpl := template(t, c.section)
			ex, err := c.render(tpl)
			if err != nil {
				t.Fatal(err)
			}
			if got := tpl.Tokenizer().Decode(ex.IDs); got != c.text {
				t.Errorf("rendered %q, want %q", got, c.text)
			}
			if got := digits(ex.Weights); got != c.want {
				t.Errorf("weights %s, want %s", got, c.want)
			}
		})
	}
}

func TestFaultsOfMessages(t *testing.T) {
	user := Message{Role: "user", Content: "u"}
	for _, c := range []struct {
		name    string
		section recipe.Chat
		ms      []Message
		want    string
	}{
		{"a role that is nearly one", recipe.Chat{}, []Message{user, {Role: "asistant", Content: "a"}},
			`messages.1.role: "asistant" is not a role (system, user, assistant, tool); did you mean "assistant"?`},
		{"a role of another dialect", recipe.Chat{}, []Message{{Role: "human", Content: "a"}},
			`messages.0.role: "human" is not a role (system, user, assistant, tool); here it is called "user"`},
		{"no role", recipe.Chat{}, []Message{{Content: "a"}}, `messages.0.role: "" is not a role (system, user, assistant, tool)`},
		{"no message", recipe.Chat{}, nil, "empty; a conversation needs a message"},
		{"a trained answer without text", recipe.Chat{}, []Message{user, {Role: "assistant"}},
			"messages.1.content: empty; an assistant message that is trained needs text, or train: false"},
		{"a weight below zero", recipe.Chat{}, []Message{{Role: "user", Weight: ptr(-1.0)}}, "messages.0.weight: -1 is not a weight; a finite number, at least 0"},
		{"a weight that is no number", recipe.Chat{}, []Message{{Role: "user", Weight: ptr(math.NaN())}}, "messages.0.weight: NaN is not a weight; a finite number, at least 0"},
		{"a weight beyond what the wire carries", recipe.Chat{}, []Message{{Role: "user", Weight: ptr(1e39)}}, "messages.0.weight: 1e+39 is not a weight; a finite number, at least 0"},
		{"messages without roles", recipe.Chat{Template: "none"}, []Message{user},
			"messages need roles, and chat.template: none has none; rows of text, or of a prompt and a completion, do without"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := template(t, c.section).Encode(Conversation{Messages: c.ms})
			if err == nil || err.Error() != c.want {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
	if _, err := template(t, recipe.Chat{}).Text(""); err == nil {
		t.Error("empty text is rendered")
	}
	if _, err := template(t, recipe.Chat{Template: "none"}).PromptCompletion("p", ""); err == nil {
		t.Error("an empty completion is rendered")
	}
}

func TestUnusualConversationsRender(t *testing.T) {
	for name, ms := range map[string][]Message{
		"system and assistant alone":     {{Role: "system", Content: "s"}, {Role: "assistant", Content: "a"}},
		"an assistant alone":             {{Role: "assistant", Content: "a"}},
		"an empty user message":          {{Role: "user"}, {Role: "assistant", Content: "a"}},
		"an untrained empty answer":      {{Role: "assistant", Train: ptr(false)}, {Role: "assistant", Content: "a"}},
		"an answer before the last user": {{Role: "assistant", Content: "a"}, {Role: "user", Content: "u"}},
	} {
		if _, err := template(t, recipe.Chat{}).Encode(Conversation{Messages: ms}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	for _, c := range []struct {
		name    string
		section recipe.Chat
		want    string
	}{
		{"a template file", recipe.Chat{Template: "my.jinja", TrainOn: "all_tokens"},
			`chat.template: "my.jinja": neither a file that was opened nor a template; auto is the tokenizer's own, none raw text`},
		{"arguments without effect", recipe.Chat{Template: "auto", TrainOn: "all_tokens", Args: map[string]any{"enable_thinking": false}},
			"chat.args: this template takes no arguments, so they would have no effect; leave them out"},
		{"a mode that is none", recipe.Chat{Template: "auto", TrainOn: "all_token"}, `chat.train_on: "all_token" is not a mode; did you mean "all_tokens"?`},
		{"what messages have, without messages", recipe.Chat{Template: "none", TrainOn: "per_message", System: ptr("s")},
			"chat.system: template: none has no system message, so it would have no effect; leave it out\n" +
				"chat.train_on: per_message needs messages, and template: none has none; leave it out to train completions, or take all_tokens"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := New(c.section, tokenizer.Bytes(), Source{})
			if err == nil || err.Error() != c.want {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

func TestHashTellsApartWhatRendersApart(t *testing.T) {
	seen := map[string]string{}
	for name, section := range map[string]recipe.Chat{
		"plain": {}, "system": {System: ptr("a")}, "empty system": {System: ptr("")}, "system that says none": {System: ptr("none")},
		"mode": {TrainOn: "all_tokens"}, "control": {AllowControlTokens: true}, "raw": {Template: "none"},
	} {
		h := template(t, section).Hash()
		if other, ok := seen[h]; ok {
			t.Errorf("%s and %s have the same hash", name, other)
		}
		seen[h] = name
		if again := template(t, section).Hash(); again != h || len(h) != 64 || strings.ToLower(h) != h {
			t.Errorf("%s: %s, then %s", name, h, again)
		}
	}
}
