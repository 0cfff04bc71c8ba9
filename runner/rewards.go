package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path/filepath"

	"trainer/internal/diag"
	"trainer/internal/grader"
)

// openRewards makes the graders that the recipe names, in its order.
func (in *Inputs) openRewards(problems *diag.List) {
	r := in.Recipe
	var entries []grader.Entry
	for i, w := range r.Reward {
		key := fmt.Sprintf("reward.%d", i)
		if _, asks := w.Params.(grader.Outside); asks {
			problems.Add(r.At(key+".type"), key+".type", "%q asks outside of the program, which is not built yet; the other rewards grade inside of it", w.Type)
			continue
		}
		if o, ok := w.Params.(grader.Opener); ok {
			if err := o.Open(filepath.Dir(r.Path())); err != nil {
				at := key + ".params"
				var f *grader.Fault
				if errors.As(err, &f) {
					at, err = at+"."+f.Key, errors.New(f.Msg)
				}
				problems.Add(r.At(at), at, "%v", err)
				continue
			}
		}
		e := grader.Entry{Type: w.Type, Grader: w.Params, Weight: w.Weight, Clip: w.Clip, Skip: w.OnUnscored == "skip"}
		if w.Gate != nil {
			e.Gate = &grader.Gate{Min: w.Gate.Min, Else: w.Gate.Else}
		}
		entries = append(entries, e)
		in.tryReward(i, problems)
	}
	in.Rewards = grader.New(entries)
}

// tryReward grades the completions that the recipe gives with a reward, and holds the scores, before clip, gate and weight, to
// those that it expects.
func (in *Inputs) tryReward(i int, problems *diag.List) {
	w := in.Recipe.Reward[i]
	for n, test := range w.Tests {
		key := fmt.Sprintf("reward.%d.tests.%d", i, n)
		c := grader.Completion{Sample: key, Text: test.Completion, Open: test.Open, StopReason: "stop"}
		if in.Tokenizer != nil {
			c.Tokens, _ = in.Tokenizer.Encode(test.Completion)
		}
		if test.Target != "" {
			c.Target, _ = json.Marshal(test.Target) // text always can be
		}
		s, err := w.Params.Grade(context.Background(), c)
		want, got := "no score", "no score: "+s.Why
		if test.Reward != nil {
			want = fmt.Sprintf("%g", *test.Reward)
		}
		if !s.Unscored {
			got = fmt.Sprintf("%g", s.Value)
		}
		switch {
		case err != nil:
			problems.Add(in.Recipe.At(key), key, "%v", err)
		case s.Unscored != (test.Reward == nil) || test.Reward != nil && math.Abs(s.Value-*test.Reward) > 1e-9:
			problems.Add(in.Recipe.At(key), key, "expected %s, got %s", want, got)
		}
	}
}

// checkTargets holds every row's target to the rewards that compare with it: a row without one could never be scored.
func (in *Inputs) checkTargets(problems *diag.List) error {
	const shown = 20
	found := 0
	for _, set := range in.sets() {
		for i := range set.Len() {
			p, err := set.Prompt(i)
			if err != nil {
				return err
			}
			if err := in.Rewards.CheckTarget(p.Target); err != nil {
				if found++; found <= shown {
					problems.Add(p.At, "target", "%v", err)
				}
			}
		}
	}
	if found > shown {
		problems.Add(in.Recipe.At("reward"), "reward", "%d rows have no target that the rewards can compare with; %d of them are not listed", found, found-shown)
	}
	return nil
}
