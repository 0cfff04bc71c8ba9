package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"trainer/internal/diag"
	"trainer/internal/grader"
	"trainer/internal/rollout"
	"trainer/recipe"
)

// ErrNotAllowed means that a reward asks outside of the program and the person has not said that it may.
var ErrNotAllowed = errors.New("not allowed")

// Outside gives the rewards that ask outside what they ask with. The error is an ErrNotAllowed, or says what is missing.
type Outside interface {
	// Connect sets what g asks with; key is its place in the recipe, reward.0, and dir the folder that a program runs in.
	Connect(g grader.Outside, key, dir string) error
	// Environment is what e names; key and dir are as those of Connect.
	Environment(e *recipe.Env, key, dir string) (rollout.Env, error)
}

// Graders are the rewards of a recipe, opened.
type Graders struct {
	Set *grader.Set
	// Unchecked says what was neither asked nor tested, a line each: nobody allowed it, or there were no tokens to count.
	Unchecked []string
}

// OpenGraders opens the rewards of a recipe and holds each to its tests, all at a time, before anything is paid. tokens counts
// those of a completion; nil: there is no tokenizer, and tests that count tokens stay unchecked. With lenient a reward that is not
// allowed to ask is Unchecked; else it is refused. The error is a diag.List, or that of ctx.
func OpenGraders(ctx context.Context, r *recipe.Recipe, tokens func(string) []int32, out Outside, lenient bool) (Graders, error) {
	o := gradersOpening{ctx: ctx, recipe: r, tokens: tokens, out: out, lenient: lenient}
	var entries []grader.Entry
	for i, w := range r.Reward {
		entries = append(entries, entryOf(w))
		key := fmt.Sprintf("reward.%d", i)
		ready := o.connect(key, w)
		if ctx.Err() != nil {
			return Graders{}, context.Cause(ctx)
		}
		if !ready {
			continue
		}
		for j, t := range w.Tests {
			if err := o.test(fmt.Sprintf("%s.tests.%d", key, j), w, t); err != nil {
				return Graders{}, err
			}
		}
	}
	return Graders{Set: grader.New(entries), Unchecked: o.unchecked}, o.problems.Err()
}

func entryOf(w recipe.Reward) grader.Entry {
	e := grader.Entry{Type: w.Type, Grader: w.Params, Weight: w.Weight, Clip: w.Clip, Skip: w.OnUnscored == "skip"}
	if w.Gate != nil {
		e.Gate = &grader.Gate{Min: w.Gate.Min, Else: w.Gate.Else}
	}
	return e
}

// gradersOpening is the state of OpenGraders.
type gradersOpening struct {
	ctx       context.Context
	recipe    *recipe.Recipe
	tokens    func(string) []int32
	out       Outside
	lenient   bool
	problems  diag.List
	unchecked []string
}

func (o *gradersOpening) refuse(key, format string, a ...any) {
	o.problems.Add(o.recipe.At(key), key, format, a...)
}

// connect makes a reward ready to grade; false where it is not.
func (o *gradersOpening) connect(key string, w recipe.Reward) bool {
	dir := o.recipe.Dir(key + ".params")
	if g, ok := w.Params.(grader.Opener); ok {
		var f *grader.Fault
		if err := g.Open(dir); errors.As(err, &f) {
			o.refuse(key+".params."+f.Key, "%s", f.Msg)
			return false
		} else if err != nil {
			o.refuse(key, "%v", err)
			return false
		}
	}
	g, ok := w.Params.(grader.Outside)
	if !ok {
		return true
	}
	if c, ok := g.(*grader.Command); ok {
		dir = o.recipe.ProgramDir(key+".params", c.Dir)
	}
	err := ErrNotAllowed
	if o.out != nil {
		err = o.out.Connect(g, key, dir)
	}
	if s, ok := g.(grader.Starter); ok && err == nil {
		err = s.Start(o.ctx)
	}
	switch {
	case err == nil:
		return true
	case !errors.Is(err, ErrNotAllowed):
		o.refuse(key, "%v", err)
	case o.lenient:
		o.unchecked = append(o.unchecked, key+", which "+grader.Refused(g))
	default:
		o.refuse(key, "%s", grader.Refused(g))
	}
	return false
}

// near is how far a test's score may be off.
const near = 1e-9

// test grades one completion of a reward's tests, without clip, gate and weight. The error is that of the context.
func (o *gradersOpening) test(key string, w recipe.Reward, t recipe.RewardTest) error {
	c := grader.Completion{Sample: key, Text: t.Completion, Open: t.Open, StopReason: "stop"}
	if t.Target != "" {
		raw, err := json.Marshal(t.Target)
		if err != nil {
			return err
		}
		c.Target = raw
	}
	if o.tokens != nil {
		c.Tokens = o.tokens(t.Completion)
	} else if countsTokens(w.Params) {
		o.unchecked = append(o.unchecked, key+", which counts tokens, without a tokenizer")
		return nil
	}
	got, err := w.Params.Grade(o.ctx, c)
	switch {
	case o.ctx.Err() != nil:
		return context.Cause(o.ctx)
	case err != nil:
		o.refuse(key, "can't be graded: %v", err)
	case got.Unscored && t.Reward != nil:
		o.refuse(key, "is unscored (%s), want %g", got.Why, *t.Reward)
	case !got.Unscored && t.Reward == nil:
		o.refuse(key, "gives %s, want none", scored(got))
	case !got.Unscored && !(math.Abs(got.Value-*t.Reward) <= near):
		o.refuse(key, "gives %s, want %g", scored(got), *t.Reward)
	}
	return nil
}

func scored(s grader.Score) string {
	if s.Value == 0 && s.Why != "" {
		return "0 (" + s.Why + ")"
	}
	return fmt.Sprintf("%g", s.Value)
}

func countsTokens(g grader.Grader) bool {
	switch g := g.(type) {
	case *grader.Length:
		return g.Unit == grader.Tokens
	case *grader.Repetition:
		return g.Unit == grader.Tokens
	}
	return false
}
