package hf

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"trainer/internal/chat/jinja"
)

var corpusDir = flag.String("corpus", "testdata/corpus", "templates, conversations and transformers' answers, as .ci/templates/render.py writes them")

// tokens are those of render.py.
var tokens = map[string]string{"bos_token": "<|begin_of_text|>", "eos_token": "<|eot_id|>", "pad_token": "<pad>", "unk_token": "<unk>"}

type corpus struct {
	templates []struct{ Name, Source string }
	cases     []testCase
	answers   []answer
}

type testCase struct {
	Name                       string
	Messages, Tools, Documents json.RawMessage
	AddGenerationPrompt        bool `json:"add_generation_prompt"`
	Continue                   string
	Kwargs                     json.RawMessage
}

// answer is what transformers made of a case; Generation is in characters.
type answer struct {
	Template, Case int
	Text           *string
	Err            string
	Generation     [][2]int
}

func readCorpus(t testing.TB) *corpus {
	c := &corpus{}
	readLines(t, "templates.jsonl", &c.templates)
	readLines(t, "cases.jsonl", &c.cases)
	readLines(t, "answers.jsonl", &c.answers)
	if len(c.answers) == 0 || len(c.answers) != len(c.templates)*len(c.cases) {
		t.Fatalf("%d answers of %d templates on %d cases", len(c.answers), len(c.templates), len(c.cases))
	}
	return c
}

func readLines[T any](t testing.TB, name string, to *[]T) {
	t.Helper()
	f, err := os.Open(filepath.Join(*corpusDir, name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := bufio.NewScanner(f)
	s.Buffer(nil, 1<<26)
	for s.Scan() {
		var v T
		if err := json.Unmarshal(s.Bytes(), &v); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		*to = append(*to, v)
	}
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
}

// given is a case as Render takes it.
func (c *testCase) given(t testing.TB) (Conversation, Options) {
	t.Helper()
	must := func(list []*jinja.Dict, err error) []*jinja.Dict {
		if err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
		return list
	}
	args, err := jinja.Decode(c.Kwargs)
	if err != nil {
		t.Fatal(err)
	}
	conv := Conversation{Messages: must(Objects(c.Messages)), Tools: must(Objects(c.Tools)), Documents: must(Objects(c.Documents))}
	return conv, Options{AddGenerationPrompt: c.AddGenerationPrompt, Continue: c.Continue, SpecialTokens: tokens, Args: args.(*jinja.Dict), Now: noon}
}

func noon() time.Time { return time.Date(2026, time.July, 4, 12, 0, 0, 0, time.UTC) }

// Where transformers renders, so do we, to the same bytes and the same generation blocks; where it refuses, so do we.
func TestParity(t *testing.T) {
	c := readCorpus(t)
	rendered, refused, blocks, found, answers := 0, 0, 0, 0, 0
	var parsed *Template
	var parseErr error
	of := -1
	for _, a := range c.answers {
		if a.Template != of {
			of = a.Template
			parsed, parseErr = Parse(c.templates[of].Source)
		}
		name := c.templates[a.Template].Name + ", " + c.cases[a.Case].Name
		conv, o := c.cases[a.Case].given(t)
		out, err := &Rendered{}, parseErr
		if err == nil {
			out, err = parsed.Render(conv, o)
		}
		switch {
		case a.Text == nil && err == nil:
			t.Errorf("%s: rendered, transformers refuses: %s", name, a.Err)
		case a.Text == nil:
			refused++
		case err != nil:
			t.Errorf("%s: %v", name, err)
		case out.Text != *a.Text:
			t.Errorf("%s: %s", name, difference(out.Text, *a.Text))
		default:
			rendered++
			blocks += len(a.Generation)
			if a.Generation != nil {
				checkGeneration(t, name, out, a.Generation)
			}
			checkMessages(t, name, out, len(conv.Messages))
			f, n := foundInSpans(out, conv)
			found, answers = found+f, answers+n
		}
	}
	t.Logf("%d templates, %d conversations: %d texts and %d generation blocks are transformers', %d refused as there; %d of %d answers lie in the span of their message",
		len(c.templates), len(c.cases), rendered, blocks, refused, found, answers)
	if found*10 < answers*9 {
		t.Errorf("%d of %d answers lie in the span of their message", found, answers)
	}
}

func checkGeneration(t *testing.T, name string, out *Rendered, want [][2]int) {
	t.Helper()
	if len(out.Generation) != len(want) {
		t.Errorf("%s: generation blocks %v, want %v", name, out.Generation, want)
		return
	}
	for i, s := range out.Generation {
		start := utf8.RuneCountInString(out.Text[:s.Start])
		if got := [2]int{start, start + utf8.RuneCountInString(out.Text[s.Start:s.End])}; got != want[i] {
			t.Errorf("%s: generation block %d is %v, want %v", name, i, got, want[i])
		}
	}
}

// checkMessages holds the spans of messages to what their comment promises.
func checkMessages(t *testing.T, name string, out *Rendered, messages int) {
	t.Helper()
	end := 0
	for _, s := range out.Messages {
		if s.Start < end || s.End <= s.Start || s.End > len(out.Text) || s.Message < 0 || s.Message >= messages {
			t.Errorf("%s: message spans %v of %d bytes", name, out.Messages, len(out.Text))
			return
		}
		end = s.End
	}
}

// foundInSpans counts the answers of a conversation that the text has, and those of them in a span of their own message.
func foundInSpans(out *Rendered, c Conversation) (found, answers int) {
	for i, m := range c.Messages {
		role, _ := m.Get("role")
		content, _ := m.Get("content")
		s, ok := content.(string)
		if s = strip(s); !ok || role != "assistant" || len(s) < 4 || !strings.Contains(out.Text, s) {
			continue
		}
		answers++
		for _, span := range out.Messages {
			if span.Message == i && strings.Contains(out.Text[span.Start:span.End], s) {
				found++
				break
			}
		}
	}
	return found, answers
}

func difference(got, want string) string {
	i := 0
	for i < len(got) && i < len(want) && got[i] == want[i] {
		i++
	}
	around := func(s string) string { return s[max(0, min(i-40, len(s))):min(i+60, len(s))] }
	g, _ := json.Marshal(around(got))
	w, _ := json.Marshal(around(want))
	return fmt.Sprintf("at byte %d\n got  %s\n want %s", i, g, w)
}
