// Package runner says what happens next: it opens what a recipe names, plans, and drives the training operations of a
// session through a journal from which any later life of the run continues.
//
// It owns order. A run is three stages (stages.go), each in step order: prepare batches ahead, submit operations, and
// collect results. Two small interfaces make the loops: batches (where a step's data come from) and gradient (who
// computes the loss); nothing else in here knows which kind of training runs. Every operation passes one funnel, the
// ledger: intent on disk, effect, result on disk. Resume is therefore no code path of its own: what is in doubt is
// settled from stored bytes, then the same stages start at the first step not done.
//
// It promises that nothing is sent that is not in the journal first, that a step is trained once, and that what bills is
// stopped on every way out that leaves a process.
package runner

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"trainer/internal/diag"
	"trainer/internal/journal"
	"trainer/loss"
)

// World is what a run touches, introduced by cmd/trainer.
type World struct {
	Backend   Backend
	Resources Resources
	Downloads Downloads // nil: no copies are made
	Sinks     []Sink
	Dir       string       // the run folder, made by NewFolder
	Version   string       // of this binary
	Sandbox   bool         // Backend is the sandbox
	Salvage   bool         // go on from what stands before the damage of a journal
	TakeOver  bool         // continue a copy of a run folder, or one from another machine
	Restart   bool         // begin again at the first step where no checkpoint is left
	Resolved  []byte       // the resolved recipe, where this life changes it; nil: it stays
	Disk      journal.Disk // where Dir is written; nil: the file system
	SkipStep  int          // the step, counted from 1, that failed and is to be left out; 0 for none
	Hear      func(func(Event))
	// Alone holds a lock of this machine, while a resource is asked for, until free is called; it waits as long as ctx
	// lasts. nil: there is no other run to wait for.
	// References is the folder that runs share for what a reference says of their rows; empty: each keeps its own.
	References string
	Alone      func(ctx context.Context) (free func(), err error)
	// Remember writes down where the run is, on disk when it returns, before anything is asked for that bills; nil: nowhere.
	Remember func(runID string) error
}

// run is one life of a run.
type run struct {
	in      *Inputs
	plan    *Plan
	world   World
	disk    journal.Disk
	journal *journal.Journal
	past    *past
	tell    func(Event)
	limits  decided
	lease   *lease
	session Session
	gen     *generation
	ledger  *ledger
	anchor  *anchor  // nil: the run compares with no reference beside
	wrote   int      // the last step whose line is in metrics.jsonl; guarded by mu
	teacher *teacher // nil where there is none, or none is open

	batches   batches
	gradient  gradient
	cutsStops atomic.Bool // the model takes no stop texts
	stretches int         // sessions that this life has trained in, or tried to
	leaveOut  *int        // a step that the next session leaves out
	reason    string      // why the next session is opened, where leaveOut is it
	settledAt *int        // steps done when what was in doubt was settled last, nil before

	from     int // first step of this stretch
	until    int // one past the last step of this life
	had      had
	early    *earlyStop
	copies   *copies
	savedAt  time.Time // of the last training checkpoint submitted; submit's alone
	lastStep time.Time // when the last step landed; collect's alone
	speed    speed     // of the newest steps; collect's alone
	begun    time.Time
	why      string // of the stops: the outcome

	fruitless fruitless
	asked     context.Context         // ends when the run is asked to stop
	leave     context.CancelCauseFunc // asks for an orderly end of this stretch, and says why

	folder   sync.Once // of samples, and why there is none
	noFolder error

	mu      sync.Mutex // guards past and summary, once the stages run
	summary Summary
}

// note changes what this life knows of the run as reading the journal again would.
func (r *run) note(change func(*past)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(r.past)
}

// Run trains to the plan's end, or continues the run whose journal is in w.Dir. stop asks for an orderly end: what is
// submitted lands, a checkpoint is made, everything is released. ctx, which stop must derive from, cuts everything but
// the release. The error is nil when the run is complete; errors.Is tells ErrInterrupted, ErrBudget, ErrDrift and
// ErrHopeless. The summary is valid also beside an error.
func Run(ctx, stop context.Context, in *Inputs, p *Plan, w World) (s Summary, err error) {
	if w.Salvage {
		if err := salvage(w.Dir); err != nil {
			return Summary{}, err
		}
	}
	disk := w.Disk
	if disk == nil {
		disk = journal.Files{}
	}
	j, records, err := journal.OpenOn(disk, w.Dir)
	if err != nil {
		return Summary{}, unopened(w.Dir, err)
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	r := &run{in: in, plan: p, world: w, disk: disk, journal: j, begun: time.Now()}
	if r.past, err = recall(records); err != nil {
		return Summary{}, err
	}
	if err := r.admit(); err != nil {
		return Summary{}, err
	}
	if (in.samples() || in.examines()) && !in.distils() && in.Graders.Set == nil {
		return Summary{}, errors.New("the rewards of the recipe are not open")
	}
	if l, ok := in.Recipe.Loss.Params.(*loss.Command); ok && l.Call == nil {
		return Summary{}, errors.New("the loss of the recipe is not open")
	}
	if in.samples() && in.Recipe.Rollout.Env != nil && in.Env == nil {
		return Summary{}, errors.New("the environment of the recipe is not open")
	}
	r.summary = r.past.summary(w.Dir, len(p.Rates))
	if r.past.complete(len(p.Rates)) {
		return r.idle(ctx, stop)
	}
	return r.live(ctx, stop)
}

// idle is the life of a run that is complete: it sends nothing, unless it was seen to leave something running, or a copy
// of its checkpoints is not whole.
func (r *run) idle(ctx, stop context.Context) (Summary, error) {
	r.summary.Idle, r.why, r.tell = true, "complete", func(Event) {}
	if _, err := r.past.project(r.disk, r.world.Dir, func(int) bool { return false }); err != nil {
		return r.summary, err
	}
	r.stopLeft(ctx)
	r.summary.CostUSD = r.past.spent()
	r.clearInflight() // an earlier life may have ended between its last record and this
	_ = journal.Unreserve(r.disk, r.world.Dir)
	if r.world.Downloads == nil || r.in.Recipe.Checkpoint.Download == downloadNone || len(r.wanted(true)) == 0 {
		return r.summary, nil
	}
	told, hush, err := tellAll(ctx, r.info(), r.world.Sinks)
	if err != nil {
		return r.summary, err
	}
	r.tell, r.summary.Idle = told, false
	r.copies = newCopies(stop, r)
	err = r.copies.finish("complete")
	r.farewell("complete", err)
	r.summary.Untold = hush(ctx)
	return r.summary, err
}

// admit refuses a folder that this run may not continue.
func (r *run) admit() error {
	if r.past.run == nil {
		return nil
	}
	if f := r.past.run.Format; f > journalFormat {
		return fmt.Errorf("the journal of %s has format %d, this binary knows up to %d; use a newer one", r.world.Dir, f, journalFormat)
	}
	if err := r.past.elsewhere(r.world.Dir); err != nil && !r.world.TakeOver {
		return err
	}
	if done, steps := r.past.done(), len(r.plan.Rates); steps < done {
		return diag.List{{Pos: diag.Pos{File: r.world.Dir}, Msg: fmt.Sprintf("%d steps are done, and the plan has %d: give it as many at least, with --set train.num_steps or train.epochs; `trainer resume %s --from N` forks at an earlier one", done, steps, r.world.Dir)}}
	}
	err := r.past.drift(r.world.Dir, r.plan.Lock)
	h := r.past.holding(aResource)
	if h == nil {
		h = r.past.holding(aTeacher)
	}
	if h != nil && errors.Is(err, ErrDrift) {
		return fmt.Errorf("%w\nthe run did not see its resource %s end: at $%.2f an hour it may bill until its inactive_timeout; stop it with `trainer resources stop %s`", err, h.id, h.price, h.id)
	}
	return err
}

// live is a life from its first record to its end, with everything released behind it.
func (r *run) live(ctx, stop context.Context) (Summary, error) {
	r.tell = func(Event) {}
	if err := r.open(); err != nil {
		if r.past.run != nil { // an earlier life may have left what bills
			r.end(ctx, outcomeOf(err), err)
		}
		return r.summary, err
	}
	told, hush, err := tellAll(ctx, r.info(), r.world.Sinks)
	if err != nil {
		r.end(ctx, outcomeOf(err), err)
		return r.summary, err
	}
	r.tell = told
	if r.world.Hear != nil {
		r.world.Hear(told)
	}
	for _, text := range slices.Concat(r.in.stoodIn(), r.in.LeftOut()) {
		told(Event{Kind: WarnEvent, Done: r.past.done(), Text: text})
	}
	r.copies = newCopies(stop, r)
	err = r.guarded(ctx, stop)
	outcome := outcomeOf(err)
	if fault := r.end(ctx, outcome, err); fault != nil {
		err = errors.Join(err, fault)
	}
	if cerr := r.copies.finish(outcome); cerr != nil {
		err = errors.Join(err, cerr)
	}
	r.farewell(outcome, err)
	r.mu.Lock()
	s := r.summary
	r.mu.Unlock()
	s.Untold = hush(ctx)
	return s, err
}

// guarded turns a panic into an error, so that the release behind it still happens.
func (r *run) guarded(ctx, stop context.Context) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &Panic{Value: p, Stack: debug.Stack()}
		}
	}()
	for {
		if err := r.stretch(ctx, stop); err == nil {
			return nil
		} else if err = r.goOn(ctx, stop, err); err != nil {
			return err
		}
	}
}

// stretch is a life in one session: the whole of it, unless the session is given up.
func (r *run) stretch(ctx, stop context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the waits of the ledger
	r.session, r.ledger, r.gen = nil, nil, nil
	r.stretches++
	defer r.closeTeacher(ctx)
	if err := r.acquire(ctx, stop); err != nil || r.session == nil {
		return err // without a session nothing is left to do
	}
	watched, halt := context.WithCancelCause(stop)
	defer halt(nil)
	r.asked, r.leave = watched, halt
	closing := r.lease.watch(ctx, halt)
	defer closing()
	if err := r.gradient.begin(ctx, watched, r); err != nil {
		return r.finish(ctx, err)
	}
	defer func() { r.anchor.close(ctx) }()
	if !r.plan.Evaluates { // which measures without a reference
		if err := r.hold(ctx, watched); err != nil {
			return r.finish(ctx, err)
		}
	}
	doing := "training"
	if r.plan.Evaluates {
		doing = "evaluating"
	}
	r.tell(Event{Kind: StageEvent, Done: r.from, Text: doing})
	quiet := context.AfterFunc(watched, func() { r.tellStop(context.Cause(watched)) })
	err := r.train(ctx, watched)
	quiet()
	if err == nil && r.doneSteps() < len(r.plan.Rates) && !r.early.stopped() {
		err = fmt.Errorf("%w: limits.max_steps %d of this life", ErrBudget, *r.in.Recipe.Limits.MaxSteps)
	}
	if err == nil {
		r.tellFruitless()
	}
	return r.finish(ctx, err)
}

// tellStop answers who asked for the end at once: what is submitted may take long to land.
func (r *run) tellStop(why error) {
	text := fmt.Sprintf("%v: what is submitted still lands, then all is saved and released", why)
	if errors.Is(why, ErrInterrupted) {
		text += "; a second Ctrl-C releases at once"
	}
	r.tell(Event{Kind: WarnEvent, Done: r.doneSteps(), Text: text})
}

// Panic is a fault of ours, caught so that what bills is released.
type Panic struct {
	Value any
	Stack []byte
}

func (p *Panic) Error() string { return fmt.Sprintf("internal error: %v\n%s", p.Value, p.Stack) }

// outcomeOf names how a life ended, as the journal and the report spell it.
func outcomeOf(err error) string {
	switch {
	case err == nil:
		return "complete"
	case errors.Is(err, ErrInterrupted):
		return "interrupted"
	case errors.Is(err, ErrBudget):
		return "budget"
	}
	return "failed"
}
