package dataset

import (
	"slices"
	"strings"
	"testing"

	"trainer/recipe"
)

// pairs is a fixture of rows for a preference loss.
func pairs(t testing.TB, loss string, rows ...string) *fixture {
	f := newFixture(t, map[string]string{"rows.jsonl": strings.Join(rows, "\n")}, recipe.Source{Path: "rows.jsonl"})
	f.r.Loss.Type, f.r.Dataset.OnIdenticalPair = loss, "drop"
	return f
}

// shown is a row as its sides read, with what trains in brackets.
func shown(t testing.TB, f *fixture, s *Set, i int) (out []string) {
	row, err := s.Row(i)
	if err != nil {
		t.Fatal(err)
	}
	tok := f.tpl.Tokenizer()
	name := func(id int32) string {
		for _, role := range []string{"begin", "end", "user", "assistant", "system", "tool"} {
			if c, _ := tok.Control("<|" + role + "|>"); c == id {
				return "<" + role + ">"
			}
		}
		return string(rune(id))
	}
	for _, d := range row.Data {
		text, in := name(d.Input[0]), false
		for n, id := range d.Targets {
			if on := d.Weights[n] > 0; on != in {
				text += map[bool]string{true: "[", false: "]"}[on]
				in = on
			}
			text += name(id)
		}
		if in {
			text += "]"
		}
		out = append(out, text)
	}
	return out
}

func TestPairsAreReadInEveryShape(t *testing.T) {
	want := []string{"<begin><user>q<end><assistant>[good<end>]", "<begin><user>q<end><assistant>[bad<end>]"}
	for name, row := range map[string]string{
		"texts":                               `{"prompt": "q", "chosen": "good", "rejected": "bad"}`,
		"a prompt of messages, sides as text": `{"prompt": [{"role": "user", "content": "q"}], "chosen": "good", "rejected": "bad"}`,
		"messages":                            `{"prompt": [{"role": "user", "content": "q"}], "chosen": [{"role": "assistant", "content": "good"}], "rejected": [{"role": "assistant", "content": "bad"}]}`,
		"sides of one message each":           `{"prompt": "q", "chosen": {"role": "assistant", "content": "good"}, "rejected": {"role": "assistant", "content": "bad"}}`,
		"whole conversations":                 `{"chosen": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "good"}], "rejected": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "bad"}]}`,
		"whole conversations beside their prompt": `{"prompt": "q", "chosen": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "good"}],
			"rejected": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "bad"}]}`,
		"instruction and input": `{"instruction": "q", "input": "", "chosen": "good", "rejected": "bad"}`,
		"from and value":        `{"conversations": [{"from": "human", "value": "q"}], "chosen": {"from": "gpt", "value": "good"}, "rejected": {"from": "gpt", "value": "bad"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			f := pairs(t, "dpo", strings.ReplaceAll(row, "\n", " "))
			data := f.mustOpen(t)
			if got := shown(t, f, data.Train, 0); !slices.Equal(got, want) {
				t.Errorf("got  %q\nwant %q", got, want)
			}
			row, _ := data.Train.Row(0)
			if !row.Data[0].Desirable || row.Data[1].Desirable || row.Data[0].Group != row.Data[1].Group {
				t.Errorf("the sides are marked %+v", row.Data)
			}
			if tokens, trained := data.Train.Count(0); tokens != 10+9 || trained != 5+4 || data.Train.Longest(0) != 10 {
				t.Errorf("%d tokens, %d trained, the longest side %d", tokens, trained, data.Train.Longest(0))
			}
		})
	}
}

// Columns of other names are mapped in every shape.
func TestFieldsOfPairs(t *testing.T) {
	want := []string{"<begin><user>q<end><assistant>[good<end>]", "<begin><user>q<end><assistant>[bad<end>]"}
	column := func(name string) recipe.Field { return recipe.Field{Columns: []string{name}} }
	for row, fields := range map[string]map[string]recipe.Field{
		`{"question": "q", "better": "good", "worse": "bad"}`: {"prompt": column("question"), "chosen": column("better"), "rejected": column("worse")},
		`{"conversations": [{"from": "human", "value": "q"}], "better": {"from": "gpt", "value": "good"}, "worse": {"from": "gpt", "value": "bad"}}`: {"chosen": column("better"), "rejected": column("worse")},
		`{"q": "q", "answers": {"best": "good", "others": ["bad"]}}`:                                                                                 {"prompt": column("q"), "chosen": column("answers.best"), "rejected": column("answers.others.0")},
		`{"q": "q", "a": "#### good", "b": "#### bad"}`: {"prompt": column("q"),
			"chosen": {Columns: []string{"a"}, Regex: "#### (.+)"}, "rejected": {Columns: []string{"b"}, Regex: "#### (.+)"}},
	} {
		for _, format := range []string{"auto", "preference"} {
			f := pairs(t, "dpo", row)
			f.r.Dataset.Train[0].Fields, f.r.Dataset.Train[0].Format = fields, format
			if got := shown(t, f, f.mustOpen(t).Train, 0); !slices.Equal(got, want) {
				t.Errorf("%s as %s: got %q", row, format, got)
			}
		}
	}
}

// A turn that both sides have is of the prompt, also where it is an assistant's; behind where they part all turns are of the
// sides.
func TestWhatBothSidesBeginWithIsThePrompt(t *testing.T) {
	f := pairs(t, "dpo", `{"chosen": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}, {"role": "user", "content": "r"}, {"role": "assistant", "content": "x"}],`+
		` "rejected": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}, {"role": "user", "content": "r"}, {"role": "assistant", "content": "y"}, {"role": "tool", "content": "t"}, {"role": "assistant", "content": "z"}]}`)
	const prompt = "<begin><user>q<end><assistant>a<end><user>r<end><assistant>"
	want := []string{prompt + "[x<end>]", prompt + "[y<end>]<tool>t<end><assistant>[z<end>]"}
	if got := shown(t, f, f.mustOpen(t).Train, 0); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// A system message may stand in a column of its own, or before the prompt in both sides; never is it dropped.
func TestSystemMessagesOfComparedRows(t *testing.T) {
	pair := []string{"<begin><system>s<end><user>q<end><assistant>[good<end>]", "<begin><system>s<end><user>q<end><assistant>[bad<end>]"}
	for name, row := range map[string]string{
		"beside texts":               `{"system": "s", "prompt": "q", "chosen": "good", "rejected": "bad"}`,
		"beside from and value":      `{"conversations": [{"from": "human", "value": "q"}], "chosen": {"from": "gpt", "value": "good"}, "rejected": {"from": "gpt", "value": "bad"}, "system": "s"}`,
		"beside whole":               `{"chosen": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "good"}], "rejected": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "bad"}], "system": "s"}`,
		"beside itself":              `{"prompt": [{"role": "system", "content": "s"}, {"role": "user", "content": "q"}], "chosen": "good", "rejected": "bad", "system": "s"}`,
		"in the sides alone":         `{"prompt": "q", "chosen": [{"role": "system", "content": "s"}, {"role": "user", "content": "q"}, {"role": "assistant", "content": "good"}], "rejected": [{"role": "system", "content": "s"}, {"role": "user", "content": "q"}, {"role": "assistant", "content": "bad"}]}`,
		"instruction, with no input": `{"instruction": "q", "chosen": "good", "rejected": "bad", "system": "s"}`,
	} {
		f := pairs(t, "dpo", row)
		if got := shown(t, f, f.mustOpen(t).Train, 0); !slices.Equal(got, pair) {
			t.Errorf("%s: got %q", name, got)
		}
	}
	for name, row := range map[string]string{
		"beside messages":       `{"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}], "label": true, "system": "s"}`,
		"beside conversations":  `{"conversations": [{"from": "human", "value": "q"}, {"from": "gpt", "value": "a"}], "label": true, "system": "s"}`,
		"beside a prompt":       `{"prompt": "q", "completion": "a", "label": true, "system": "s"}`,
		"beside an instruction": `{"instruction": "q", "output": "a", "label": true, "system": "s"}`,
	} {
		f := pairs(t, "kto", row)
		if got := shown(t, f, f.mustOpen(t).Train, 0); !slices.Equal(got, []string{"<begin><system>s<end><user>q<end><assistant>[a<end>]"}) {
			t.Errorf("labelled, %s: got %q", name, got)
		}
	}
	for row, want := range map[string]string{
		`{"prompt": [{"role": "system", "content": "r"}, {"role": "user", "content": "q"}], "chosen": "a", "rejected": "b", "system": "s"}`: "rows.jsonl:1: system: stands beside another system message",
		`{"prompt": "q", "chosen": "a", "rejected": "b", "system": 1}`:                                                                      "rows.jsonl:1: system: a number where text is due",
		`{"instruction": "q", "chosen": "a", "rejected": "b", "history": [["x", "y"]]}`:                                                     "rows.jsonl:1: history: not read in preference rows; write the earlier turns as messages, in prompt",
		`{"prompt": "q", "chosen": "", "rejected": "b", "system": "s"}`:                                                                     "rows.jsonl:1: chosen: empty; a pair needs both completions",
		`{"prompt": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "", "tool_calls": [{"type": "function", "function": {"name": "f", "arguments": {}}}]}, {"role": "tool", "content": "4"}], "chosen": "a", "rejected": "b", "system": "s"}`: "rows.jsonl:1: prompt.1.tool_calls: the template cannot render it",
	} {
		if _, err := pairs(t, "dpo", row).open(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", row, err, want)
		}
	}
	f := pairs(t, "dpo", `{"prompt": "q", "chosen": "a", "rejected": "b", "system": "s"}`)
	f.tpl = byteTemplate(t, recipe.Chat{Template: "none"})
	if _, err := f.open(); err == nil || !strings.Contains(err.Error(), "rows.jsonl:1: system: chat.template: none writes no roles") {
		t.Errorf("without roles: %v", err)
	}
}

func TestWholeTextsAreAPairWithoutRoles(t *testing.T) {
	f := pairs(t, "dpo", `{"chosen": "Human: hi Assistant: hello", "rejected": "Human: hi Assistant: hell"}`)
	f.tpl = byteTemplate(t, recipe.Chat{Template: "none"})
	want := []string{"<begin>Human: hi Assistant: [hello<end>]", "<begin>Human: hi Assistant: [hell<end>]"}
	if got := shown(t, f, f.mustOpen(t).Train, 0); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestLabelledRows(t *testing.T) {
	for name, row := range map[string]string{
		"a prompt and a completion": `{"prompt": "q", "completion": "a", "label": true}`,
		"messages":                  `{"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}], "label": true}`,
		"from and value":            `{"messages": [{"from": "human", "value": "q"}, {"from": "gpt", "value": "a"}], "label": true}`,
		"conversations":             `{"conversations": [{"from": "human", "value": "q"}, {"from": "gpt", "value": "a"}], "label": true}`,
		"an instruction":            `{"instruction": "q", "input": "", "output": "a", "label": true}`,
	} {
		t.Run(name, func(t *testing.T) {
			f := pairs(t, "kto", row, strings.Replace(row, "true", "false", 1))
			data := f.mustOpen(t)
			for i, good := range []bool{true, false} {
				if got := shown(t, f, data.Train, i); !slices.Equal(got, []string{"<begin><user>q<end><assistant>[a<end>]"}) {
					t.Errorf("row %d: got %q", i, got)
				}
				if row, _ := data.Train.Row(i); row.Data[0].Desirable != good {
					t.Errorf("row %d: desirable %v", i, row.Data[0].Desirable)
				}
			}
		})
	}
}

func TestPairsAtFault(t *testing.T) {
	for name, c := range map[string]struct{ loss, row, want string }{
		"an empty side":       {"dpo", `{"prompt": "q", "chosen": "a", "rejected": ""}`, `rejected: empty; a pair needs both completions`},
		"no messages":         {"dpo", `{"prompt": "q", "chosen": [], "rejected": [{"role": "assistant", "content": "a"}]}`, `chosen: empty; a pair needs both completions`},
		"a side that is null": {"dpo", `{"prompt": "q", "chosen": "a", "rejected": null}`, `rejected: null where text is due`},
		"no prompt":           {"dpo", `{"chosen": "a", "rejected": "b"}`, `prompt: missing, and the sides are plain text: give a prompt, or messages`},
		"two questions": {"dpo", `{"chosen": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}], "rejected": [{"role": "user", "content": "r"}, {"role": "assistant", "content": "b"}]}`,
			`chosen.0.role: the pair parts at a message of role "user"`},
		"an empty message":  {"dpo", `{"prompt": "q", "chosen": [{"role": "assistant", "content": ""}], "rejected": "b"}`, `chosen.0.content: empty`},
		"a speaker unknown": {"dpo", `{"conversations": [{"from": "me", "value": "q"}], "chosen": {"from": "gpt", "value": "a"}, "rejected": {"from": "gpt", "value": "b"}}`, `conversations.0.from: "me" is not a speaker`},
		"a number":          {"dpo", `{"prompt": "q", "chosen": 1, "rejected": "b"}`, `chosen: a number where text is due`},
		"no label":          {"kto", `{"prompt": "q", "completion": "a", "label": null}`, `label: null where a label is due`},
		"the user's turn":   {"kto", `{"messages": [{"role": "user", "content": "q"}], "label": true}`, `messages.0: a label is of the last message`},
		"pairs for kto":     {"kto", `{"prompt": "q", "chosen": "a", "rejected": "b"}`, `preference rows do not go with this loss; it trains on labelled`},
		"another's names":   {"dpo", `{"input": {"messages": []}, "preferred_output": [], "non_preferred_output": []}`, `such as fields: {prompt: input.messages, chosen: preferred_output, rejected: non_preferred_output}`},
		"rows for dpo":      {"dpo", `{"prompt": "q", "completion": "a"}`, `prompt_completion rows do not go with this loss; it trains on preference`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := pairs(t, c.loss, c.row).open()
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestIdenticalPairs(t *testing.T) {
	same, other := `{"prompt": "q", "chosen": "a", "rejected": "a"}`, `{"prompt": "q", "chosen": "a", "rejected": "b"}`
	f := pairs(t, "dpo", other, same)
	data := f.mustOpen(t)
	if data.Train.Len() != 1 || data.Same != 1 || len(data.Identical) != 1 || data.Identical[0].Pos.Line != 2 {
		t.Errorf("drop: %d rows, %d the same, listed %v", data.Train.Len(), data.Same, data.Identical)
	}
	f.r.Dataset.OnIdenticalPair = "keep"
	if data = f.mustOpen(t); data.Train.Len() != 2 || data.Same != 0 {
		t.Errorf("keep: %d rows, %d the same", data.Train.Len(), data.Same)
	}
	f.r.Dataset.OnIdenticalPair = "error"
	if _, err := f.open(); err == nil || !strings.Contains(err.Error(), "rows.jsonl:2: the chosen and the rejected side are the same") {
		t.Errorf("error: %v", err)
	}
	f = pairs(t, "dpo", same)
	if _, err := f.open(); err == nil || !strings.Contains(err.Error(), "none of its 1 rows is left: 0 are bad and skipped, 0 overlong and dropped, 1 pairs of two equal sides") {
		t.Errorf("nothing left: %v", err)
	}
}

// What is too long loses the start of its prompt on both sides, or goes as a whole pair.
func TestPairsAreCutAlike(t *testing.T) {
	row := `{"prompt": "abcdef", "chosen": "good", "rejected": "b"}`
	open := func(overlong string, most int) (*fixture, *Data, error) {
		f := pairs(t, "dpo", row, `{"prompt": "q", "chosen": "x", "rejected": "y"}`)
		f.r.Dataset.Overlong, f.r.Dataset.MaxLength = overlong, most
		data, err := f.open()
		return f, data, err
	}
	f, data, err := open("keep_end", 10)
	if err != nil {
		t.Fatal(err)
	}
	if want, got := []string{"def<end><assistant>[good<end>]", "def<end><assistant>[b<end>]"}, shown(t, f, data.Train, 0); data.Cut != 1 || !slices.Equal(got, want) {
		t.Errorf("keep_end, %d cut: got %q, want %q", data.Cut, got, want)
	}
	if _, data, err = open("drop", 10); err != nil || data.Dropped != 1 || data.Train.Len() != 1 {
		t.Errorf("drop: %+v, %v", data, err)
	}
	for _, c := range []struct {
		how, want string
		most      int
	}{
		{"keep_start", "keep_start would cut one side of the pair and not the other", 10},
		{"error", "15 tokens, and dataset.max_length is 10", 10},
		{"keep_end", "10 tokens too many, and the prompt has 10", 5},
	} {
		if _, _, err := open(c.how, c.most); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.how, err, c.want)
		}
	}
}

// A label is of a whole completion: it is never cut.
func TestLabelledCompletionsAreNotCut(t *testing.T) {
	open := func(overlong string, most int) (*fixture, *Data, error) {
		f := pairs(t, "kto", `{"prompt": "abcdef", "completion": "good", "label": true}`, `{"prompt": "q", "completion": "x", "label": false}`)
		f.r.Dataset.Overlong, f.r.Dataset.MaxLength = overlong, most
		data, err := f.open()
		return f, data, err
	}
	f, data, err := open("keep_end", 10)
	if err != nil {
		t.Fatal(err)
	}
	if got := shown(t, f, data.Train, 0); data.Cut != 1 || !slices.Equal(got, []string{"def<end><assistant>[good<end>]"}) {
		t.Errorf("keep_end, %d cut: got %q", data.Cut, got)
	}
	for how, want := range map[string]string{
		"keep_start": "keep_start would cut the completion, and the label is of all of it",
		"keep_end":   "10 tokens too many, and the prompt has 10: what is left would be a cut completion, and the label is of all of it; raise dataset.max_length",
	} {
		if _, _, err := open(how, 5); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", how, err, want)
		}
	}
}

// Columns that say the label under another name are mapped in every shape.
func TestFieldsOfLabelledRows(t *testing.T) {
	f := pairs(t, "kto", `{"conversations": [{"from": "human", "value": "q"}, {"from": "gpt", "value": "a"}], "kto_tag": false}`)
	f.r.Dataset.Train[0].Fields = map[string]recipe.Field{"label": {Columns: []string{"kto_tag"}}}
	if got := shown(t, f, f.mustOpen(t).Train, 0); !slices.Equal(got, []string{"<begin><user>q<end><assistant>[a<end>]"}) {
		t.Errorf("got %q", got)
	}
}
