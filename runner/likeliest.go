package runner

import (
	"context"
	"errors"
	"fmt"
	"math"

	"trainer/internal/rollout"
	"trainer/loss"
	"trainer/recipe"
)

// publishTeacher has the teacher's generator serve its weights: before that the service does not say which it serves.
func (r *run) publishTeacher(ctx context.Context, t *teacher) error {
	p, err := t.session.Prepare(ctx, Sync{Mode: "synchronous"})
	if err != nil {
		return fmt.Errorf("prepare the publishing of the teacher: %w", err)
	}
	_, err = t.answer(ctx, item{slot: slot{step: r.past.done(), kind: kindSync}, body: p})
	return err
}

// answer submits what changes nothing of the teacher and waits for it; what fails is asked for again.
func (t *teacher) answer(ctx context.Context, it item) (res Result, err error) {
	for range harmlessTries {
		var ops []*operation
		if ops, err = t.ledger.submit(ctx, it); err != nil {
			return Result{}, err
		}
		if res, err = ops[0].wait(ctx); err == nil || t.ledger.tainted() != nil || costs(failureOf(err), false) != askAgain {
			ops[0].res.Samples = nil // who asked has them
			break
		}
	}
	return res, err
}

// likeliest has the teacher say what it finds likeliest in place of each token of the members of groups, as prompts of which
// it samples one token more. Requests go one after the other, since those to a generator end in no order.
func (t *teacher) likeliest(ctx context.Context, groups []rollout.Group, top int, from slot) error {
	most := t.most
	if most <= 0 {
		most = sequencesARequest
	}
	var all []rollout.Samples
	for data := rollout.Untaught(groups); len(data) > 0; {
		part := data[:min(len(data), most)]
		data = data[len(part):]
		op := Sample{Prompts: whole(part), N: 1, Params: recipe.Sampling{MaxTokens: 1, Temperature: 1, TopP: 1, TopK: -1}, Top: top}
		p, err := t.session.Prepare(ctx, op)
		if err != nil {
			return fmt.Errorf("prepare the question to the teacher: %w", err)
		}
		res, err := t.answer(ctx, item{slot: slot{step: from.step, kind: from.kind, index: from.index}, body: p})
		if err != nil {
			return fmt.Errorf("ask the teacher: %w", err)
		}
		from.index++
		if err := answers(res.Samples, op.Prompts); err != nil {
			return fmt.Errorf("ask the teacher: %w", err)
		}
		all = append(all, res.Samples...)
	}
	t.ledger.drop(t.ledger.ended(math.MaxInt))
	rollout.TeachTop(groups, all)
	return nil
}

// whole are the tokens of sequences, of which Input lacks the last.
func whole(data []loss.Datum) [][]int32 {
	out := make([][]int32, len(data))
	for i, d := range data {
		out[i] = append(append(make([]int32, 0, len(d.Input)+1), d.Input...), d.Targets[len(d.Targets)-1])
	}
	return out
}

// answers holds what a teacher says of prompts to speaking of each of their tokens but the first.
func answers(all []rollout.Samples, prompts [][]int32) error {
	if len(all) != len(prompts) {
		return fmt.Errorf("it spoke of %d sequences of %d", len(all), len(prompts))
	}
	for i, s := range all {
		n := len(prompts[i])
		if len(s.Scores) != n || len(s.TopIDs) != n || len(s.TopLogprobs) != n {
			return fmt.Errorf("of sequence %d, %d tokens, it has %d log-probabilities and %d lists of the likeliest tokens", i+1, n, len(s.Scores), len(s.TopIDs))
		}
		for t := 1; t < n; t++ {
			_, err := loss.CheckTop(s.TopIDs[t], s.TopLogprobs[t], math.MaxInt32)
			if err == nil && len(s.TopIDs[t]) == 0 {
				err = errors.New("there is none")
			}
			if err != nil {
				return fmt.Errorf("of sequence %d the likeliest tokens at position %d: %w", i+1, t, err)
			}
		}
	}
	return nil
}
