package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"trainer/loss"
)

// attend joins the session of the last life, or of the last stretch of this one, when it lives and holds nothing that is
// in doubt, else begins a new one from the newest checkpoint, and loads the ledger.
func (r *run) attend(ctx, stop context.Context) error {
	if err := r.settleSession(ctx, stop); err != nil {
		return err
	}
	g := r.past.last()
	if g != nil && g.id != "" && !g.closed && !g.tainted() && !g.reference {
		err := r.join(ctx, stop, g)
		var foreign *Foreign
		if err == nil || errors.As(err, &foreign) || ctx.Err() != nil || !doubted(err) {
			return err
		}
		var failed *Failed
		if errors.As(err, &failed) && r.tainted() != nil && costs(coded(failed.Code), true) == giveUp {
			return err
		}
		r.tell(Event{Kind: WarnEvent, Done: r.past.done(), Text: fmt.Sprintf("session %s cannot be continued: %v", g.id, err)})
	}
	if g != nil {
		r.dismiss(ctx, g)
	}
	return r.begin(ctx, stop)
}

// doubt is why a session is not trained on: rolling back to a checkpoint in a new session is always right.
type doubt struct{ error }

func (d *doubt) Unwrap() error { return d.error }

func doubted(err error) bool { var d *doubt; return errors.As(err, &d) }

// dismiss stops a session that is not trained on any more; one that is gone is stopped.
func (r *run) dismiss(ctx context.Context, g *generation) {
	if g.id == "" || g.closed {
		return
	}
	s := r.world.Backend.Join(r.sessionSpec(g), g.id)
	if r.in.Recipe.LoRA != nil { // beside which there is room for others
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, sessionStop)
		defer cancel()
	}
	if err := s.Close(ctx); err == nil {
		g.closed = true
		_ = r.journal.Add(recStopped, stopRecord{aSession, g.id, "not continued"})
	}
}

// join continues the session of an earlier life.
func (r *run) join(ctx, stop context.Context, g *generation) error {
	s := r.world.Backend.Join(r.sessionSpec(g), g.id)
	now, err := r.running(ctx, stop, s)
	if err != nil {
		return err
	}
	r.session, r.gen = s, g
	r.ledger = r.newLedger(s)
	fresh := g.started == nil
	if fresh { // nothing but its first witness can have been sent
		g.started = &sessionRecord{TrainerStep0: now.TrainerStep}
	}
	r.ledger.once = g.started.Keys != keysHonoured
	if err := r.ledger.settle(ctx, g, now, r.digest); err != nil {
		return doubtful(err)
	}
	if fresh {
		r.ledger.once = false
		return r.started(ctx, now)
	}
	return nil
}

// doubtful makes a doubt of an answer that stays what it is however often it is asked for; the rest may pass.
func doubtful(err error) error {
	var failed *Failed
	var late *TimedOut
	var refused *Refused
	final := errors.As(err, &refused) && refused.Status != 401 && refused.Status != 403 && refused.Status != 429
	if final || errors.As(err, &failed) || errors.As(err, &late) || errors.Is(err, ErrGone) {
		return &doubt{err}
	}
	return err
}

// digest gives what the journal keeps of the answer of an operation that an earlier life asked for.
func (r *run) digest(s slot) (func(*Result), error) {
	if s.kind != kindForwardBackward || s.step < r.past.done() {
		return nil, nil
	}
	b, err := r.batches.next(context.Background(), s.step)
	if err != nil || b.Scale != 0 {
		return nil, err
	}
	if s.index >= len(b.Raw) {
		return nil, fmt.Errorf("request %d of step %d is not of this plan", s.index+1, s.step+1)
	}
	return tokenLoss(b.Raw[s.index]), nil
}

// begin opens a session at the newest checkpoint, or at the start when nothing has been trained.
func (r *run) begin(ctx, stop context.Context) error {
	from, err := r.origin(ctx)
	if err != nil {
		return err
	}
	r.tell(Event{Kind: StageEvent, Done: from.Done, Text: opening(from)})
	s, err := r.openAt(ctx, stop, from)
	if err != nil {
		return err
	}
	now, err := r.running(ctx, stop, s)
	if err != nil {
		return err
	}
	r.session, r.gen = s, r.past.last()
	r.ledger = r.newLedger(s)
	return r.started(ctx, now)
}

// because is what a session is opened for.
func (r *run) because() string {
	switch {
	case r.reason != "":
		return r.reason
	case !slices.ContainsFunc(r.past.gens, func(g *generation) bool { return !g.reference }):
		return toStart
	case r.stretches > 1:
		return toRollBack
	}
	return toResume
}

func opening(from origin) string {
	if from.CheckpointID == "" {
		return "opening a session"
	}
	if from.Done == 0 {
		return "opening a session from checkpoint " + from.CheckpointID
	}
	return fmt.Sprintf("opening a session from the checkpoint of step %d", from.Done)
}

// sessionSpec is what the session of g is asked for with.
func (r *run) sessionSpec(g *generation) SessionSpec {
	name := fmt.Sprintf("%s/g%d/a%d %s", r.past.run.RunID, g.gen, g.attempt, r.in.Recipe.RunName())
	if len(name) > 128 {
		name = name[:128]
	}
	return SessionSpec{
		Resource: r.lease.id, DisplayName: name, LoRA: r.in.Recipe.LoRA, LoRASeed: r.in.Seeds.LoRA,
		From: g.from.CheckpointID, LoadOptimizer: r.loadsOptimizer(g.from),
		Patience: time.Minute, OperationTimeout: r.in.Recipe.Limits.OperationTimeout,
	}
}

// loadsOptimizer: a checkpoint of the run's own brings all of its state.
func (r *run) loadsOptimizer(from origin) bool {
	if r.reason == toCompare {
		return false
	}
	if s := r.in.Start; s != nil && from.CheckpointID == s.CheckpointID {
		return s.LoadOptimizer
	}
	return from.CheckpointID != ""
}

// running waits until the session is RUNNING.
func (r *run) running(ctx, stop context.Context, s Session) (SessionState, error) {
	since := time.Now()
	for {
		st, err := s.State(ctx)
		var refused *Refused
		switch {
		case errors.As(err, &refused) && refused.Status == 404:
			return st, &doubt{&Lost{"session", s.ID(), "gone"}}
		case err != nil:
			return st, fmt.Errorf("read session %s: %w", s.ID(), err)
		case st.Status == Running:
			return st, nil
		case st.Status != Creating:
			return st, &doubt{lostSession(s, st)}
		}
		if err := sleep(stop, nextLook(since)); err != nil {
			return st, err
		}
	}
}

// started asks the first witness twice, to learn whether the service honours keys, and writes the session down.
func (r *run) started(ctx context.Context, now SessionState) error {
	rec := sessionRecord{Gen: r.gen.gen, ID: now.ID, Step0: now.Step, TrainerStep0: now.TrainerStep, Applied0: now.Applied, Keys: keysHonoured}
	if err := r.attest(ctx, r.gen.from.Done, r.gen.from.Updates); err != nil {
		return err
	}
	w := r.ledger.witness
	if w.key == "" {
		return &doubt{errors.New("what its first request was is lost")}
	}
	id, err := r.session.Submit(ctx, w.key, w.body)
	if err != nil {
		return fmt.Errorf("ask whether keys are honoured: %w", err)
	}
	if id != w.id {
		rec.Keys = keysIgnored
		r.ledger.once = true
		r.tell(Event{Kind: WarnEvent, Done: r.gen.from.Done, Text: "the service ignores idempotency keys: after an unclear answer the run goes back to a checkpoint"})
	}
	if err := r.journal.Append(recSession, rec); err != nil {
		return err
	}
	r.gen.started = &rec
	return nil
}

// attest submits a witness: a forward pass over two tokens whose key can be asked again later.
func (r *run) attest(ctx context.Context, done, updates int) error {
	data := []loss.Datum{{Input: []int32{0}, Targets: []int32{1}, Weights: []float64{1}}}
	o, err := r.once(ctx, slot{step: done, kind: kindWitness}, Forward{Loss: &loss.CrossEntropy{}, Data: data}, updates)
	if err != nil {
		return err
	}
	known := slices.ContainsFunc(r.gen.witnesses, func(w witnessRecord) bool { return w.Key == o.key })
	if known || o.id == "" { // of an earlier life
		return nil
	}
	return r.journal.Add(recWitness, witnessRecord{r.session.ID(), o.key, o.id})
}

func (r *run) newLedger(s Session) *ledger {
	return &ledger{journal: r.journal, disk: r.disk, session: s, dir: r.inflight(), runID: r.past.run.RunID, serial: r.lookahead() == 0,
		patience: r.in.Recipe.InactiveTimeout / 2, ops: map[slot]*operation{}, staged: map[string]bool{}}
}
