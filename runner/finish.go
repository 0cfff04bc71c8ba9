package runner

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"trainer/internal/journal"
)

// Bounds of the end: it runs also where the run's own context has ended.
const (
	saveTries   = 3
	sessionStop = time.Minute
	releaseMax  = 3 * time.Minute
)

// finish saves what is not saved, where the session can still be trusted: at the end, on a signal, at a limit, at
// a row that has changed.
func (r *run) finish(ctx context.Context, err error) error {
	done, updates := r.doneSteps(), r.past.updates()
	if done == r.past.begun().Done || ctx.Err() != nil || r.ledger.tainted() != nil {
		return err
	}
	if err != nil && !errors.Is(err, ErrInterrupted) && !errors.Is(err, ErrBudget) && !errors.Is(err, ErrDrift) && !errors.Is(err, ErrUnscored) && !r.between(done, err) {
		return err
	}
	if !r.isSaved(done, "training") {
		if serr := r.save(ctx, done, updates, false); serr != nil {
			return errors.Join(err, serr)
		}
	}
	if err == nil && r.in.Recipe.Checkpoint.InferenceAtEnd && !r.isSaved(done, "inference") {
		return r.save(ctx, done, updates, true)
	}
	return err
}

// between says that the next step could not begin, as the service refused it or its loss could not be had: the session holds
// exactly the done ones.
func (r *run) between(done int, err error) bool {
	var refused *Refused
	var unfit *Unfit
	var unsaid *silent
	return (errors.As(err, &refused) || errors.As(err, &unfit) || errors.As(err, &unsaid)) && r.ledger.at(slot{step: done, kind: kindForwardBackward}) == nil && r.ledger.at(slot{step: done, kind: kindCustom}) == nil
}

func (r *run) isSaved(done int, kind string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.past.saves {
		if c.Done == done && c.Kind == kind {
			return true
		}
	}
	return false
}

// save makes a checkpoint and waits for it, with a few tries: what is not saved is lost.
func (r *run) save(ctx context.Context, done, updates int, inference bool) error {
	r.tell(Event{Kind: StageEvent, Done: done, Text: "saving"})
	kind := kindTraining
	if inference {
		kind = kindInference
	}
	var err error
	for try := range saveTries {
		s := slot{step: done, kind: kind, attempt: try}
		if o := r.ledger.at(s); o != nil && o.final() && o.err != nil {
			err = o.err // where an earlier life has spent every try, that is how it ends
			continue
		}
		var o *operation
		if o, err = r.once(ctx, s, Save{Inference: inference}, updates); err == nil {
			err = r.saved(ctx, o, done, updates)
		}
		var failed *Failed
		if err == nil || !errors.As(err, &failed) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("save the weights of step %d: %w", done, err)
	}
	return nil
}

// end releases what bills and writes the last records; its error is a fault of ours behind them. It runs under a time of its own, whatever has
// ended ctx.
func (r *run) end(ctx context.Context, outcome string, err error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseMax)
	defer cancel()
	if r.ledger != nil {
		r.ledger.waits.Wait()
	}
	r.why = outcome
	_ = r.retain() // what is not written down now, the next life writes down
	rec := endRecord{Outcome: outcome, Step: r.doneSteps(), Released: []string{}}
	var failed *Failed
	if errors.As(err, &failed) {
		rec.Code = failed.Code
	}
	released, left := r.release(ctx, outcome)
	rec.Released = append(rec.Released, released...)
	if c, _ := r.past.newest(); max(c.Done, r.past.begun().Done) < rec.Step {
		rec.Unsaved = rec.Step - max(c.Done, r.past.begun().Done)
	}
	// The run has ended either way; without the record it ends as a crash does.
	if jerr := r.journal.Finish(recEnd, rec); jerr == nil {
		r.tidy(outcome)
	}
	_ = journal.Unreserve(r.disk, r.world.Dir) // what stays of it does no harm
	var twins []string
	fault := caught(func() error { twins = r.twins(ctx); return nil })
	r.mu.Lock()
	r.summary.Outcome, r.summary.CostUSD, r.summary.Unreleased, r.summary.Twins = outcome, r.lease.cost(), left, twins
	r.mu.Unlock()
	return fault
}

// farewell tells the outcome.
func (r *run) farewell(outcome string, err error) {
	usd := r.lease.cost()
	if r.lease == nil {
		usd = r.summary.CostUSD
	}
	r.tell(Event{Kind: EndEvent, Done: r.doneSteps(), Text: endText(outcome, err), Metrics: map[string]float64{"cost/usd": usd}})
}

// tidy removes the stored requests that no life after this one sends again: those that have ended or were never sent, and
// behind a complete run all of them, also what an earlier life has left.
func (r *run) tidy(outcome string) {
	if r.ledger != nil {
		r.ledger.unstage()
		done := r.doneSteps()
		if outcome != "failed" { // no step is open, and the evaluation behind the last one is written down
			done++
		}
		r.ledger.drop(r.ledger.ended(done))
	}
	if outcome != "complete" {
		return
	}
	r.clearInflight()
}

// clearInflight removes every stored request: those of sessions that are over are never sent again.
func (r *run) clearInflight() {
	for _, of := range []string{bodyName("*"), outName("*")} {
		left, err := filepath.Glob(filepath.Join(r.inflight(), of))
		if err != nil {
			continue
		}
		for _, name := range left {
			_ = r.disk.Remove(name)
		}
	}
}

// endText is the outcome, with its cause in one line where the outcome alone does not say it.
func endText(outcome string, err error) string {
	if err == nil || err.Error() == outcome {
		return outcome
	}
	cause, _, _ := strings.Cut(err.Error(), "\n")
	cause = strings.TrimSuffix(cause, "; it printed:")
	return outcome + ": " + cause
}

// release stops the sessions and the resources, as keep_resources says; left names what is still there.
func (r *run) release(ctx context.Context, outcome string) (released, left []string) {
	r.closeTeacher(ctx)
	var also *lease
	if r.lease != nil {
		also = r.lease.also
	}
	l, left := r.leased(ctx, r.lease, aResource)
	t, more := r.leased(ctx, also, aTeacher)
	left = append(left, more...)
	if l == nil && t == nil {
		r.lease = nil
		return nil, left
	}
	if r.lease = l; l == nil {
		r.lease = &lease{r: r, what: aResource}
	}
	r.lease.also, r.lease.before = t, r.past.spent(l.held(), t.held())
	r.tell(Event{Kind: StageEvent, Done: r.doneSteps(), Text: "releasing"})
	for _, of := range []*lease{l, t} {
		if of != nil {
			freed, still := of.release(ctx, r.keeps(outcome), outcome)
			released, left = append(released, freed...), append(left, still...)
		}
	}
	return released, left
}

// leased is l, where it holds a resource, or one that an earlier life has left and this one did not come to using; nil for none.
func (r *run) leased(ctx context.Context, l *lease, what string) (of *lease, left []string) {
	if l.held() == "" {
		if l == nil {
			l = &lease{r: r, what: what, price: r.limits.price(what)}
		}
		left = l.rescue(ctx)
	}
	if l.id == "" {
		l = r.heldLease(what)
	}
	return l, left
}

// release stops what is on the resource, and the resource where it is not to stay.
func (l *lease) release(ctx context.Context, keep bool, outcome string) (released, left []string) {
	r := l.r
	if l.what == aResource {
		released, left = r.releaseSessions(ctx, keep || l.attached, keep && outcome != "complete")
	}
	if l.attached || keep {
		current := ""
		if l.what == aResource {
			current = r.past.current()
		}
		r.stopStrays(ctx, l.id, current)
	}
	if l.attached {
		return released, left
	}
	_ = r.journal.Add(recMeter, l.meter())
	if keep {
		text := fmt.Sprintf("resource %s is left running, as keep_resources says, and bills; stop it with `trainer resources stop %s`", l.id, l.id)
		r.tell(Event{Kind: WarnEvent, Done: r.doneSteps(), Text: text})
		return released, append(left, "resource "+l.id)
	}
	if l.stop(ctx) {
		return append(released, l.id), left
	}
	return released, append(left, "resource "+l.id)
}

// releaseSessions stops the session that trains, unless it stays, and where sessions outlive the run, those that it gave up too.
func (r *run) releaseSessions(ctx context.Context, outlive, stays bool) (released, left []string) {
	if outlive {
		for _, g := range r.past.gens[:max(0, len(r.past.gens)-1)] {
			if g.id != "" && !g.closed && !r.stopSession(ctx, g) {
				left = append(left, "session "+g.id)
			}
		}
	}
	if g := r.past.last(); g != nil && g.id != "" && !g.closed && (!stays || g.tainted()) {
		if r.stopSession(ctx, g) {
			released = append(released, g.id)
		} else {
			left = append(left, "session "+g.id)
		}
	}
	return released, left
}

// heldLease is of the resource that an earlier life has left, where this one did not come to using it; nil for none.
func (r *run) heldLease(what string) *lease {
	h := r.past.holding(what)
	if h == nil {
		return nil
	}
	return &lease{r: r, what: what, id: h.id, attached: h.attached, price: h.price, readyAt: h.readyAt.ReadyAt}
}

func (r *run) keeps(outcome string) bool {
	switch r.in.Recipe.KeepResources {
	case "always":
		return true
	case "on_failure":
		return outcome == "failed"
	}
	return false
}

func (r *run) stopSession(ctx context.Context, g *generation) bool {
	s := r.session
	if s == nil || s.ID() != g.id {
		s = r.world.Backend.Join(r.sessionSpec(g), g.id)
	}
	_ = r.journal.Add(recStop, stopRecord{What: aSession, ID: g.id, Why: r.why})
	ctx, cancel := context.WithTimeout(ctx, sessionStop)
	defer cancel()
	if err := caught(func() error { return s.Close(ctx) }); err != nil {
		r.tell(Event{Kind: WarnEvent, Done: r.doneSteps(), Text: fmt.Sprintf("stop session %s: %v", g.id, err)})
		return false
	}
	g.closed = true
	_ = r.journal.Add(recStopped, stopRecord{What: aSession, ID: g.id})
	return true
}

// stopLeft stops the resources of a complete run that it asked to stop and never saw stopped. A run that is complete and
// holds nothing sends nothing.
func (r *run) stopLeft(ctx context.Context) {
	for _, h := range r.past.resources {
		if !h.stopping || h.stopped {
			continue
		}
		res, err := r.halt(ctx, h.id)
		if err != nil {
			r.summary.Unreleased = append(r.summary.Unreleased, fmt.Sprintf("resource %s: %v", h.id, err))
			continue
		}
		_ = r.settleUp(h, res)
		_ = r.journal.Append(recStopped, stopRecord{What: aResource, ID: h.id})
	}
}

// halt stops a resource; where that is refused, by force, since the sessions on it are ours. One that is gone is stopped.
func (r *run) halt(ctx context.Context, id string) (Resource, error) {
	res, err := r.world.Resources.Stop(ctx, id, false)
	var refused *Refused
	var unclear *Unclear
	if errors.As(err, &refused) && refused.Status == 404 {
		return res, nil
	}
	if errors.As(err, &refused) || errors.As(err, &unclear) {
		return r.world.Resources.Stop(ctx, id, true)
	}
	return res, err
}

// caught makes an error of a panic, so that what comes behind it is done.
func caught(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &Panic{Value: p, Stack: debug.Stack()}
		}
	}()
	return f()
}

// stop stops what we made.
func (l *lease) stop(ctx context.Context) bool {
	r, id := l.r, l.id
	_ = r.journal.Add(recStop, stopRecord{What: aResource, ID: id, Why: r.why})
	var res Resource
	err := caught(func() (err error) { res, err = r.halt(ctx, id); return err })
	if err != nil {
		r.tell(Event{Kind: WarnEvent, Done: r.doneSteps(), Text: fmt.Sprintf("stop resource %s: %v; it bills until its inactive_timeout; stop it with `trainer resources stop %s`", id, err, id)})
		return false
	}
	l.note(res)
	_ = r.journal.Add(recMeter, l.meter())
	if h := r.past.resource(id); h != nil {
		h.stopped = true
	}
	_ = r.journal.Add(recStopped, stopRecord{What: aResource, ID: id})
	return true
}
