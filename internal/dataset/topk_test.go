package dataset

import (
	"slices"
	"testing"

	"trainer/loss"
	"trainer/recipe"
)

// taught is a fixture of rows that a teacher's likeliest tokens are learnt from.
func taught(t testing.TB, row string, top int) *fixture {
	f := newFixture(t, map[string]string{"rows.jsonl": row}, recipe.Source{Path: "rows.jsonl"})
	f.r.Loss = recipe.Loss{Type: "forward_kl", Params: &loss.ForwardKL{TopK: top, Renormalise: true}}
	return f
}

func TestRowsOfATeacher(t *testing.T) {
	const row = `{"tokens": [65, 66, 67, 68], "weights": [1, 0, 0.5, 1], "teacher_topk": [null, [], [[70, -0.5], [71, -1.5], [72, -3]], [[73, -0.1]]]}`
	set := taught(t, row, 2).mustOpen(t).Train
	got, err := set.Row(0)
	if err != nil {
		t.Fatal(err)
	}
	d := got.Data[0]
	if len(got.Data) != 1 || !slices.Equal(d.Weights, []float64{0, 0.5, 1}) || !slices.Equal(d.TopIDs[1], []int32{70, 71, 72}) || d.TopLogprobs[2][0] != -0.1 {
		t.Errorf("got %+v", got.Data)
	}
	// two copies of four tokens, of which two and one are trained
	if tokens, trained := set.Count(0); tokens != 8 || trained != 3 || set.Sequences(0) != 2 || set.Longest(0) != 4 {
		t.Errorf("%d tokens, %d of them trained, %d sequences, the longest of %d; want 8, 3, 2, 4", tokens, trained, set.Sequences(0), set.Longest(0))
	}
	if n := len((&loss.ForwardKL{TopK: 2}).Copies(got.Data)); n != set.Sequences(0) {
		t.Errorf("%d copies are sent, and %d are counted", n, set.Sequences(0))
	}
}

func TestRowsOfATeacherAreCutAsOthers(t *testing.T) {
	f := taught(t, `{"tokens": [65, 66, 67, 68], "teacher_topk": [null, [[70, -0.5]], [[71, -0.5]], [[72, -0.1]]]}`, 20)
	f.r.Dataset.MaxLength, f.r.Dataset.Overlong = 3, "keep_end"
	got, err := f.mustOpen(t).Train.Row(0)
	if err != nil {
		t.Fatal(err)
	}
	if d := got.Data[0]; !slices.Equal(d.Targets, []int32{67, 68}) || !slices.Equal(d.TopIDs[0], []int32{71}) || !slices.Equal(d.TopIDs[1], []int32{72}) {
		t.Errorf("got %+v", d)
	}
}

func TestRowsOfATeacherAtFault(t *testing.T) {
	for _, c := range []struct{ name, row, want string }{
		{"no teacher", `{"tokens": [1, 2]}`, `rows.jsonl:1: teacher_topk: missing; the row has tokens (by its first row, rows.jsonl:1, the source is tokens)`},
		{"no list", `{"tokens": [1, 2], "teacher_topk": 1}`, `rows.jsonl:1: teacher_topk: a number where a list is due, for each token the pairs of a token id and its logprob`},
		{"too few", `{"tokens": [1, 2, 3], "teacher_topk": [null, [[3, -1]]]}`, `rows.jsonl:1: teacher_topk: 2 entries for 3 tokens; one each is due, null where nothing trains`},
		{"too many", `{"tokens": [1, 2], "teacher_topk": [null, [[3, -1]], null]}`, `rows.jsonl:1: teacher_topk: 3 entries for 2 tokens; one each is due, null where nothing trains`},
		{"of the first token", `{"tokens": [1, 2], "teacher_topk": [[[3, -1]], [[3, -1]]]}`, `rows.jsonl:1: teacher_topk.0: the first token is never predicted; null or [] is due`},
		{"nothing to learn where weights trains", `{"tokens": [1, 2, 3], "weights": [0, 1, 1], "teacher_topk": [null, null, [[3, -1]]]}`,
			`rows.jsonl:1: teacher_topk.1: has nothing to learn, and weights trains token 1 with 1; give its likeliest tokens, or the weight 0`},
		{"nothing trains", `{"tokens": [1, 2], "teacher_topk": [null, []]}`, `rows.jsonl:1: no trained token; every weight is 0`},
		{"no pairs", `{"tokens": [1, 2], "teacher_topk": [null, [3, -1]]}`, `rows.jsonl:1: teacher_topk.1.0: "3" is not [token id, logprob]`},
		{"a pair of three", `{"tokens": [1, 2], "teacher_topk": [null, [[3, -1, 0]]]}`, `rows.jsonl:1: teacher_topk.1.0: "[3, -1, 0]" is not [token id, logprob]`},
		{"an entry that is no list", `{"tokens": [1, 2], "teacher_topk": [null, {"3": -1}]}`, `rows.jsonl:1: teacher_topk.1: an object where a list of [token id, logprob] is due`},
		{"an id outside of the vocabulary", `{"tokens": [1, 2], "teacher_topk": [null, [[3, -1], [272, -2]]]}`, `rows.jsonl:1: teacher_topk.1.1: 272 is outside of the vocabulary; ids are 0 to 271`},
		{"an id that is not whole", `{"tokens": [1, 2], "teacher_topk": [null, [[3.5, -1]]]}`, `rows.jsonl:1: teacher_topk.1.0: "3.5" is not a token id; a whole number of 0 to 271`},
		{"an id twice", `{"tokens": [1, 2], "teacher_topk": [null, [[3, -1], [3, -2]]]}`, `rows.jsonl:1: teacher_topk.1.1: token 3 is there twice`},
		{"a logprob above 0", `{"tokens": [1, 2], "teacher_topk": [null, [[3, 0.5]]]}`, `rows.jsonl:1: teacher_topk.1.0: 0.5 is not a log-probability; a finite number, at most 0`},
		{"a logprob beyond numbers", `{"tokens": [1, 2], "teacher_topk": [null, [[3, -1e999]]]}`, `rows.jsonl:1: teacher_topk.1.0: -Inf is not a log-probability; a finite number, at most 0`},
		{"a logprob that is null", `{"tokens": [1, 2], "teacher_topk": [null, [[3, null]]]}`, `rows.jsonl:1: teacher_topk.1.0: "null" is not a logprob; a finite number, at most 0`},
		{"no distribution", `{"tokens": [1, 2], "teacher_topk": [null, [[3, -0.5], [4, -0.5]]]}`, `rows.jsonl:1: teacher_topk.1: the probabilities add up to 1.213, which no distribution's do`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := taught(t, c.row, 20).open(); err == nil || err.Error() != c.want {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}

// A loss that learns from no teacher takes rows that have one, as it takes any columns beside its own.
func TestOtherLossesPassATeacherBy(t *testing.T) {
	f := newFixture(t, map[string]string{"rows.jsonl": `{"tokens": [1, 2], "teacher_topk": "x"}`}, recipe.Source{Path: "rows.jsonl"})
	if tokens, trained := f.mustOpen(t).Train.Count(0); tokens != 2 || trained != 1 {
		t.Errorf("%d tokens, %d trained; want 2, 1", tokens, trained)
	}
}
