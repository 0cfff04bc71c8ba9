package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"trainer/internal/journal"
)

// settle loads what the journal knows of the session's operations into the ledger, and settles those that have an intent
// but no result: an answer is fetched, an unanswered request is sent again from its stored bytes under its own key, an
// optimiser step that the session's counter shows as applied is taken as done. What can't be settled without doubt is an
// error: the session is then not to be trained on.
//
// digest gives what makes of an answer that which the journal keeps of it, as item.digest; it may return nil.
func (l *ledger) settle(ctx context.Context, g *generation, now SessionState, digest func(slot) (func(*Result), error)) error {
	at := g.from.Updates + int(now.TrainerStep-g.started.TrainerStep0)
	if err := counters(g, at); err != nil {
		return err
	}
	l.recallWitness(g)
	for _, in := range g.intents {
		s := slot{in.Step, in.Kind, in.Index, in.Attempt}
		l.pos = in.Pos + 1
		if res, ok := g.results[in.Key]; ok {
			l.answered(s, in, res, g.acks[in.Key])
			continue
		}
		d, err := digest(s)
		if err == nil {
			err = l.resolve(ctx, g, pending{s, in, d}, at)
		}
		if err != nil {
			return fmt.Errorf("settle %v: %w", s, err)
		}
	}
	return nil
}

// counters compares the session's own count of optimiser steps with the journal's: fewer than have answered means that
// work was lost, more than were ever sent means that someone else trains this session.
func counters(g *generation, at int) error {
	answered, sent := g.from.Updates, g.from.Updates
	for _, in := range g.intents {
		if in.Kind != kindOptimStep {
			continue
		}
		sent = max(sent, in.Expect)
		if res, ok := g.results[in.Key]; ok && res.Status == "COMPLETED" {
			answered = max(answered, in.Expect)
		}
	}
	switch {
	case at < answered:
		return unsure("session %s has %d optimiser steps, the journal has seen %d: the service lost work", g.id, at, answered)
	case at > sent:
		return &Foreign{fmt.Sprintf("session %s has %d optimiser steps, this run has sent %d: another writer trains it", g.id, at, sent)}
	}
	return nil
}

// Foreign says that someone else works on what is ours; nothing is repaired then.
type Foreign struct{ Text string }

func (f *Foreign) Error() string { return f.Text }

// answered puts a journaled result into the ledger; id is empty where no answer gave it.
func (l *ledger) answered(s slot, in intentRecord, res resultRecord, id string) {
	o := &operation{slot: s, key: in.Key, id: id, expect: in.Expect, done: make(chan struct{})}
	o.res = Result{Metrics: res.Metrics, Step: res.Step, Version: res.Version, Checkpoint: res.Checkpoint, TokenLoss: res.TokenLoss}
	if res.Loss != nil {
		o.res.Loss = *res.Loss
	}
	o.out, o.body = res.Out, in.Body
	if s.samples() && res.Out != "" {
		o.res.Samples, o.err = l.keptSamples(in.Key, res.Out)
	} else if res.Out != "" && l.outLost(o) {
		o.err = ErrGone // of a step that is done nobody asks for it again
	}
	if res.Status != "COMPLETED" {
		o.err = &Failed{Op: opOf(s.kind), Code: res.Code, Message: "as the journal says"}
	}
	close(o.done)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ops[s] = o
	l.bodies = append(l.bodies, o)
}

func opOf(kind string) OpName {
	switch kind {
	case kindOptimStep:
		return OpOptimStep
	case kindCustom:
		return OpCustom
	case kindSync:
		return OpWeightsSync
	case kindTraining:
		return OpTrainingCheckpoint
	case kindInference:
		return OpInferenceCheckpoint
	case kindSample, kindEvalSample:
		return OpSample
	}
	return OpForwardBackward
}

// pending is an operation that has an intent and no result.
type pending struct {
	slot   slot
	intent intentRecord
	digest func(*Result)
}

// resolve settles one operation without a result. at is the session's count of updates.
func (l *ledger) resolve(ctx context.Context, g *generation, p pending, at int) error {
	s, in := p.slot, p.intent
	if s.kind == kindOptimStep && at >= in.Expect {
		return l.infer(s, in)
	}
	if id, ok := g.acks[in.Key]; ok {
		return l.fetch(ctx, p, id)
	}
	if s.mutating() {
		if g.started.Keys != keysHonoured {
			return unsure("the service ignores idempotency keys: what was sent may or may not have run, and is not sent again")
		}
		if err := l.vouch(ctx); err != nil {
			return err
		}
	}
	body, err := os.ReadFile(l.path(in.Key))
	if err == nil && hashOf(body) != in.Body {
		err = errors.New("differs from its hash in the journal")
	}
	if err != nil {
		if s.mutating() {
			return unsure("the stored request: %w", err)
		}
		l.close(s, in.Key, ErrGone) // harmless: whoever needs it asks under the next attempt
		return nil
	}
	id, err := l.post(ctx, s, in.Key, Prepared{Op: opOf(s.kind), Body: body, PayloadID: in.PayloadID})
	if err != nil {
		return err
	}
	if err := l.journal.Add(recAck, ackRecord{in.Key, id}); err != nil {
		return err
	}
	if s.kind == kindWitness {
		l.testify(stored{in.Key, id, Prepared{Op: opOf(s.kind), Body: body}})
	}
	return l.fetch(ctx, p, id)
}

// close puts an operation into the ledger that will never have a result.
func (l *ledger) close(s slot, key string, err error) {
	o := &operation{slot: s, key: key, op: opOf(s.kind), done: make(chan struct{}), err: err}
	close(o.done)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ops[s] = o
}

// unsure is a doubt of ours: sending again could train a batch twice.
func unsure(format string, a ...any) error { return &doubt{fmt.Errorf(format, a...)} }

// infer takes an optimiser step as applied, since the session's counter shows it.
func (l *ledger) infer(s slot, in intentRecord) error {
	res := resultRecord{Key: in.Key, Status: "COMPLETED", How: "inferred"}
	if err := l.journal.Append(recResult, res); err != nil {
		return err
	}
	l.answered(s, in, res, "")
	return nil
}

// fetch follows an operation that the service has accepted.
func (l *ledger) fetch(ctx context.Context, p pending, id string) error {
	s := p.slot
	o := &operation{slot: s, key: p.intent.Key, op: opOf(s.kind), id: id, expect: p.intent.Expect, digest: p.digest, body: p.intent.Body, done: make(chan struct{})}
	l.follow(ctx, o)
	_, err := o.wait(ctx)
	var failed *Failed
	if errors.As(err, &failed) || errors.Is(err, ErrGone) {
		if s.mutating() {
			return err
		}
		return nil // a harmless one: its error is in the ledger for who asks
	}
	return err
}

// recallWitness makes the newest stored witness the one that vouch asks.
func (l *ledger) recallWitness(g *generation) {
	for i := len(g.intents) - 1; i >= 0; i-- {
		in := g.intents[i]
		id, acked := g.acks[in.Key]
		if in.Kind != kindWitness || !acked {
			continue
		}
		body, err := os.ReadFile(l.path(in.Key))
		if err == nil && hashOf(body) == in.Body {
			l.testify(stored{in.Key, id, Prepared{Op: OpForwardBackward, Body: body}})
			return
		}
	}
}

// ended are the operations that have a result in the journal now; drop removes their bodies once that is on disk. The
// newest witness keeps its own, since it may be asked again, and so does what was scored for more than done steps, since
// it may be read again.
func (l *ledger) ended(done int) []*operation {
	l.mu.Lock()
	defer l.mu.Unlock()
	var ops []*operation
	for _, o := range l.bodies {
		if o.final() && o.key != l.witness.key && (o.out == "" || o.slot.step < done) {
			ops = append(ops, o)
		}
	}
	return ops
}

func (l *ledger) drop(ops []*operation) {
	dropped := make(map[*operation]bool, len(ops))
	for _, o := range ops {
		dropped[o] = true
		_ = l.disk.Remove(l.path(o.key)) // a body left behind does no harm
		if o.out != "" {
			_ = l.disk.Remove(l.outPath(o.key))
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bodies = slices.DeleteFunc(l.bodies, func(o *operation) bool { return dropped[o] })
}

var _ recorder = (*journal.Journal)(nil)
