package dataset

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"trainer/internal/chat"
	"trainer/internal/diag"
	"trainer/internal/hub"
	"trainer/internal/tokenizer"
	"trainer/loss"
	"trainer/recipe"
)

func ptr[T any](v T) *T { return &v }

func byteTemplate(t testing.TB, section recipe.Chat) *chat.Template {
	t.Helper()
	if section.Template == "" {
		section.Template = "auto"
	}
	if section.TrainOn == "" {
		section.TrainOn = "all_assistant_messages"
	}
	tpl, err := chat.New(section, tokenizer.Bytes(), chat.Source{})
	if err != nil {
		t.Fatal(err)
	}
	return tpl
}

// fixture is a dataset section over files in a folder of its own, with the recipe's defaults.
type fixture struct {
	r   *recipe.Recipe
	dir string
	tpl *chat.Template
	hub *hub.Hub
}

func newFixture(t testing.TB, files map[string]string, train ...recipe.Source) *fixture {
	t.Helper()
	f := &fixture{dir: t.TempDir(), tpl: byteTemplate(t, recipe.Chat{}), hub: &hub.Hub{Cache: t.TempDir()}}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(f.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f.r = &recipe.Recipe{Seed: 42, Loss: recipe.Loss{Type: "cross_entropy"},
		Dataset: recipe.Dataset{Shuffle: true, MaxLength: 4096, Overlong: "error", OnBadRow: "error"}}
	f.r.Dataset.Train = f.sources("train", train)
	return f
}

func (f *fixture) sources(key string, given []recipe.Source) []recipe.Source {
	for i := range given {
		s := &given[i]
		s.Dir, s.Key = f.dir, fmt.Sprintf("dataset.%s.%d", key, i)
		if s.Format == "" {
			s.Format = "auto"
		}
		if s.Weight == 0 {
			s.Weight = 1
		}
	}
	return given
}

func (f *fixture) open() (*Data, error) {
	return Open(context.Background(), f.r, f.tpl, f.hub)
}

func (f *fixture) mustOpen(t testing.TB) *Data {
	t.Helper()
	data, err := f.open()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// rows renders a set in file order, as text with control tokens by name.
func (f *fixture) rows(t testing.TB, s *Set) []string {
	t.Helper()
	out := make([]string, s.Len())
	for i := range out {
		row, err := s.Row(i)
		if err != nil {
			t.Fatal(err)
		}
		d := row.Data[0]
		ids := append([]int32{d.Input[0]}, d.Targets...)
		out[i] = tokenizer.Bytes().Decode(ids)
		if tokens, _ := s.Count(i); tokens != len(ids) || len(d.Input) != len(d.Targets) || len(d.Weights) != len(d.Targets) {
			t.Errorf("row %d: %d tokens counted, %d inputs, %d targets, %d weights", i, tokens, len(d.Input), len(d.Targets), len(d.Weights))
		}
	}
	return out
}

// chatRow is how a question and its answer are rendered.
func chatRow(q, a string) string {
	return "<|begin|><|user|>" + q + "<|end|><|assistant|>" + a + "<|end|>"
}

const pairRow = `{"prompt": "q", "completion": "a"}` + "\n"

func TestFormats(t *testing.T) {
	field := func(cols ...string) recipe.Field { return recipe.Field{Columns: cols} }
	for _, c := range []struct {
		name, file string
		source     recipe.Source
		chat       recipe.Chat
		format     string
		want       []string
	}{
		{"messages", `{"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]}`, recipe.Source{}, recipe.Chat{},
			"messages", []string{chatRow("q", "a")}},
		{"content as parts of text is the same", `{"messages": [{"content": [{"type": "text", "text": "q"}], "role": "user"}, {"role": "assistant", "content": [{"type": "text", "text": "a"}, {"text": "b"}, "c"]}]}`,
			recipe.Source{}, recipe.Chat{}, "messages", []string{chatRow("q", "abc")}},
		{"an empty list of parts is empty text", `{"messages": [{"role": "system", "content": []}, {"role": "assistant", "content": "a"}]}`, recipe.Source{}, recipe.Chat{},
			"messages", []string{"<|begin|><|system|><|end|><|assistant|>a<|end|>"}},
		{"null tool calls are none", `{"messages": [{"role": "assistant", "content": "a", "tool_calls": null, "name": "", "weight": null, "train": null}]}`, recipe.Source{}, recipe.Chat{},
			"messages", []string{"<|begin|><|assistant|>a<|end|>"}},
		{"prompt and completion", pairRow, recipe.Source{}, recipe.Chat{}, "prompt_completion", []string{chatRow("q", "a")}},
		{"prompt and completion without roles", pairRow, recipe.Source{}, recipe.Chat{Template: "none"}, "prompt_completion", []string{"<|begin|>qa<|end|>"}},
		{"prompt and completion as messages", `{"prompt": [{"role": "system", "content": "s"}, {"role": "user", "content": "q"}], "completion": [{"role": "assistant", "content": "a"}]}`,
			recipe.Source{}, recipe.Chat{}, "prompt_completion", []string{"<|begin|><|system|>s<|end|>" + strings.TrimPrefix(chatRow("q", "a"), "<|begin|>")}},
		{"a prompt as messages, its completion as text", `{"prompt": [{"role": "user", "content": "q"}], "completion": "a"}`,
			recipe.Source{}, recipe.Chat{}, "prompt_completion", []string{chatRow("q", "a")}},
		{"instruction, input and output", `{"instruction": "i", "input": "x", "output": "o"}` + "\n" + `{"instruction": "i", "input": "", "output": "o"}` + "\n" + `{"instruction": "i", "output": "o"}`,
			recipe.Source{}, recipe.Chat{}, "prompt_completion", []string{chatRow("i\n\nx", "o"), chatRow("i", "o"), chatRow("i", "o")}},
		{"text", `{"text": "t", "id": 7}`, recipe.Source{}, recipe.Chat{}, "text", []string{"<|begin|>t<|end|>"}},
		{"tokens", `{"tokens": [256, 65, 257]}`, recipe.Source{}, recipe.Chat{}, "tokens", []string{"<|begin|>A<|end|>"}},
		{"a format by name", `{"text": "t", "prompt": "q", "completion": "a"}`, recipe.Source{Format: "text"}, recipe.Chat{}, "text", []string{"<|begin|>t<|end|>"}},
		{"columns of other names", `{"question": "q", "answer": "so\n#### 72"}`, recipe.Source{Fields: map[string]recipe.Field{
			"prompt": field("question"), "completion": {Columns: []string{"answer"}, Regex: `#### (\S+)`}}}, recipe.Chat{}, "prompt_completion", []string{chatRow("q", "72")}},
		{"a regex without a group keeps the match", `{"text": "so 72."}`, recipe.Source{Fields: map[string]recipe.Field{
			"text": {Columns: []string{"text"}, Regex: `\d+`}}}, recipe.Chat{}, "text", []string{"<|begin|>72<|end|>"}},
		{"a path into lists and objects", `{"a": {"b.c": [{"d": "x"}, {"d": "t"}]}}`, recipe.Source{Fields: map[string]recipe.Field{"text": field("a.b.c.1.d")}}, recipe.Chat{},
			"text", nil},
		{"a path whose key has a dot", `{"a.b": "t", "a": {"b": "no"}}`, recipe.Source{Fields: map[string]recipe.Field{"text": field("a.b")}}, recipe.Chat{},
			"text", []string{"<|begin|>t<|end|>"}},
		{"a path through a list", `{"a": {"b": ["x", {"c": "t"}]}}`, recipe.Source{Fields: map[string]recipe.Field{"text": field("a.b.1.c")}}, recipe.Chat{},
			"text", []string{"<|begin|>t<|end|>"}},
		{"a list of messages under another name", `{"conversations": [{"role": "assistant", "content": "a"}]}`, recipe.Source{Fields: map[string]recipe.Field{"messages": field("conversations")}},
			recipe.Chat{}, "messages", []string{"<|begin|><|assistant|>a<|end|>"}},
		{"escapes mean what they say", `{"text": "\u0041\u00e9\ud83d\ude00\n\/\"\\"}`, recipe.Source{}, recipe.Chat{}, "text", []string{"<|begin|>Aé😀\n/\"\\<|end|>"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.source.Path = "rows.jsonl"
			f := newFixture(t, map[string]string{"rows.jsonl": c.file}, c.source)
			f.tpl = byteTemplate(t, c.chat)
			data, err := f.open()
			if c.want == nil {
				if err == nil {
					t.Error("no error")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := f.rows(t, data.Train); fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if got := data.Train.Sources()[0]; got.Format != c.format || got.Rows != len(c.want) || got.Name != "rows.jsonl" || got.Files != 1 {
				t.Errorf("source %+v, want %d rows of %s", got, len(c.want), c.format)
			}
		})
	}
}

func TestFilesThatSayTheSame(t *testing.T) {
	row := func(i int) string { return fmt.Sprintf(`{"prompt": "q%d", "completion": "a"}`, i) }
	want := fmt.Sprint([]string{chatRow("q1", "a"), chatRow("q2", "a"), chatRow("q3", "a")})
	for name, c := range map[string]struct {
		file  string
		lines string
	}{
		"lines":                            {row(1) + "\n" + row(2) + "\n" + row(3) + "\n", "[1 2 3]"},
		"lines without a last line end":    {row(1) + "\n" + row(2) + "\n" + row(3), "[1 2 3]"},
		"Windows line ends":                {row(1) + "\r\n" + row(2) + "\r\n" + row(3) + "\r\n", "[1 2 3]"},
		"a byte order mark":                {"\ufeff" + row(1) + "\n" + row(2) + "\n" + row(3), "[1 2 3]"},
		"blank lines":                      {"\n \t\n" + row(1) + "\n\n" + row(2) + "\n\r\n" + row(3) + "\n\n", "[3 5 7]"},
		"space around":                     {"  " + row(1) + "  \n\t" + row(2) + "\n" + row(3), "[1 2 3]"},
		"a list in one line":               {"[" + row(1) + "," + row(2) + "," + row(3) + "]", "[1 1 1]"},
		"a list, a row a line":             {"[\n" + row(1) + ",\n" + row(2) + ",\n" + row(3) + "\n]\n", "[2 3 4]"},
		"a list with the comma in front":   {"[\n" + row(1) + "\n," + row(2) + "\n," + row(3) + "]", "[2 3 4]"},
		"a list behind a byte order mark":  {"\ufeff\n[" + row(1) + ",\r\n" + row(2) + "," + row(3) + "]\r\n", "[2 3 3]"},
		"a list whose rows go over lines":  {"[\n{\n\"prompt\": \"q1\",\n\"completion\": \"a\"\n},\n" + row(2) + ",\n" + row(3) + "]", "[2 6 7]"},
		"brackets and quotes inside text":  {"[" + strings.Replace(row(1), "{", `{"x": "]}\",[{\\", `, 1) + ",\n" + row(2) + "," + row(3) + "]", "[1 2 2]"},
		"columns that nobody asked for":    {strings.Replace(row(1), "{", `{"meta": {"a": [1, null]}, `, 1) + "\n" + row(2) + "\n" + row(3), "[1 2 3]"},
		"a byte order mark inside of text": {strings.Replace(row(1), "{", "{\"x\": \"\ufeff\", ", 1) + "\n" + row(2) + "\n" + row(3), "[1 2 3]"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, map[string]string{"rows.json": c.file}, recipe.Source{Path: "rows.json"})
			data := f.mustOpen(t)
			if got := fmt.Sprint(f.rows(t, data.Train)); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
			var lines []int
			for i := range data.Train.Len() {
				row, err := data.Train.Row(i)
				if err != nil {
					t.Fatal(err)
				}
				lines = append(lines, row.At.Line)
			}
			if got := fmt.Sprint(lines); got != c.lines {
				t.Errorf("rows begin in lines %s, want %s", got, c.lines)
			}
		})
	}
}

func TestBadRows(t *testing.T) {
	for _, c := range []struct {
		name, row, want string
	}{
		{"no JSON", `hello`, `rows.jsonl:2: not JSON: byte 1: a value is due, not 'h'`},
		{"single quotes", `{'prompt': "q"}`, `rows.jsonl:2: not JSON: byte 2: a key in double quotes is due, not '\''`},
		{"a comma too many", `{"prompt": "q", "completion": "a",}`, `rows.jsonl:2: not JSON: byte 35: a key in double quotes is due, not '}'`},
		{"two rows in a line", `{"prompt": "q", "completion": "a"}{}`, `rows.jsonl:2: not JSON: byte 35: something follows the row: '{'`},
		{"a row that is cut off", `{"prompt": "q", "comp`, `rows.jsonl:2: not JSON: byte 22: text without its closing quote`},
		{"bytes that are no UTF-8", "{\"prompt\": \"q\xff\", \"completion\": \"a\"}", `rows.jsonl:2: not JSON: byte 14: the byte 0xff, which is not UTF-8`},
		{"half a surrogate pair", `{"prompt": "\ud83d", "completion": "a"}`, `rows.jsonl:2: not JSON: byte 13: \ud83d is half of a pair that stands for one character`},
		{"a key twice", `{"prompt": "q", "completion": "a", "pr\u006fmpt": "z"}`, `rows.jsonl:2: not JSON: byte 36: the key "prompt" stands here twice`},
		{"a byte order mark in the middle", "\ufeff" + strings.TrimSpace(pairRow), `rows.jsonl:2: not JSON: byte 1: a value is due, not a byte order mark`},
		{"NaN", `{"prompt": NaN}`, `rows.jsonl:2: not JSON: byte 12: a value is due, not 'N'; JSON has neither NaN nor Infinity: null is what it has for no number`},
		{"a list in a line", `[1]`, `rows.jsonl:2: a list where a row is due, as {"…": …}`},
		{"a number where text is due", `{"prompt": 7, "completion": "a"}`, `rows.jsonl:2: prompt: a number where text is due`},
		{"null where text is due", `{"prompt": "q", "completion": null}`, `rows.jsonl:2: completion: null where text is due`},
		{"an object where text is due", `{"prompt": {}, "completion": "a"}`, `rows.jsonl:2: prompt: an object where text is due`},
		{"a column misspelt", `{"prompt": "q", "completoin": "a"}`,
			`rows.jsonl:2: completion: missing; did you mean "completoin"?; the row has prompt, completoin`},
		{"another shape", `{"messages": []}`, `rows.jsonl:2: prompt: missing; the row has messages (by its first row, rows.jsonl:1, the source is prompt_completion)`},
		{"an empty row", `{}`, `rows.jsonl:2: prompt: missing; the row is empty`},
		{"an empty answer", `{"prompt": "q", "completion": ""}`, `rows.jsonl:2: completion: empty; an assistant message that is trained needs text, or train: false`},
		{"messages: none", `{"prompt": [], "completion": []}`, `rows.jsonl:2: completion: empty; a completion needs a message`},
		{"messages: no list of objects", `{"prompt": ["q"], "completion": "a"}`, `rows.jsonl:2: prompt.0: text where a message is due, as {"role": …, "content": …}`},
		{"messages: no role", `{"prompt": [{"content": "q"}], "completion": "a"}`, `rows.jsonl:2: prompt.0.role: missing`},
		{"messages: no content", `{"prompt": [{"role": "user"}], "completion": "a"}`, `rows.jsonl:2: prompt.0.content: missing`},
		{"messages: null content", `{"prompt": [{"role": "user", "content": null}], "completion": "a"}`, `rows.jsonl:2: prompt.0.content: null where text is due`},
		{"messages: a role of another dialect", `{"prompt": [{"role": "human", "content": "q"}], "completion": "a"}`,
			`rows.jsonl:2: prompt.0.role: "human" is not a role (system, user, assistant, tool); here it is called "user"`},
		{"messages: the fault is placed in the completion", `{"prompt": "q", "completion": [{"role": "tool", "content": "r"}, {"role": "assistent", "content": "a"}]}`,
			`rows.jsonl:2: completion.1.role: "assistent" is not a role (system, user, assistant, tool); did you mean "assistant"?`},
		{"messages: a key of another dialect", `{"prompt": [{"from": "human", "value": "q"}], "completion": "a"}`,
			`rows.jsonl:2: prompt.0.from: not a key of a message; here it is called "role"`},
		{"messages: a key misspelt", `{"prompt": [{"role": "user", "content": "q", "wieght": 0}], "completion": "a"}`,
			`rows.jsonl:2: prompt.0.wieght: not a key of a message (role, content, train, weight); did you mean "weight"?`},
		{"messages: tool calls", `{"prompt": [{"role": "assistant", "content": "q", "tool_calls": [{"id": "1"}]}], "completion": "a"}`,
			`rows.jsonl:2: prompt.0.tool_calls: the template cannot render it, so training would drop it; write it into the content, or leave it out`},
		{"an image beside the text", `{"prompt": "<image>\nWhat is it?", "completion": "a cat", "image": "000.jpg"}`,
			`rows.jsonl:2: image: only text can be rendered, and the text of the row has <image> where this belongs; leave the row out, or take <image> out of its text`},
		{"videos beside the text", `{"prompt": "<video>What is it?", "completion": "a cat", "images": [], "videos": ["a.mp4"]}`,
			`rows.jsonl:2: videos: only text can be rendered, and the text of the row has <video> where this belongs; leave the row out, or take <video> out of its text`},
		{"messages: an image", `{"prompt": [{"role": "user", "content": [{"type": "image_url"}]}], "completion": "a"}`,
			`rows.jsonl:2: prompt.0.content.0.type: "image_url" cannot be rendered; only parts of type text, reasoning and tool_call`},
		{"messages: a part without text", `{"prompt": [{"role": "user", "content": [{"type": "text"}]}], "completion": "a"}`,
			`rows.jsonl:2: prompt.0.content.0.text: missing; a part is {"type": "text", "text": …}`},
		{"messages: train is no boolean", `{"prompt": [{"role": "user", "content": "q", "train": "no"}], "completion": "a"}`, `rows.jsonl:2: prompt.0.train: text where true or false is due`},
		{"messages: weight is no number", `{"prompt": [{"role": "user", "content": "q", "weight": "1"}], "completion": "a"}`, `rows.jsonl:2: prompt.0.weight: text where a number is due`},
		{"messages: weight is negative", `{"prompt": [{"role": "user", "content": "q", "weight": -1}], "completion": "a"}`, `rows.jsonl:2: prompt.0.weight: -1 is not a weight; a finite number, at least 0`},
		{"messages: weight overflows", `{"prompt": [{"role": "user", "content": "q", "weight": 1e999}], "completion": "a"}`, `rows.jsonl:2: prompt.0.weight: +Inf is not a weight; a finite number, at least 0`},
		{"nothing to train", `{"prompt": "q", "completion": [{"role": "assistant", "content": "a", "weight": 0}]}`, `rows.jsonl:2: no trained token; chat.train_on is all_assistant_messages`},
		{"answers in the prompt alone", `{"prompt": [{"role": "assistant", "content": "a"}], "completion": [{"role": "user", "content": "q"}]}`, `rows.jsonl:2: no trained token; chat.train_on is all_assistant_messages`},
		{"too long", `{"prompt": "q", "completion": "` + strings.Repeat("x", 100) + `"}`,
			`rows.jsonl:2: 106 tokens, and dataset.max_length is 100; raise it, or set dataset.overlong to drop, keep_start or keep_end`},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t, map[string]string{"rows.jsonl": pairRow + c.row + "\n" + pairRow}, recipe.Source{Path: "rows.jsonl"})
			f.r.Dataset.MaxLength = 100
			_, err := f.open()
			var list diag.List
			if !errors.As(err, &list) || err.Error() != c.want {
				t.Fatalf("got  %v\nwant %s", err, c.want)
			}
			f.r.Dataset.OnBadRow = "skip"
			data, err := f.open()
			if c.name == "too long" {
				if err == nil {
					t.Error("on_bad_row: skip left out an overlong row, which dataset.overlong: error refuses")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if data.SkippedRows != 1 || len(data.Skipped) != 1 || data.Skipped[0].String() != c.want || data.Train.Len() != 2 {
				t.Errorf("skipped %d: %v, %d rows left; want the bad one alone", data.SkippedRows, data.Skipped, data.Train.Len())
			}
		})
	}
}

func TestRowsOfTokens(t *testing.T) {
	for _, c := range []struct{ name, row, want string }{
		{"an id outside of the vocabulary", `{"tokens": [1, 272]}`, `rows.jsonl:1: tokens.1: 272 is outside of the vocabulary; ids are 0 to 271`},
		{"a negative id", `{"tokens": [-1, 2]}`, `rows.jsonl:1: tokens.0: -1 is outside of the vocabulary; ids are 0 to 271`},
		{"an id that is not whole", `{"tokens": [1, 2.0]}`, `rows.jsonl:1: tokens.1: "2.0" is not a token id; a whole number of 0 to 271`},
		{"an id that no integer holds", `{"tokens": [1, 99999999999999999999]}`, `rows.jsonl:1: tokens.1: "99999999999999999999" is not a token id; a whole number of 0 to 271`},
		{"a null", `{"tokens": [1, null]}`, `rows.jsonl:1: tokens.1: "null" is not a token id; a whole number of 0 to 271`},
		{"no list", `{"tokens": "1 2"}`, `rows.jsonl:1: tokens: text where a list of token ids is due`},
		{"one token", `{"tokens": [1]}`, `rows.jsonl:1: tokens: 1 tokens; a row needs two, as the first is never predicted`},
		{"too few weights", `{"tokens": [1, 2], "weights": [1]}`, `rows.jsonl:1: weights: 1 weights for 2 tokens; one each is due`},
		{"a negative weight", `{"tokens": [1, 2], "weights": [0, -1]}`, `rows.jsonl:1: weights.1: "-1" is not a weight; a finite number, at least 0`},
		{"a weight that overflows", `{"tokens": [1, 2], "weights": [0, 1e99]}`, `rows.jsonl:1: weights.1: "1e99" is not a weight; a finite number, at least 0`},
		{"weights that are text", `{"tokens": [1, 2], "weights": "1"}`, `rows.jsonl:1: weights: text where a list of weights is due, one for each token`},
		{"a weight on the first token alone", `{"tokens": [1, 2], "weights": [1, 0]}`, `rows.jsonl:1: no trained token; every weight is 0`},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t, map[string]string{"rows.jsonl": c.row}, recipe.Source{Path: "rows.jsonl"})
			if _, err := f.open(); err == nil || err.Error() != c.want {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
	f := newFixture(t, map[string]string{"rows.jsonl": `{"tokens": [151643, 7, 8], "weights": [1, 0, 0.5]}`}, recipe.Source{Path: "rows.jsonl"})
	f.tpl = nil
	row, err := f.mustOpen(t).Train.Row(0)
	if err != nil {
		t.Fatal(err)
	}
	want := loss.Datum{Input: []int32{151643, 7}, Targets: []int32{7, 8}, Weights: []float64{0, 0.5}}
	if !reflect.DeepEqual(row.Data[0], want) {
		t.Errorf("without a tokenizer: got %v, want inputs, targets and weights shifted by one: %v", row.Data[0], want)
	}
}
