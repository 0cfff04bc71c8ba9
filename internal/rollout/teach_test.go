package rollout_test

import (
	"math"
	"slices"
	"testing"

	"trainer/internal/rollout"
	"trainer/recipe"
)

// taught are two prompts, of three tokens and of one, with a completion each, the second of which was cut.
func taught() []rollout.Group {
	return []rollout.Group{
		{Prompt: []int32{1, 2, 3}, Members: []rollout.Member{{Sequence: rollout.Sequence{Tokens: []int32{4, 5}, Logprobs: []float64{-1, -2}, Stop: rollout.Stopped}}}},
		{Prompt: []int32{6}, Members: []rollout.Member{{Sequence: rollout.Sequence{Tokens: []int32{7}, Logprobs: []float64{-3}, Stop: rollout.Cut}}}},
	}
}

// TestTeachPutsScoresBehindThePrompt follows what a teacher says from its rows, [B][T], to the positions that train.
func TestTeachPutsScoresBehindThePrompt(t *testing.T) {
	groups := taught()
	rollout.Enter(groups, &recipe.Rollout{Truncated: "keep"})
	rows := [][]float64{{-9, -9, -1.5, -4}, {-2}}
	if err := rollout.Teach(groups, rows); err != nil {
		t.Fatal(err)
	}
	data := rollout.Step(groups)
	if len(data) != 2 {
		t.Fatalf("%d sequences train, want 2", len(data))
	}
	if got, want := data[0].TeacherLogprobs, []float64{0, 0, -1.5, -4}; !slices.Equal(got, want) {
		t.Errorf("teacher log-probabilities %v, want %v", got, want)
	}
	if got, want := data[0].Weights, []float64{0, 0, 1, 1}; !slices.Equal(got, want) {
		t.Errorf("weights %v, want %v", got, want)
	}
	// q − τ: 0.5, 2, −1
	if kl, ok := rollout.Divergence(groups); !ok || math.Abs(kl-0.5) > 1e-12 {
		t.Errorf("divergence %v, want 0.5", kl)
	}
	m := rollout.Taught(groups)
	if _, speaks := m["reward/unscored"]; speaks || m["distill/reverse_kl"] != 0.5 || m["completion/length"] != 1.5 {
		t.Errorf("metrics %v: no rewards are due, a reverse_kl of 0.5, and a length of 1.5", m)
	}
}

func TestMaskedCompletionsAreScoredAndNotTrained(t *testing.T) {
	groups := taught()
	rollout.Enter(groups, &recipe.Rollout{Truncated: "mask"})
	if n := len(rollout.Untaught(groups)); n != 2 {
		t.Errorf("%d sequences go to the teacher, want 2", n)
	}
	if n := len(rollout.Step(groups)); n != 1 {
		t.Errorf("%d sequences train, want the one that was not cut", n)
	}
}

func TestTeachRefusesRowsOfOtherSequences(t *testing.T) {
	for name, rows := range map[string][][]float64{
		"too few":          {{-9, -9, -1, -1}},
		"too many":         {{-9, -9, -1, -1}, {-2}, {-2}},
		"of other lengths": {{-9, -9, -1}, {-2}},
	} {
		if err := rollout.Teach(taught(), rows); err == nil {
			t.Errorf("%s: %v was taken", name, rows)
		}
	}
	if _, ok := rollout.Divergence(nil); ok {
		t.Error("no tokens have a divergence")
	}
}

// TestATeacherMayHaveAnotherPrompt: the ids of the completion are those that were sampled, and what the teacher says of them is
// found from the end.
func TestATeacherMayHaveAnotherPrompt(t *testing.T) {
	groups := taught()
	groups[0].Taught, groups[1].Taught = []int32{9}, []int32{8, 8, 8}
	rollout.Enter(groups, &recipe.Rollout{Truncated: "keep"})
	data := rollout.Untaught(groups)
	if got, want := append(slices.Clone(data[0].Input), data[0].Targets...), []int32{9, 4, 4, 5}; !slices.Equal(got, want) {
		t.Errorf("the teacher is given %v, want %v", got, want)
	}
	if got, want := append(slices.Clone(data[1].Input), data[1].Targets...), []int32{8, 8, 8, 8, 8, 7}; !slices.Equal(got, want) {
		t.Errorf("the teacher is given %v, want %v", got, want)
	}
	if err := rollout.Teach(groups, [][]float64{{-1.5, -4}, {-9, -9, -2}}); err != nil {
		t.Fatal(err)
	}
	step := rollout.Step(groups)
	if got, want := step[0].TeacherLogprobs, []float64{0, 0, -1.5, -4}; !slices.Equal(got, want) {
		t.Errorf("teacher log-probabilities %v, want %v", got, want)
	}
	if got, want := step[0].Input, []int32{1, 2, 3, 4}; !slices.Equal(got, want) {
		t.Errorf("the student trains on %v, want %v", got, want)
	}
	if got, want := step[1].TeacherLogprobs, []float64{-2}; !slices.Equal(got, want) {
		t.Errorf("teacher log-probabilities %v, want %v", got, want)
	}
	if err := rollout.Teach(groups, [][]float64{{-9, -9, -1.5, -4}, {-2}}); err == nil {
		t.Error("rows of the student's prompts are taken for those of the teacher's")
	}
}
