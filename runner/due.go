package runner

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"trainer/loss"
)

// follower is one thing that follows a step: submitted right behind it, awaited when the step is collected.
type follower func(ctx context.Context, r *run, done, updates int) error

// had is what the lives before this one have made, by steps done, so that nothing due is done twice. It does not change
// during a life: a life passes each step once.
type had struct{ training, inference, evals map[int]bool }

// follow submits what is due when done steps are applied, in the order: weights_sync, training checkpoint and its
// witness, inference checkpoint, evaluation. What the journal already holds is not due.
func (r *run) follow(ctx context.Context, f *flight, done int) error {
	source, samples := r.batches.(*fromRollouts)
	examines := r.in.examines() && r.evalsAt(done)
	var under served
	var unpublished error
	if r.syncs(done) {
		err := r.batches.release(ctx, f.step)
		switch {
		case err != nil:
		case examines:
			under, unpublished = r.publish(ctx, f, done)
		case samples:
			if under, err = r.publish(ctx, f, done); err == nil {
				source.published(under)
			}
		default:
			err = r.followSync(ctx, f, done)
		}
		if err != nil {
			return err
		}
	}
	if r.savesAt(done) {
		if err := r.followSave(ctx, f, done, false); err != nil {
			return err
		}
	}
	if r.infersAt(done) {
		if err := r.followSave(ctx, f, done, true); err != nil {
			return err
		}
	}
	switch {
	case !r.evalsAt(done):
		return nil
	case samples:
		return r.followSampling(ctx, f, source.serves(), done)
	case examines:
		return r.followBoth(ctx, f, under, unpublished, done)
	}
	return r.followEval(ctx, f, done, nil)
}

// every says whether a cadence of n steps is due behind the done ones. Where a batch feeds several steps, one that falls
// inside of it waits for its end.
func (r *run) every(n *int, done int) bool {
	per := r.plan.perBatch()
	return n != nil && done > 0 && done%per == 0 && done / *n > (done-per) / *n
}

// savesAt says whether a training checkpoint follows the done steps.
func (r *run) savesAt(done int) bool {
	c := r.in.Recipe.Checkpoint
	if done == 0 || r.plan.Evaluates || r.had.training[done] {
		return false
	}
	if r.every(c.Every, done) || done == r.until {
		return true
	}
	if r.ledger.at(slot{step: done, kind: kindTraining}) != nil {
		return true // its time had come in an earlier life, whose intent says so
	}
	return done%r.plan.perBatch() == 0 && c.EveryDuration != nil && time.Since(r.savedAt) >= *c.EveryDuration
}

func (r *run) infersAt(done int) bool {
	c := r.in.Recipe.Checkpoint
	if done == 0 || r.plan.Evaluates || r.had.inference[done] {
		return false
	}
	return r.every(c.InferenceEvery, done) || done == len(r.plan.Rates) && c.InferenceAtEnd
}

// evalsAt says whether held-out rows are scored under the done steps.
func (r *run) evalsAt(done int) bool {
	e := r.in.Recipe.Eval
	if r.in.Held == nil || r.had.evals[done] {
		return false
	}
	if r.plan.Evaluates {
		return true
	}
	if done == 0 {
		return e.AtStart
	}
	return r.every(e.Every, done) || done == r.until && e.AtEnd
}

func (r *run) followSync(ctx context.Context, f *flight, done int) error {
	o, err := r.once(ctx, slot{step: done, kind: kindSync}, Sync{Mode: "synchronous"}, f.updates)
	if err != nil {
		return err
	}
	f.after = append(f.after, func(ctx context.Context, r *run, done, _ int) error {
		_, err := o.wait(ctx)
		return r.harmless(done, "publish the weights", err)
	})
	return nil
}

// followSave submits a checkpoint, and behind a training checkpoint a witness.
func (r *run) followSave(ctx context.Context, f *flight, done int, inference bool) error {
	kind := kindTraining
	if inference {
		kind = kindInference
	}
	o, err := r.once(ctx, slot{step: done, kind: kind}, Save{Inference: inference}, f.updates)
	if err != nil {
		return err
	}
	if !inference {
		r.savedAt = time.Now()
		if err := r.attest(ctx, done, f.updates); err != nil {
			return err
		}
	}
	f.after = append(f.after, func(ctx context.Context, r *run, done, updates int) error {
		return r.harmless(done, "save a checkpoint", r.saved(ctx, o, done, updates))
	})
	return nil
}

// once prepares and submits one operation.
func (r *run) once(ctx context.Context, s slot, op Op, updates int) (*operation, error) {
	p, err := r.session.Prepare(ctx, op)
	if err != nil {
		return nil, fmt.Errorf("prepare %s: %w", op.Name(), err)
	}
	ops, err := r.ledger.submit(ctx, item{slot: s, body: p, expect: updates})
	if err != nil {
		return nil, err
	}
	return ops[0], nil
}

// saved verifies a checkpoint and writes it down: everything before it has ended, and its step is the expected one.
func (r *run) saved(ctx context.Context, o *operation, done, updates int) error {
	res, err := o.wait(ctx)
	if err != nil {
		return err
	}
	c := res.Checkpoint
	if c == nil {
		return fmt.Errorf("%s %s ended without a checkpoint", o.op, o.id)
	}
	if b := r.gen.base; b != nil && c.Step != *b+int64(updates) {
		err := &Disorder{fmt.Sprintf("checkpoint %s holds step %d, expected %d: it is not used", c.ID, c.Step, *b+int64(updates))}
		r.ledger.taint(err)
		return err
	}
	// What failed behind it does not touch it; where the order is broken, nobody knows what is behind it.
	if err := r.ledger.tainted(); failureOf(err) == disorder {
		return err
	}
	rec := checkpointRecord{Gen: r.gen.gen, Done: done, Updates: updates, Kind: "training", ID: c.ID, ServerStep: c.Step,
		Registered: c.Registered, Revision: c.Revision, Adapter: c.Adapter}
	if o.slot.kind == kindInference {
		rec.Kind = "inference"
	}
	if err := r.journal.Append(recCheckpoint, rec); err != nil {
		return &journalError{fmt.Errorf("journal the checkpoint: %w", err)}
	}
	r.noteSave(rec)
	text := rec.Kind + " " + rec.ID
	if rec.Registered != "" {
		text += " registered as " + rec.Registered
	}
	r.tell(Event{Kind: SaveEvent, Done: done, Text: text})
	return nil
}

// journalError is a write that failed: nothing after it can be promised.
type journalError struct{ error }

func (e *journalError) Unwrap() error { return e.error }

// harmless says what a failure costs where nothing of the training depends on it: a warning. Where nothing is trained, all
// depends on it.
func (r *run) harmless(done int, doing string, err error) error {
	var failed *Failed
	noLoss := errors.Is(err, loss.ErrNonFinite) || errors.Is(err, loss.ErrInvalid)
	if err == nil || r.plan.Evaluates || r.tainted() != nil || !errors.As(err, &failed) && !errors.Is(err, ErrGone) && !noLoss {
		return err
	}
	r.tell(Event{Kind: WarnEvent, Done: done, Text: fmt.Sprintf("%s: %v", doing, err)})
	return nil
}

// followEval submits the scoring of the held-out rows. Where no step is sent behind it, what fails is asked for again. The evaluation
// has beside what is measured the metrics that beside gives then, and is not written down where it gives an error; nil: there are no
// others.
func (r *run) followEval(ctx context.Context, f *flight, done int, beside func() (map[string]float64, error)) error {
	measure, err := r.gradient.evals(ctx, r, done, f.updates)
	if err != nil {
		return err
	}
	f.evals = true
	f.after = append(f.after, func(ctx context.Context, r *run, done, updates int) error {
		err := r.evaluated(ctx, measure, beside, done, updates)
		for range harmlessTries - 1 {
			if done < r.until || r.tainted() != nil || costs(failureOf(err), false) != askAgain {
				break
			}
			if measure, err = r.gradient.evals(ctx, r, done, updates); err == nil {
				err = r.evaluated(ctx, measure, beside, done, updates)
			}
		}
		if isHalted(err) {
			return r.uncounted(done)
		}
		return r.harmless(done, "evaluate", err)
	})
	return nil
}

// heldRows is how many of the held-out rows an evaluation looks at.
func (in *Inputs) heldRows() int {
	if in.Held == nil {
		return 0
	}
	if l := in.Recipe.Eval.Limit; l != nil {
		return min(in.Held.Len(), *l)
	}
	return in.Held.Len()
}

// heldOut reads the examples of the held-out rows from lo up to hi.
func (r *run) heldOut(lo, hi int) ([]loss.Datum, error) {
	var data []loss.Datum
	for i := lo; i < hi; i++ {
		row, err := r.in.Held.Row(i)
		if err != nil {
			return nil, fmt.Errorf("evaluation: %w", drifted(err))
		}
		data = append(data, row.Data...)
	}
	return data, nil
}

// evalLoss is what an evaluation of rows measures.
const evalLoss = "eval/loss"

// trainLoss is what a step of rows measures.
const trainLoss = "train/loss"

// evaluated writes down what an evaluation has measured.
func (r *run) evaluated(ctx context.Context, measure collect, beside func() (map[string]float64, error), done, updates int) error {
	m, err := measure(ctx)
	if err != nil {
		return err
	}
	if beside != nil {
		more, err := beside()
		if err != nil {
			return err
		}
		maps.Copy(m, more)
	}
	return r.judged(m, done, updates)
}

// judged writes an evaluation down, and lets the early stop judge it.
func (r *run) judged(m map[string]float64, done, updates int) error {
	rec := measured{Gen: r.gen.gen, Done: done, Updates: updates, Metrics: finite(m)}
	if err := r.journal.Append(recEval, rec.eval()); err != nil {
		return &journalError{fmt.Errorf("journal the evaluation: %w", err)}
	}
	r.noteEval(rec)
	r.tell(Event{Kind: EvalEvent, Done: done, Metrics: rec.Metrics})
	r.early.judge(rec.Metrics)
	if r.early.stopped() {
		rule := r.in.Recipe.Eval.EarlyStop
		r.tell(Event{Kind: WarnEvent, Done: done, Text: fmt.Sprintf("early stop: no better %s in eval.early_stop.patience, %d", rule.Metric, rule.Patience)})
	}
	return nil
}

// conclude waits for what follows a step, then writes its line of metrics.
func (r *run) conclude(ctx context.Context, f *flight) error {
	done := f.step + 1
	for _, after := range f.after {
		if err := after(ctx, r, done, f.updates); err != nil {
			return err
		}
	}
	if err := r.retain(); err != nil {
		return err
	}
	return r.writeLine(done)
}
