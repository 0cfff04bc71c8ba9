package hf

import (
	"fmt"
	"strings"
	"testing"

	"trainer/internal/chat/jinja"
)

func objects(t testing.TB, source string) []*jinja.Dict {
	t.Helper()
	list, err := Objects([]byte(source))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestObjects(t *testing.T) {
	if list, err := Objects([]byte("null")); list != nil || err != nil {
		t.Errorf("null: %v, %v", list, err)
	}
	if list, err := Objects([]byte("[]")); list == nil || err != nil {
		t.Errorf("[]: %v, %v; templates tell it from None", list, err)
	}
	for source, want := range map[string]string{`{}`: "not a list", `[{}, 1]`: "1: not an object", `[`: "EOF"} {
		if _, err := Objects([]byte(source)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", source, err, want)
		}
	}
}

func TestMessagesAreLeftAlone(t *testing.T) {
	ms := objects(t, `[{"role": "assistant", "content": null, "reasoning": "so"}]`)
	tpl, err := Parse("{{ messages }}")
	if err != nil {
		t.Fatal(err)
	}
	out, err := tpl.Render(Conversation{Messages: ms}, Options{})
	if want := "[{'thinking': 'so', 'role': 'assistant', 'reasoning': 'so', 'reasoning_content': 'so'}]"; err != nil || out.Text != want {
		t.Errorf("got %v, %v, want %s", out, err, want)
	}
	if _, ok := ms[0].Get("content"); !ok || ms[0].Len() != 3 {
		t.Error("the message given has changed")
	}
}

func TestRefusals(t *testing.T) {
	ms := objects(t, `[{"role": "user", "content": "hi"}]`)
	for _, c := range []struct {
		name string
		conv Conversation
		o    Options
		want string
	}{
		{"no message", Conversation{}, Options{}, "the conversation is empty; a template needs a message"},
		{"a reserved argument", Conversation{Messages: ms}, Options{Args: jinja.NewDict("messages", int64(1))}, "messages: the render sets this variable itself; take another name"},
		{"an argument that is no name", Conversation{Messages: ms}, Options{Args: jinja.NewDict(int64(1), int64(1))}, "1: the name of a variable is text"},
		{"a reserved token", Conversation{Messages: ms}, Options{SpecialTokens: map[string]string{"tools": "x"}}, "tools: the render sets this variable itself; take another name"},
		{"to continue and to start", Conversation{Messages: ms}, Options{Continue: "content", AddGenerationPrompt: true}, "the last message cannot be continued and a new one be started; choose one"},
		{"to continue nothing", Conversation{Messages: ms}, Options{Continue: "reasoning"}, `the last message has no "reasoning" to continue`},
		{"what the template raises", Conversation{Messages: ms}, Options{Args: jinja.NewDict("bad", true)}, "1:16: no (TemplateError)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tpl, err := Parse("{% if bad %}{{ raise_exception('no') }}{% endif %}{{ messages[0].content }}")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tpl.Render(c.conv, c.o); fmt.Sprint(err) != c.want {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

func TestSpansEndWhereAContinuedTextDoes(t *testing.T) {
	tpl, err := Parse("{% for m in messages %}<{{ m.role }}>{% generation %}{{ m.content }}</end>{% endgeneration %}{% endfor %}")
	if err != nil {
		t.Fatal(err)
	}
	ms := objects(t, `[{"role": "user", "content": "a"}, {"role": "assistant", "content": "The"}]`)
	out, err := tpl.Render(Conversation{Messages: ms}, Options{Continue: "content"})
	if err != nil {
		t.Fatal(err)
	}
	if want := "<user>a</end><assistant>The"; out.Text != want {
		t.Errorf("got %s, want %s", out.Text, want)
	}
	var got []string
	for _, s := range out.Generation {
		got = append(got, out.Text[s.Start:s.End])
	}
	for _, s := range out.Messages {
		got = append(got, fmt.Sprintf("%d %s", s.Message, out.Text[s.Start:s.End]))
	}
	if want := "[a</end> The 0 <user>a</end> 1 <assistant>The]"; fmt.Sprint(got) != want {
		t.Errorf("spans %v, want %s", got, want)
	}
}

func TestReadConfig(t *testing.T) {
	for _, c := range []struct{ name, source, templates, tokens string }{
		{"a template", `{"chat_template": "a", "bos_token": "<s>", "add_bos_token": true, "pad_token": null}`, "map[default:a]", "map[bos_token:<s>]"},
		{"several", `{"chat_template": [{"name": "default", "template": "a"}, {"name": "tool_use", "template": "b"}]}`, "map[default:a tool_use:b]", "map[]"},
		{"none", `{"eos_token": {"__type": "AddedToken", "content": "</s>", "lstrip": false}}`, "map[]", "map[eos_token:</s>]"},
		{"a null", `{"chat_template": null, "image_token": "<i>", "extra_special_tokens": {"x": "<x>"}}`, "map[]", "map[image_token:<i> x:<x>]"},
		{"a list of tokens", `{"extra_special_tokens": ["<x>"]}`, "map[]", "map[]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := ReadConfig([]byte(c.source))
			if err != nil {
				t.Fatal(err)
			}
			if fmt.Sprint(got.Templates) != c.templates || fmt.Sprint(got.SpecialTokens) != c.tokens {
				t.Errorf("got %v and %v, want %s and %s", got.Templates, got.SpecialTokens, c.templates, c.tokens)
			}
		})
	}
	for source, want := range map[string]string{
		`{"chat_template": 1}`:               "chat_template: neither a template nor a list of named ones",
		`{"chat_template": [{"name": "a"}]}`: "chat_template.0: needs name and template",
		`{"extra_special_tokens": {"x": 1}}`: "extra_special_tokens.x: not a token",
		`[`:                                  "unexpected end of JSON input",
	} {
		if _, err := ReadConfig([]byte(source)); fmt.Sprint(err) != want {
			t.Errorf("%s: %v, want %s", source, err, want)
		}
	}
}

func TestWhichTemplate(t *testing.T) {
	one := &Config{Templates: map[string]string{"default": "D"}}
	two := &Config{Templates: map[string]string{"default": "D", "tool_use": "T", "rag": "R"}}
	odd := &Config{Templates: map[string]string{"rag": "R"}}
	for _, c := range []struct {
		name   string
		config *Config
		pick   string
		tools  bool
		want   string
	}{
		{"the only one", one, "", false, "D"},
		{"the only one, with tools", one, "", true, "D"},
		{"the default", two, "", false, "D"},
		{"the one for tools", two, "", true, "T"},
		{"by name, with tools", two, "rag", true, "R"},
		{"no such name", two, "tooluse", false, `the model has no chat template "tooluse"; it has default, rag, tool_use; did you mean "tool_use"?`},
		{"no default", odd, "", true, `the model has no chat template "default"; it has rag`},
		{"none at all", &Config{}, "", false, "the model has no chat template"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := c.config.Template(c.pick, c.tools)
			if err != nil {
				got = err.Error()
			}
			if got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func FuzzReadConfig(f *testing.F) {
	f.Add(`{"chat_template": [{"name": "default", "template": "a"}], "bos_token": {"content": "x"}}`)
	f.Fuzz(func(t *testing.T, source string) {
		if c, err := ReadConfig([]byte(source)); err == nil {
			c.Template("", true)
		}
	})
}

// One iteration renders every conversation of the corpus that transformers renders, once.
func BenchmarkRender(b *testing.B) {
	c := readCorpus(b)
	type job struct {
		t *Template
		c Conversation
		o Options
	}
	var jobs []job
	for i, source := range c.templates {
		tpl, err := Parse(source.Source)
		if err != nil {
			continue
		}
		for j := range c.cases {
			if c.answers[i*len(c.cases)+j].Text != nil {
				conv, o := c.cases[j].given(b)
				jobs = append(jobs, job{tpl, conv, o})
			}
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		for _, j := range jobs {
			if _, err := j.t.Render(j.c, j.o); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*len(jobs)), "µs/render")
}
