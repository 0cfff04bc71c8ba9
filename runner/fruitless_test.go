package runner_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"trainer/internal/grader"
	"trainer/internal/sandbox"
	"trainer/runner"
)

// fixed scores every completion alike.
type fixed grader.Score

func (f fixed) Grade(context.Context, grader.Completion) (grader.Score, error) {
	return grader.Score(f), nil
}

// TestRewardsThatScoreNothing: three rollout batches in a row without a single reward end the run in order, with the reason of the
// last; a run that has fewer ends behind its last. Equal rewards are warned of and end nothing.
func TestRewardsThatScoreNothing(t *testing.T) {
	silent := fixed{Unscored: true, Why: "out of order"}
	for _, c := range []struct {
		name  string
		score fixed
		set   []string
		done  int
		fails bool
		warns string
	}{
		{"no rewards", silent, []string{"train.num_steps=20", "train.epochs=null"}, 3, true, "step 3 is left out"},
		{"no rewards, a batch ahead, two steps each", silent, []string{"train.num_steps=20", "train.epochs=null", "rollout.max_policy_lag=1", "rollout.num_iterations=2"}, 6, true, ""},
		{"no rewards in the only two batches", silent, []string{"train.num_steps=2", "train.epochs=null"}, 2, true, ""},
		{"equal rewards", fixed{Value: 1}, []string{"train.num_steps=11", "train.epochs=null"}, 11, false, "10 rollout batches in a row trained nothing"},
		{"equal rewards, to the end", fixed{Value: 1}, []string{"train.num_steps=2", "train.epochs=null"}, 2, false, "2 of 2 steps were left out, the last: nothing to train on: of 2 groups 2 have equal rewards"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newRollouts(t, c.set...)
			b.in.Graders.Set = grader.New([]grader.Entry{{Type: "fixed", Grader: c.score, Weight: 1}})
			b.against(sandbox.Options{}, func(t *testing.T) {
				s, err := b.through(b.server)
				if c.fails != errors.Is(err, runner.ErrUnscored) || !c.fails && err != nil {
					t.Errorf("ended with %v", err)
				}
				if c.fails && (s.Outcome != "failed" || !strings.Contains(err.Error(), "fixed: out of order")) {
					t.Errorf("%s: %v", s.Outcome, err)
				}
				if s.Done < c.done || s.Done > c.done+2 {
					t.Errorf("%d steps are done, want %d, and what was on its way", s.Done, c.done)
				}
				if all := b.warned.String(); !strings.Contains(all, c.warns) {
					t.Errorf("warned of %q, want %q", all, c.warns)
				}
				if left := b.ready(); len(left) > 0 {
					t.Errorf("left running: %v", left)
				}
			})
		})
	}
}
