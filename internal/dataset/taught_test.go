package dataset

import (
	"reflect"
	"testing"

	"trainer/loss"
	"trainer/recipe"
)

// distils has the fixture's recipe learn from a file, by a loss.
func (f *fixture) distils(l *loss.ReverseKL) *fixture {
	f.r.Loss = recipe.Loss{Type: "reverse_kl", Params: l}
	return f
}

// isTaught has the fixture's recipe sample, for a teacher.
func (f *fixture) isTaught(t recipe.Teacher) *fixture {
	f.r.Loss = recipe.Loss{Type: "reverse_kl", Params: &loss.ReverseKL{}}
	f.r.Rollout, f.r.Teacher = &recipe.Rollout{}, &t
	return f
}

func TestRowsThatATeacherHasScored(t *testing.T) {
	for _, c := range []struct {
		name, row string
		want      loss.Datum
	}{
		{"one for each token", `{"tokens": [1, 2, 3], "weights": [0, 0, 2], "teacher_logprobs": [null, null, -0.5], "logprobs": [-9, -9, -1]}`,
			loss.Datum{Input: []int32{1, 2}, Targets: []int32{2, 3}, Weights: []float64{0, 2}, TeacherLogprobs: []float64{0, -0.5}, OldLogprobs: []float64{0, -1}}},
		{"the first token never trains", `{"tokens": [1, 2], "teacher_logprobs": [null, 0], "logprobs": [null, -2e-3]}`,
			loss.Datum{Input: []int32{1}, Targets: []int32{2}, Weights: []float64{1}, TeacherLogprobs: []float64{0}, OldLogprobs: []float64{-2e-3}}},
		{"behind a prompt, as a run writes them", `{"batch": 0, "prompt": "x", "prompt_tokens": [7, 8], "tokens": [2, 3], "teacher_logprobs": [-1, -2], "logprobs": [-3, -4]}`,
			loss.Datum{Input: []int32{7, 8, 2}, Targets: []int32{8, 2, 3}, Weights: []float64{0, 1, 1}, TeacherLogprobs: []float64{0, -1, -2}, OldLogprobs: []float64{0, -3, -4}}},
		{"one token behind a prompt of one", `{"prompt_tokens": [7], "tokens": [2], "teacher_logprobs": [-1], "logprobs": [-3]}`,
			loss.Datum{Input: []int32{7}, Targets: []int32{2}, Weights: []float64{1}, TeacherLogprobs: []float64{-1}, OldLogprobs: []float64{-3}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t, map[string]string{"rows.jsonl": c.row}, recipe.Source{Path: "rows.jsonl"}).distils(&loss.ReverseKL{IsCorrection: true})
			row, err := f.mustOpen(t).Train.Row(0)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(row.Data[0], c.want) {
				t.Errorf("got  %+v\nwant %+v", row.Data[0], c.want)
			}
		})
	}
	f := newFixture(t, map[string]string{"rows.jsonl": `{"tokens": [1, 2, 3, 4], "teacher_logprobs": [null, -1, -2, -3]}`}, recipe.Source{Path: "rows.jsonl"}).distils(&loss.ReverseKL{})
	f.r.Dataset.MaxLength, f.r.Dataset.Overlong = 3, "keep_end"
	row, err := f.mustOpen(t).Train.Row(0)
	if want := []float64{-2, -3}; err != nil || !reflect.DeepEqual(row.Data[0].TeacherLogprobs, want) {
		t.Errorf("cut to its end: %v, %v; want %v", row.Data[0].TeacherLogprobs, err, want)
	}
}

func TestRowsThatATeacherHasScoredAtFault(t *testing.T) {
	for _, c := range []struct{ name, row, want string }{
		{"no scores", `{"tokens": [1, 2]}`, "rows.jsonl:1: teacher_logprobs: missing; the row has tokens (by its first row, rows.jsonl:1, the source is tokens)"},
		{"too few", `{"tokens": [1, 2], "teacher_logprobs": [-1]}`, "rows.jsonl:1: teacher_logprobs: 1 log-probabilities for 2 tokens; one each is due"},
		{"those of the prompt too", `{"prompt_tokens": [1], "tokens": [2], "teacher_logprobs": [null, -1]}`, "rows.jsonl:1: teacher_logprobs: 2 log-probabilities for 1 tokens; one each is due"},
		{"a null where a token trains", `{"tokens": [1, 2], "teacher_logprobs": [null, null]}`, "rows.jsonl:1: teacher_logprobs.1: null, and the token trains; give its log-probability, or a weight of 0"},
		{"a probability", `{"tokens": [1, 2], "teacher_logprobs": [null, 0.5]}`, "rows.jsonl:1: teacher_logprobs.1: 0.5 is not a log-probability; a finite number, at most 0"},
		{"a number where nothing trains is one too", `{"tokens": [1, 2], "teacher_logprobs": [0.5, -1]}`, "rows.jsonl:1: teacher_logprobs.0: 0.5 is not a log-probability; a finite number, at most 0"},
		{"an overflow", `{"tokens": [1, 2], "teacher_logprobs": [null, -1e999]}`, "rows.jsonl:1: teacher_logprobs.1: -1e999 is not a log-probability; a finite number, at most 0"},
		{"text", `{"tokens": [1, 2], "teacher_logprobs": [null, "-1"]}`, `rows.jsonl:1: teacher_logprobs.1: "-1" is not a log-probability; a finite number, at most 0`},
		{"no list", `{"tokens": [1, 2], "teacher_logprobs": -1}`, "rows.jsonl:1: teacher_logprobs: a number where a list of log-probabilities is due"},
		{"no scores of the sampler", `{"tokens": [1, 2], "teacher_logprobs": [null, -1]}`, "rows.jsonl:1: logprobs: missing; the row has tokens, teacher_logprobs (by its first row, rows.jsonl:1, the source is tokens)"},
		{"a prompt that is no ids", `{"prompt_tokens": "a", "tokens": [1, 2], "teacher_logprobs": [null, -1]}`, "rows.jsonl:1: prompt_tokens: text where a list of token ids is due"},
		{"rows of prompts", `{"prompt": "a"}`, "dataset.train.0.format: prompts rows do not go with this loss; it trains on tokens (told by the first row, rows.jsonl:1)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t, map[string]string{"rows.jsonl": c.row}, recipe.Source{Path: "rows.jsonl"}).distils(&loss.ReverseKL{IsCorrection: true})
			if _, err := f.open(); err == nil || err.Error() != c.want {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}

func TestTheTeachersPrompt(t *testing.T) {
	for _, c := range []struct{ name, row, template, system, want string }{
		{"is that of the student", `{"prompt": "q"}`, "auto", "", ""},
		{"has a system message in front", `{"prompt": "q"}`, "auto", "s", "<|begin|><|system|>s<|end|><|user|>q<|end|><|assistant|>"},
		{"has text in front where there are no roles", `{"prompt": "q"}`, "none", "s: ", "<|begin|>s: q"},
		{"is the row's own", `{"prompt": "q", "teacher_prompt": "say q"}`, "auto", "", "<|begin|><|user|>say q<|end|><|assistant|>"},
		{"is the row's own, behind the system message", `{"prompt": "q", "teacher_prompt": "say q"}`, "auto", "s", "<|begin|><|system|>s<|end|><|user|>say q<|end|><|assistant|>"},
		{"is a conversation", `{"prompt": "q", "teacher_prompt": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "q"}]}`, "auto", "",
			"<|begin|><|user|>a<|end|><|assistant|>b<|end|><|user|>q<|end|><|assistant|>"},
		{"keeps a system message of its own", `{"prompt": "q", "teacher_prompt": [{"role": "system", "content": "own"}, {"role": "user", "content": "q"}]}`, "auto", "s",
			"<|begin|><|system|>own<|end|><|user|>q<|end|><|assistant|>"},
		{"is null", `{"prompt": "q", "teacher_prompt": null}`, "auto", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var teacher recipe.Teacher
			if c.system != "" {
				teacher.System = &c.system
			}
			f := newFixture(t, map[string]string{"rows.jsonl": c.row}, recipe.Source{Path: "rows.jsonl"}).isTaught(teacher)
			f.tpl = byteTemplate(t, recipe.Chat{Template: c.template})
			set := f.mustOpen(t).Train
			p, err := set.Prompt(0)
			if err != nil {
				t.Fatal(err)
			}
			if got := f.tpl.Tokenizer().Decode(p.Taught); got != c.want && !(c.want == "" && p.Taught == nil) {
				t.Errorf("got %s, want %s", got, c.want)
			}
			if n := set.Taught(0); n != len(p.Taught) && (p.Taught != nil || n != len(p.IDs)) {
				t.Errorf("%d tokens are counted", n)
			}
		})
	}
}

func TestTheTeachersPromptAtFault(t *testing.T) {
	s := "sys"
	for _, c := range []struct {
		name, row, want string
		fields          map[string]recipe.Field
		max             int
	}{
		{"a second system message", `{"prompt": [{"role": "system", "content": "own"}, {"role": "user", "content": "q"}]}`,
			"rows.jsonl:1: prompt.0: a system message, and teacher.system would be a second one for the teacher; give the row a teacher_prompt", nil, 100},
		{"an empty one", `{"prompt": "q", "teacher_prompt": ""}`, "rows.jsonl:1: teacher_prompt: empty; a prompt needs text", nil, 100},
		{"a message of no role", `{"prompt": "q", "teacher_prompt": [{"role": "usr", "content": "q"}]}`, `rows.jsonl:1: teacher_prompt.0.role: "usr" is not a role (system, user, assistant, tool); did you mean "user"?`, nil, 100},
		{"a column that is mapped and not there", `{"prompt": "q"}`, "rows.jsonl:1: hint: missing; the row has prompt (by its first row, rows.jsonl:1, the source is prompts)", map[string]recipe.Field{"teacher_prompt": {Columns: []string{"hint"}}}, 100},
		{"one that is too long", `{"prompt": "q", "teacher_prompt": "0123456789"}`,
			"rows.jsonl:1: 19 tokens of the teacher's prompt, and dataset.max_length is 12; raise it, or set dataset.overlong to drop, keep_start or keep_end", nil, 12},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t, map[string]string{"rows.jsonl": c.row}, recipe.Source{Path: "rows.jsonl", Fields: c.fields}).isTaught(recipe.Teacher{System: &s})
			f.r.Dataset.MaxLength = c.max
			if _, err := f.open(); err == nil || err.Error() != c.want {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
	f := newFixture(t, map[string]string{"rows.jsonl": `{"prompt": "q"}`}, recipe.Source{Path: "rows.jsonl", Fields: map[string]recipe.Field{"teacher_prompt": {Columns: []string{"prompt"}}}}).reinforced()
	const want = "dataset.train.0.fields.teacher_prompt: not a field of prompts rows (prompt, tools, documents, target) (told by the first row, rows.jsonl:1)"
	if _, err := f.open(); err == nil || err.Error() != want {
		t.Errorf("without a teacher: got  %v\nwant %s", err, want)
	}
}
