package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"sync"
	"time"
)

// ready is a step whose requests are encoded, uploaded and stored.
type ready struct {
	step  int
	batch Batch
	items []item
	optim item
	why   string // the step is left out; empty where it is trained
}

// flight is a step whose operations are submitted, and what follows it.
type flight struct {
	step    int
	updates int
	batch   Batch
	why     string  // the step is left out
	collect collect // nil where nothing is trained
	optim   *operation
	after   []follower
	evals   bool // an evaluation is among them
	landed  chan struct{}
}

// stages are the goroutines of a life: the first error ends them all, a panic is an error.
type stages struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup
}

func (s *stages) start(f func() error) {
	s.wg.Go(func() {
		defer func() {
			if p := recover(); p != nil {
				s.cancel(&Panic{Value: p, Stack: debug.Stack()})
			}
		}()
		if err := f(); err != nil {
			s.cancel(err)
		}
	})
}

var errDone = errors.New("done")

// wait returns the first error once every stage has ended.
func (s *stages) wait() error {
	s.wg.Wait()
	s.cancel(errDone)
	if err := context.Cause(s.ctx); !errors.Is(err, errDone) {
		return err
	}
	return nil
}

// train runs the three stages, each in step order: prepare ahead, submit at most 1 + lookahead steps that have not
// landed, collect. When stop ends, what is submitted still lands.
func (r *run) train(ctx, stop context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	s := &stages{ctx: ctx, cancel: cancel}
	r.ledger.whenTainted(r.early.halt) // what was sent before still lands
	unwatch := context.AfterFunc(stop, r.early.halt)
	defer unwatch()

	var unready, broke error // what ended prepare, submit: the steps before it still land
	ahead := 1 + r.lookahead()
	prepared := make(chan ready, ahead)
	flights := make(chan *flight, ahead+1)
	slots := make(chan struct{}, ahead)
	if f, ok := r.batches.(*fromRollouts); ok {
		f.begin()
		s.start(func() error { f.sample(ctx); return nil })
	}
	unwanted := make(chan struct{}) // closed when no step is submitted any more
	s.start(func() error {
		defer close(prepared)
		unready = r.prepare(ctx, prepared, unwanted)
		return nil
	})
	s.start(func() error {
		defer close(flights)
		defer close(unwanted)
		broke = r.submit(ctx, prepared, flights, slots)
		r.early.halt()
		return nil
	})
	s.start(func() error { return r.collect(ctx, flights, slots) })
	err := cmp.Or(s.wait(), broke, unready, r.ledger.tainted())
	r.ledger.waits.Wait()
	if why := context.Cause(stop); err == nil && (r.doneSteps() < r.until && !r.early.stopped() || errors.Is(why, ErrUnscored)) {
		err = why
	}
	return err
}

// prepare makes batches and their requests, as far ahead as the channel allows.
func (r *run) prepare(ctx context.Context, out chan<- ready, unwanted <-chan struct{}) error {
	for step := r.from; step < r.until; step++ {
		p, err := r.ready(ctx, step)
		if errors.Is(err, errHalted) {
			return nil
		}
		if err != nil {
			return err
		}
		select {
		case out <- p:
		case <-r.halted(step):
			return nil
		case <-unwanted:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
	return nil
}

// ready makes the requests of a step, with their bodies on disk, so that nothing is left to do when its turn comes but to
// write the intents and to send.
func (r *run) ready(ctx context.Context, step int) (ready, error) {
	b, err := r.batches.next(ctx, step)
	if err != nil {
		return ready{}, err
	}
	if why, out := r.past.skip[step]; out {
		return ready{step: step, batch: b, why: why}, nil
	}
	if b.Empty != "" {
		return ready{step: step, batch: b, why: b.Empty}, nil
	}
	items, err := r.gradient.prepare(ctx, r.session, step, b)
	if err != nil {
		return ready{}, fmt.Errorf("prepare step %d: %w", step+1, err)
	}
	body, err := r.session.Prepare(ctx, Optim{Optimizer: r.in.Recipe.Optimizer, Rate: r.plan.Rates[step]})
	if err != nil {
		return ready{}, fmt.Errorf("prepare the optimizer step %d: %w", step+1, err)
	}
	optim := item{slot: slot{step: step, kind: kindOptimStep}, body: body}
	return ready{step: step, batch: b, items: items, optim: optim}, r.ledger.stage(append(slices.Clone(items), optim))
}

// submit puts steps in flight in order, and behind each what is due after it. The first flight carries no step: it is
// what is due before the first one.
func (r *run) submit(ctx context.Context, in <-chan ready, out chan<- *flight, slots chan<- struct{}) error {
	last := &flight{step: r.from - 1, updates: r.past.updates(), landed: make(chan struct{})}
	if err := r.follow(ctx, last, r.from); err != nil {
		return err
	}
	if !pass(ctx, out, last) {
		return nil
	}
	for p := range in {
		if r.early.decides(last) && !await(ctx, last.landed) || r.halts(p.step) || !r.enter(p.step) {
			return nil
		}
		select {
		case slots <- struct{}{}:
		case <-r.halted(p.step):
			return nil
		case <-ctx.Done():
			return nil
		}
		f := &flight{step: p.step, updates: last.updates, batch: p.batch, why: p.why, landed: make(chan struct{})}
		if err := r.launch(ctx, f, p); err != nil {
			if f.optim != nil { // the step itself is under way
				pass(ctx, out, f)
			} else if isHalted(err) { // its loss is not waited for, and nothing of it is trained
				return nil
			}
			return err
		}
		if !pass(ctx, out, f) {
			return nil
		}
		last = f
	}
	return nil
}

func pass(ctx context.Context, out chan<- *flight, f *flight) bool {
	select {
	case out <- f:
		return true
	case <-ctx.Done():
		return false
	}
}

func await(ctx context.Context, landed <-chan struct{}) bool {
	select {
	case <-landed:
		return true
	case <-ctx.Done():
		return false
	}
}

// launch submits a step's operations and what follows it, in the order in which the service must apply them.
func (r *run) launch(ctx context.Context, f *flight, p ready) (err error) {
	if f.why != "" {
		return r.follow(ctx, f, f.step+1)
	}
	f.updates++
	for i := range p.items {
		p.items[i].expect = f.updates - 1
	}
	p.optim.expect = f.updates
	if f.collect, f.optim, err = r.gradient.submit(ctx, r.ledger, f.batch, p.items, p.optim); err != nil {
		if f.why, err = r.without(err); err != nil {
			return err
		}
		f.updates--
	}
	return r.follow(ctx, f, f.step+1)
}

// collect waits for the steps in order, writes each down, and tells. A step gives its slot back as soon as its operations
// have ended: what is written and told then is done while the next ones run.
func (r *run) collect(ctx context.Context, in <-chan *flight, slots <-chan struct{}) error {
	r.lastStep = time.Now()
	for f := range in {
		if f.collect != nil || f.why != "" {
			if err := r.land(ctx, f, slots); err != nil {
				return err
			}
		}
		if err := r.conclude(ctx, f); err != nil {
			return err
		}
		close(f.landed)
	}
	return nil
}

// land makes a step of what its operations gave.
func (r *run) land(ctx context.Context, f *flight, slots <-chan struct{}) error {
	m, err := r.trained(ctx, f)
	if err != nil {
		return err
	}
	<-slots
	m["learning_rate"] = r.plan.Rates[f.step]
	r.clock(m)
	rec := measured{Gen: r.gen.gen, Step: f.step, Done: f.step + 1, Updates: f.updates, Why: f.why, Rows: f.batch.Hash, Metrics: finite(m)}
	ended := r.ledger.ended(f.step + 1)
	if err := r.journal.Append(recStep, rec.step()); err != nil {
		return fmt.Errorf("journal step %d: %w", f.step+1, err)
	}
	r.ledger.drop(ended)
	r.stepped(rec)
	text := ""
	if f.why != "" {
		text = "left out: " + f.why
		r.tell(Event{Kind: WarnEvent, Done: rec.Done, Text: fmt.Sprintf("step %d is %s", rec.Done, text)})
	}
	r.tell(Event{Kind: StepEvent, Done: rec.Done, Text: text, Metrics: rec.Metrics})
	r.sow(f)
	return nil
}

// trained waits for the operations of a step and returns its metrics. One that is left out has its place in the data, and
// says that it trained nothing.
func (r *run) trained(ctx context.Context, f *flight) (map[string]float64, error) {
	if f.why != "" {
		m := map[string]float64{"epoch": f.batch.Metrics["epoch"], "skipped": 1}
		if f.batch.Empty != "" {
			maps.Copy(m, f.batch.Metrics)
		}
		return m, nil
	}
	m, err := f.collect(ctx)
	if err != nil {
		return nil, err
	}
	res, err := f.optim.wait(ctx)
	if err != nil {
		return nil, err
	}
	if err := r.count(f, res.Step); err != nil {
		return nil, err
	}
	maps.Copy(m, f.batch.Metrics)
	return m, nil
}

// count holds the service's step counter to ours: the first answer fixes the difference.
func (r *run) count(f *flight, step int64) error {
	if step == 0 { // inferred: the counter itself was the proof
		return nil
	}
	base := step - int64(f.updates)
	if r.gen.base == nil {
		r.gen.base = &base
	}
	if *r.gen.base != base {
		err := &Disorder{fmt.Sprintf("step %d: the service counts %d optimiser steps, expected %d", f.step+1, step, *r.gen.base+int64(f.updates))}
		r.ledger.taint(err)
		return err
	}
	return nil
}

// clock adds what the step took, and what it has cost so far.
func (r *run) clock(m map[string]float64) {
	now := time.Now()
	took := now.Sub(r.lastStep).Seconds()
	r.lastStep = now
	m["time/step_seconds"] = took
	m["time/elapsed_seconds"] = now.Sub(r.begun).Seconds()
	if perSecond, ok := r.speed.add(m["tokens"], took); ok && m["tokens"] > 0 {
		m["time/tokens_per_second"] = perSecond
	}
	m["cost/usd"] = r.lease.cost()
	left := len(r.plan.Rates) - r.doneSteps() - 1 // behind this step, which is not yet among the done ones
	m["cost/forecast_usd"] = m["cost/usd"] + float64(max(0, left))*r.speed.perStep()/3600*r.lease.rate()
}
