package chat

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"trainer/internal/chat/hf"
	"trainer/internal/diag"
	"trainer/internal/tokenizer"
	"trainer/recipe"
)

func named(t testing.TB, name string) family {
	t.Helper()
	all := families()
	i := slices.IndexFunc(all, func(f family) bool { return f.name == name })
	if i < 0 {
		t.Fatalf("no family %s", name)
	}
	return all[i]
}

func text(exs []Example, tok *tokenizer.Tokenizer) string {
	var parts []string
	for _, ex := range exs {
		parts = append(parts, shown(tok, ex))
	}
	return strings.Join(parts, "\n--\n")
}

// Header 0, text 1, end token 1, the newline behind it 0: a token a column.
func TestAnAnswerTokenByToken(t *testing.T) {
	tpl := named(t, "qwen2_5").open(t)
	exs, err := tpl.Encode(parse(t, `{"messages":[{"role":"system","content":"s"},{"role":"user","content":"u"},{"role":"assistant","content":"ok a"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	ex := exs[0]
	for i := len(ex.IDs) - 17; i < len(ex.IDs); i++ {
		got = append(got, tpl.tok.Decode(ex.IDs[i:i+1])+map[float64]string{0: "·0", 1: "·1"}[ex.Weights[i]])
	}
	want := []string{"<|im_end|>·0", "\n·0", "<|im_start|>·0", "a·0", "s·0", "s·0", "i·0", "s·0", "t·0", "a·0", "n·0", "t·0", "\n·0", "o·1", "k·1", " a·1", "<|im_end|>·1", "\n·0"}
	if want = want[1:]; !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestFlagsOfMessagesUnderATemplate(t *testing.T) {
	tpl := named(t, "qwen2_5").open(t)
	c := parse(t, `{"messages":[{"role":"system","content":"s"},{"role":"user","content":"u1"},{"role":"assistant","content":"a1"},{"role":"user","content":"u2"},{"role":"assistant","content":"a2"}]}`)
	c.Messages[2].Weight = ptr(0.0)
	c.Messages[4].Weight = ptr(0.5)
	exs, err := tpl.Encode(c)
	if err != nil {
		t.Fatal(err)
	}
	if got := shown(tpl.tok, exs[0]); strings.Contains(got, "⟦a1") || !strings.Contains(got, "⟦a2<|im_end|>⟧") || slices.Max(exs[0].Weights) != 0.5 {
		t.Errorf("got %s, largest weight %v", got, slices.Max(exs[0].Weights))
	}
}

func TestModesUnderATemplate(t *testing.T) {
	row := `{"messages":[{"role":"system","content":"s"},{"role":"user","content":"  u1"},{"role":"assistant","content":"a1"},{"role":"user","content":"u2"},{"role":"assistant","content":"a2"}]}`
	head := "<|im_start|>system\n"
	for mode, want := range map[string]string{
		"last_assistant_message": head + "s<|im_end|>\n<|im_start|>user\n  u1<|im_end|>\n<|im_start|>assistant\na1<|im_end|>\n<|im_start|>user\nu2<|im_end|>\n<|im_start|>assistant\n⟦a2<|im_end|>⟧\n",
		"last_assistant_turn":    head + "s<|im_end|>\n<|im_start|>user\n  u1<|im_end|>\n<|im_start|>assistant\na1<|im_end|>\n<|im_start|>user\nu2<|im_end|>\n<|im_start|>assistant\n⟦a2<|im_end|>⟧\n",
		"all_assistant_messages": head + "s<|im_end|>\n<|im_start|>user\n  u1<|im_end|>\n<|im_start|>assistant\n⟦a1<|im_end|>⟧\n<|im_start|>user\nu2<|im_end|>\n<|im_start|>assistant\n⟦a2<|im_end|>⟧\n",
		"all_messages":           head + "⟦s<|im_end|>⟧\n<|im_start|>user\n⟦  u1<|im_end|>⟧\n<|im_start|>assistant\n⟦a1<|im_end|>⟧\n<|im_start|>user\n⟦u2<|im_end|>⟧\n<|im_start|>assistant\n⟦a2<|im_end|>⟧\n",
		"all_tokens":             "<|im_start|>⟦system\ns<|im_end|>\n<|im_start|>user\n  u1<|im_end|>\n<|im_start|>assistant\na1<|im_end|>\n<|im_start|>user\nu2<|im_end|>\n<|im_start|>assistant\na2<|im_end|>\n⟧",
	} {
		tpl := named(t, "qwen2_5").open(t, func(c *recipe.Chat) { c.TrainOn = mode })
		exs, err := tpl.Encode(parse(t, row))
		if err != nil {
			t.Errorf("%s: %v", mode, err)
		} else if got := text(exs, tpl.tok); got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", mode, got, want)
		}
	}
	tpl := named(t, "qwen2_5").open(t, func(c *recipe.Chat) { c.TrainOn = "per_message" })
	c := parse(t, row)
	c.Messages[1].Train, c.Messages[4].Train = ptr(true), ptr(true)
	exs, err := tpl.Encode(c)
	if want := head + "s<|im_end|>\n<|im_start|>user\n⟦  u1<|im_end|>⟧\n<|im_start|>assistant\na1<|im_end|>\n<|im_start|>user\nu2<|im_end|>\n<|im_start|>assistant\n⟦a2<|im_end|>⟧\n"; err != nil || text(exs, tpl.tok) != want {
		t.Errorf("per_message: %v, got\n%s\nwant\n%s", err, text(exs, tpl.tok), want)
	}
}

func TestRowsThatATemplateCannotTrain(t *testing.T) {
	for _, c := range []struct{ name, family, row, want string }{
		{"reasoning where the recipe asks for none", "qwen3 off", `{"messages":[{"role":"user","content":"2+2"},{"role":"assistant","content":"<think>x</think>4"}]}`,
			"messages.1.content: has reasoning, and chat.args says enable_thinking: false"},
		{"reasoning under its own key where the recipe asks for none", "qwen3 off", `{"messages":[{"role":"user","content":"2+2"},{"role":"assistant","content":"4","reasoning_content":"x"}]}`,
			"messages.1.reasoning_content: has reasoning, and chat.args says enable_thinking: false"},
		{"an argument that is dropped", "drops", `{"messages":[{"role":"user","content":"u"},{"role":"assistant","content":"","tool_calls":[{"function":{"name":"f","arguments":{"city":"Paris","day":"Monday"}}}]}]}`,
			`messages.1.tool_calls.0.function.arguments.city: the template does not write "Paris"`},
		{"a result that is dropped", "drops", `{"messages":[{"role":"user","content":"u"},{"role":"tool","content":"result"},{"role":"assistant","content":"a"}]}`,
			`messages.1.content: the template does not write "result"`},
		{"tools without a place", "llama3", `{"messages":[{"role":"user","content":"u"},{"role":"assistant","content":"a"}],"tools":[{"function":{"name":"f"}}]}`,
			"tools: the template has no place for them"},
		{"a key that no template reads", "qwen3", `{"messages":[{"role":"user","content":"u","mood":"good"},{"role":"assistant","content":"a"}]}`,
			"messages.0.mood: not a key of a message"},
		{"an assistant alone", "qwen3", `{"messages":[{"role":"assistant","content":"a"}]}`, "messages.0: the conversation starts with the assistant"},
		{"an answer that says nothing", "qwen3", `{"messages":[{"role":"user","content":"u"},{"role":"assistant","content":""}]}`, "messages.1.content: empty"},
		{"what the template refuses", "gemma3", `{"messages":[{"role":"user","content":"u"},{"role":"user","content":"u"},{"role":"assistant","content":"a"}]}`,
			"messages.2: the template refuses it: Conversation roles must alternate"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var tpl *Template
			switch c.family {
			case "qwen3 off":
				f := named(t, "qwen3")
				f.args = map[string]any{"enable_thinking": false}
				tpl = f.open(t)
			case "drops":
				tpl = template(t, recipe.Chat{Template: `{% for m in messages if m.role != 'tool' %}<|{{ m.role }}|>{{ m.content }}{% for c in m.tool_calls or [] %}{{ c.function.name }}{% for k in c.function.arguments %} {{ k }}{% endfor %}{% endfor %}<|end|>{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}`})
			case "llama3":
				tpl = template(t, recipe.Chat{Template: plainTemplate})
			default:
				tpl = named(t, c.family).open(t)
			}
			_, err := tpl.Encode(parse(t, c.row))
			if err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("got %v, want %s…", err, c.want)
			}
		})
	}
}

// Reasoning of an earlier turn that the template leaves out of history is not lost: that turn has an example of its own.
func TestTagsThatAreHalfOpenRenderAsUpstream(t *testing.T) {
	tpl := named(t, "qwen3").open(t)
	for content, want := range map[string]string{
		"a</think>b": "<think>\na\n</think>\n\nb",
		"<think>a":   "<think>\n\n</think>\n\n<think>a",
	} {
		c := Conversation{Messages: []Message{{Role: "user", Content: "u"}, {Role: "assistant", Content: content}}}
		exs, err := tpl.Encode(c)
		if err != nil || !strings.HasSuffix(text(exs, tpl.tok), "⟦"+want+"<|im_end|>⟧\n") {
			t.Errorf("%q: %v, got %s", content, err, text(exs, tpl.tok))
		}
	}
}

func TestArgumentsAsTextAndAsAnObject(t *testing.T) {
	for _, name := range []string{"qwen2_5", "qwen3", "qwen3_5", "gptoss", "llama3_1", "mistral_nemo", "kimi_k2", "glm4"} {
		tpl := named(t, name).open(t)
		var all []string
		for _, arguments := range []string{`{"city": "Zürich", "n": 1.0}`, `"{\"city\":\"Zürich\",\"n\":1.0}"`} {
			exs, err := tpl.Encode(parse(t, `{`+weatherTool+`,"messages":[{"role":"user","content":"u"},{"role":"assistant","content":"","tool_calls":[{"id":"call00001","type":"function","function":{"name":"weather","arguments":`+arguments+`}}]}]}`))
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			all = append(all, text(exs, tpl.tok))
		}
		if all[0] != all[1] || !strings.Contains(all[0], "1.0") {
			t.Errorf("%s: got\n%s\nand\n%s", name, all[0], all[1])
		}
	}
}

// Space is trimmed, or not, as the model's own template does it.
func TestSpaceIsTheTemplates(t *testing.T) {
	for _, f := range families() {
		tpl := f.open(t)
		for _, role := range []string{"system", "user", "assistant"} {
			c := Conversation{Messages: []Message{{Role: "system", Content: "s"}, {Role: "user", Content: "u"}, {Role: "assistant", Content: "a"}}}
			for i := range c.Messages {
				if c.Messages[i].Role == role {
					c.Messages[i].Content = "  a \n"
				}
			}
			exs, err := tpl.Encode(c)
			if err != nil {
				continue // refused, which TestFamilies looks at
			}
			j := &job{t: tpl, p: tpl.own, c: c, tpl: tpl.own.template(false)}
			j.prepare(nil)
			out, err := j.tpl.Render(hf.Conversation{Messages: j.given}, tpl.own.options)
			if got := tpl.tok.Decode(exs[0].IDs); err != nil || f.name != "mistral_nemo" && !strings.HasPrefix(got, out.Text) {
				t.Errorf("%s, %s: got %q, the template writes %q, %v", f.name, role, got, out.Text, err)
			}
		}
	}
}

// A prompt that ends in a line break and an answer that starts with one: in the text as a whole one token stands for both.
func TestAPromptThatEndsWithinAToken(t *testing.T) {
	tpl := named(t, "qwen2_5").open(t)
	c := parse(t, `{"messages":[{"role":"system","content":"s"},{"role":"user","content":"u"},{"role":"assistant","content":"\none"},{"role":"user","content":"v"},{"role":"assistant","content":"\ntwo"}]}`)
	exs, err := tpl.Encode(c)
	if err != nil {
		t.Fatal(err)
	}
	if n := checkTurns(t, tpl, "qwen2_5", c, exs); n != 2 || len(exs) != 2 {
		t.Errorf("%d turns in %d examples; sampling the second turn is given the first one's line breaks as one token", n, len(exs))
	}
	both, _ := tpl.tok.Encode("\n\n")
	if len(both) != 1 {
		t.Fatalf("the test needs a vocabulary in which a blank line is one token, not %v", both)
	}
}

func TestOneBeginAndOneEnd(t *testing.T) {
	for _, name := range []string{"llama3_1", "deepseek_v3", "gemma3", "mistral_nemo"} {
		f := named(t, name)
		f.begins = true
		tpl := f.open(t)
		bos, _ := tpl.tok.Control(f.bos)
		prompt, err := tpl.PromptText("u")
		if err != nil || count(prompt, bos) != 1 {
			t.Errorf("%s: %d begins in the prompt, %v", name, count(prompt, bos), err)
		}
		exs, err := tpl.PromptCompletion("u", "a")
		if err != nil {
			t.Fatal(err)
		}
		ids := exs[0].IDs
		if count(ids, bos) != 1 || ids[0] != bos {
			t.Errorf("%s: %d begins in %v", name, count(ids, bos), ids)
		}
		raw := f.open(t, func(c *recipe.Chat) { c.Template = "none" })
		ex, err := raw.Text("a")
		eos, _ := raw.tok.End()
		if want := []int32{bos, ids[0]}; err != nil || len(ex.IDs) != 3 || ex.IDs[0] != want[0] || ex.IDs[2] != eos || ex.Weights[0] != 0 || ex.Weights[2] != 1 {
			t.Errorf("%s: text is %v, %v, %v; want begin, a, end", name, ex.IDs, ex.Weights, err)
		}
	}
}

func count(ids []int32, id int32) (n int) {
	for _, i := range ids {
		if i == id {
			n++
		}
	}
	return n
}

func TestTemplatesThatCannotBeTrained(t *testing.T) {
	loop := `{% for m in messages %}<|{{ m.role }}|>{{ m.content }}`
	prompt := `{% if add_generation_prompt %}<|assistant|>{% endif %}`
	for _, c := range []struct {
		name    string
		section recipe.Chat
		want    string
	}{
		{"an end token that is several", recipe.Chat{Template: loop + `<|im_end|>{% endfor %}` + prompt}, "chat.template: it ends an answer with no token that a model could stop with: <|im_end|> is not one of bytes"},
		{"a template that does not parse", recipe.Chat{Template: "{% for %}"}, "chat.template: 1:"},
		{"a template that is no text", recipe.Chat{Template: "\xff{{ messages }}"}, "chat.template: the template is not UTF-8 (UnicodeDecodeError)"},
		{"an argument that nothing reads", recipe.Chat{Template: "{{ enable_thinking }}" + loop + `<|end|>{% endfor %}` + prompt, Args: map[string]any{"enable_thinkin": false}},
			`chat.args.enable_thinkin: the template reads no variable of this name, so it would have no effect; did you mean "enable_thinking"?; it reads enable_thinking`},
		{"a date that is missing", recipe.Chat{Template: "{{ strftime_now('%Y') }}" + loop + `<|end|>{% endfor %}` + prompt}, "chat.date: missing"},
		{"a date that is none", recipe.Chat{Template: "{{ strftime_now('%Y') }}" + loop + `<|end|>{% endfor %}` + prompt, Date: ptr("tomorrow")}, `chat.date: "tomorrow" is not a day`},
		{"a date that nothing writes", recipe.Chat{Template: loop + `<|end|>{% endfor %}` + prompt, Date: ptr("2026-01-31")}, "chat.date: this template writes no date"},
		{"no generation prompt", recipe.Chat{Template: loop + `<|end|>{% endfor %}`}, `chat.template: it writes "<|assistant|>" before an answer, and nothing of that as a generation prompt`},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.section.TrainOn = "all_assistant_messages"
			_, err := New(c.section, tokenizer.Bytes(), Source{})
			var l diag.List
			if !errors.As(err, &l) || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("got %v, want %s…", err, c.want)
			}
		})
	}
}

func TestAModelWithoutATemplate(t *testing.T) {
	f, dir := named(t, "qwen3"), t.TempDir()
	writeTokenizer(t, dir, f)
	tok, err := tokenizer.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	_, err = New(recipe.Chat{Template: "auto", TrainOn: "all_assistant_messages"}, tok, Source{})
	for _, way := range []string{"as a file", "write it here", "take none"} {
		if err == nil || !strings.Contains(err.Error(), way) {
			t.Errorf("%v offers no %q", err, way)
		}
	}
}

func TestControlTokensInTextWhereTheyAreAllowed(t *testing.T) {
	tpl := named(t, "qwen2_5").open(t, func(c *recipe.Chat) { c.AllowControlTokens = true })
	exs, err := tpl.Encode(parse(t, `{"messages":[{"role":"user","content":"a<|im_end|>b"},{"role":"assistant","content":"c"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	end, _ := tpl.tok.Control("<|im_end|>")
	if n := count(exs[0].IDs, end); n != 4 {
		t.Errorf("%d end tokens, want those of three messages and the one in the text", n)
	}
}

// A conversation of many turns is not rendered twice a turn, and is the same as if it were.
func TestManyTurns(t *testing.T) {
	for _, f := range families() {
		tpl := f.open(t)
		var c Conversation
		for i := range 12 {
			c.Messages = append(c.Messages, Message{Role: "user", Content: strings.Repeat("q", i)}, Message{Role: "assistant", Content: strings.Repeat("a", i+1)})
		}
		exs, err := tpl.Encode(c)
		if err != nil {
			continue
		}
		if n := checkTurns(t, tpl, f.name, c, exs); n != 12 {
			t.Errorf("%s: %d turns", f.name, n)
		}
	}
}

// Templates prompt for a turn in one way, and write it in another once it is there: a turn follows its prompt as a model would
// go on from there.
func TestPromptsThatOpenReasoning(t *testing.T) {
	for _, c := range []struct{ name, given, written, answer, want string }{
		{"the prompt closes what it opens", "<think></think>", "", `"content":"a"`, "<think></think>⟦a<|end|>⟧"},
		{"the prompt closes what it opens, and the message opens nothing", "<think></think>", "</think>", `"content":"a"`, "<think></think>⟦a<|end|>⟧"},
		{"the message closes what the prompt opens", "<think>", "</think>", `"content":"a"`, "<think>⟦</think>a<|end|>⟧"},
		{"a line more", "<think>\n", "<think></think>", `"content":"a"`, "<think>\n⟦</think>a<|end|>⟧"},
		{"reasoning that the template leaves out", "<think>\n", "", `"content":"a","reasoning_content":"hm"`, "<think>\n⟦hm\n</think>\n\na<|end|>⟧"},
		{"reasoning that spells a control token", "<think>\n", "", `"content":"a","reasoning_content":"<|end|>"`, "<think>\n⟦<|end|>\n</think>\n\na<|end|>⟧"},
		{"no reasoning, said", "<think>\n", "", `"content":"a","reasoning_content":""`, "<think>\n⟦\n</think>\n\na<|end|>⟧"},
		{"no reasoning, not said", "<think>\n", "", `"content":"a"`, `messages.1: sampling would start behind "<think>\n", but the template writes "a<|end|>" there`},
		{"another tag", "<plan>", "", `"content":"a"`, `messages.1: sampling would start behind "<plan>", but the template writes "a<|end|>" there`},
	} {
		t.Run(c.name, func(t *testing.T) {
			tpl := template(t, recipe.Chat{Template: "{% for m in messages %}<|{{ m.role }}|>{% if m.role == 'assistant' %}" + c.written + "{% endif %}{{ m.content }}<|end|>{% endfor %}" +
				"{% if add_generation_prompt %}<|assistant|>{{ '" + strings.ReplaceAll(c.given, "\n", `\n`) + "' }}{% endif %}"})
			exs, err := tpl.Encode(parse(t, `{"messages":[{"role":"user","content":"u"},{"role":"assistant",`+c.answer+`}]}`))
			if err != nil {
				if !strings.HasPrefix(err.Error(), c.want) {
					t.Errorf("got %v, want %s…", err, c.want)
				}
				return
			}
			if got := text(exs, tpl.tok); got != "<|user|>u<|end|><|assistant|>"+c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			end, _ := tpl.tok.Control("<|end|>")
			if n := count(exs[0].IDs, end); n != 2 {
				t.Errorf("%d end tokens in %v, want those of two messages", n, exs[0].IDs)
			}
		})
	}
}

func TestATemplateThatWritesNothing(t *testing.T) {
	for _, mode := range []string{"all_assistant_messages", "last_assistant_message", "all_messages", "all_tokens"} {
		tpl := template(t, recipe.Chat{Template: "{% if false %}{{ add_generation_prompt }}{% endif %}", TrainOn: mode})
		if _, err := tpl.Encode(Conversation{Messages: []Message{{Role: "user"}}}); err == nil || !strings.Contains(err.Error(), "writes nothing") {
			t.Errorf("%s: %v", mode, err)
		}
	}
}
