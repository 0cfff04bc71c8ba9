package runner

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"

	"trainer/internal/rollout"
	"trainer/loss"
)

// errHalted ends the wait for samples that nobody trains on any more: the run is asked to stop.
var errHalted = errors.New("halted")

// fromRollouts gives the batches of sampled groups. A rollout batch feeds some steps; its samples, rewards and advantages are
// on disk before the first of them, and what is on disk is what every later life trains on. Safe for concurrent use.
//
// Which weights sample a batch is a function of its number and never of the clock: batch b is sampled under the weights of
// b - lag batches, and those are not replaced before the samples of every batch that is due under them are stored.
type fromRollouts struct {
	r     *run
	rows  *fromRows // the order of prompts: a batch of them is one of its steps
	extra *fromRows // the order of those that dynamic sampling draws in addition
	per   int       // steps that a batch feeds
	lag   int

	mu      sync.Mutex
	news    chan struct{} // closed, and made anew, when something below changes
	live    *served       // nil: not published in this session yet
	stored  map[int]*drawn
	open    int  // the newest batch of which a step was submitted; -1: none
	running bool // batches are being sampled
	left    bool // the run is asked to stop, and batches behind open are not sampled any more
	over    bool // nothing is sampled any more
	err     error
}

// served is what the generators serve: the weights of so many batches.
type served struct {
	batches int
	updates int   // optimiser steps of the lineage in them
	version int64 // as the service counts
}

// drawn is a rollout batch with all that is learnt from.
type drawn struct {
	groups  []rollout.Group
	places  []string // of the prompts, by group
	metrics map[string]float64
}

func newRollouts(r *run, rows *fromRows) *fromRollouts {
	extra := &fromRows{set: rows.set, seed: seed("draw", r.in.Recipe.Seed), batch: rows.batch, perEpoch: 1}
	return &fromRollouts{r: r, rows: rows, extra: extra, per: r.plan.perBatch(), lag: r.in.Recipe.Rollout.MaxPolicyLag,
		news: make(chan struct{}), stored: map[int]*drawn{}, open: -1}
}

// samples says that the loop draws what it trains on.
func (in *Inputs) samples() bool { return in.Recipe.Rollout != nil }

// examines says that the loop trains on rows, and that its evaluations also sample.
func (in *Inputs) examines() bool { return !in.samples() && in.Recipe.Eval.SamplingParams != nil }

// distils says that what is drawn is learnt from by what a teacher makes of it, and has no rewards.
func (in *Inputs) distils() bool { return in.Recipe.Loop() == loss.Distillation }

// figures are the metrics of a rollout batch.
func (in *Inputs) figures(groups []rollout.Group) map[string]float64 {
	if in.distils() {
		return rollout.Taught(groups)
	}
	return rollout.Metrics(groups)
}

// change makes a change that others wait for.
func (f *fromRollouts) change(how func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	how()
	close(f.news)
	f.news = make(chan struct{})
}

// next implements batches.
func (f *fromRollouts) next(ctx context.Context, step int) (Batch, error) {
	d, err := f.batch(ctx, step/f.per)
	if err != nil {
		return Batch{}, err
	}
	b, err := f.assemble(d, step)
	if err != nil {
		return Batch{}, fmt.Errorf("step %d: %w", step+1, err)
	}
	return b, nil
}

// batch waits for a rollout batch that is being sampled, or reads one that is stored.
func (f *fromRollouts) batch(ctx context.Context, b int) (*drawn, error) {
	for {
		f.mu.Lock()
		d, news := f.stored[b], f.news
		err := f.err
		switch {
		case err != nil:
		case f.left:
			err = errHalted
		case f.over || !f.running:
			err = fmt.Errorf("the samples of rollout batch %d are not stored", b+1)
		}
		f.mu.Unlock()
		if d != nil {
			return d, nil
		}
		if rec, ok := f.r.rolled(b); ok {
			if d, err = f.load(rec); err == nil {
				f.change(func() { f.stored[b] = d })
			}
			return d, err
		}
		if err != nil {
			return nil, err
		}
		select {
		case <-news:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// rolled is the record of a batch that is stored.
func (r *run) rolled(b int) (rolloutRecord, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	rec, ok := r.past.rollouts[b]
	return rec, ok
}

// assemble makes the batch of a step out of its share of the rollout batch, reduced over the whole of the step.
func (f *fromRollouts) assemble(d *drawn, step int) (Batch, error) {
	ro := f.r.in.Recipe.Rollout
	n := step % f.per % ro.Minibatches
	data, places := f.share(d, n)
	if l := f.r.in.softly(); l != nil {
		return f.assembleSoftly(d, data, places, l, step)
	}
	if err := f.anchorTo(data); err != nil {
		return Batch{}, err
	}
	b := Batch{Rows: places, Hash: hashData(data), Scale: 1, Sum: 1, Metrics: map[string]float64{}}
	for k, v := range d.metrics {
		b.Metrics[k] = v
	}
	b.Metrics["epoch"] = float64(step+1) / float64(f.per*f.rows.perEpoch)
	tokens, trained := 0, 0
	for _, x := range data {
		tokens += len(x.Input) + 1
		for _, w := range x.Weights {
			trained += int(w)
		}
	}
	b.Metrics["tokens"], b.Metrics["trained_tokens"] = float64(tokens), float64(trained)
	if len(data) == 0 {
		if b.Empty = nothing(d.groups, ro.Minibatches); f.r.in.distils() {
			b.Empty = "nothing to train on: every completion was cut, and rollout.truncated masks those"
		} else {
			b.Unscored = unscored(d.groups)
		}
		return b, nil
	}
	if f.r.in.distils() { // reduced by the loss, which is computed here
		parts := f.rows.parts(len(data), 1)
		for p := range parts {
			b.Parts = append(b.Parts, data[p*len(data)/parts:(p+1)*len(data)/parts])
		}
		return b, nil
	}
	l := f.r.in.Recipe.Loss
	requests, err := rollout.Split(data, l.Params, l.Reduction, f.rows.parts(len(data), 1))
	if err != nil {
		return Batch{}, err
	}
	for _, q := range requests {
		b.Parts, b.Losses = append(b.Parts, q.Data), append(b.Losses, q.Loss)
	}
	return b, nil
}

// assembleSoftly is assemble where the teacher's likeliest tokens are learnt.
func (f *fromRollouts) assembleSoftly(d *drawn, data []loss.Datum, places []string, l *loss.ForwardKL, step int) (Batch, error) {
	b := Batch{Hash: hashData(data), Metrics: map[string]float64{"tokens": 0, "trained_tokens": 0}}
	if data = l.Skip(data); len(data) == 0 {
		b.Empty = "nothing to train on: every completion was cut, and rollout.truncated masks those, or has no token behind loss.params.skip_first"
	} else {
		var err error
		if b, err = assembleCopies(data, f.r.in.Recipe.Loss.Reduction, l, f.rows.parts); err != nil {
			return Batch{}, err
		}
	}
	b.Rows = places
	maps.Copy(b.Metrics, d.metrics)
	b.Metrics["epoch"] = float64(step+1) / float64(f.per*f.rows.perEpoch)
	return b, nil
}

// anchorTo puts the KL to the reference into the advantages of a step, where the recipe has it in the reward; the loss is
// given the reference only where it asks for it.
func (f *fromRollouts) anchorTo(data []loss.Datum) error {
	r := f.r.in.Recipe
	if a := r.Advantage; a != nil && a.KLCoef > 0 && len(data) > 0 {
		advantages, _, err := loss.AddKL(data, a.KLCoef, 0)
		if err != nil {
			return err
		}
		for i := range data {
			data[i].Advantages = advantages[i]
		}
	}
	for i := range data {
		if !inLoss(r.Loss.Params) {
			data[i].RefLogprobs = nil
		}
	}
	return nil
}

// share is what minibatch n trains, and where the prompt of each sequence stands.
func (f *fromRollouts) share(d *drawn, n int) (data []loss.Datum, places []string) {
	at := map[int]string{}
	for i, g := range d.groups {
		at[g.Row] = d.places[i]
	}
	for _, g := range rollout.Minibatch(d.groups, n, f.r.in.Recipe.Rollout.Minibatches) {
		step := rollout.Step([]rollout.Group{g})
		data = append(data, step...)
		for range step {
			places = append(places, at[g.Row])
		}
	}
	return data, places
}

// nothing says why a step of a batch has nothing to train on.
func nothing(groups []rollout.Group, minibatches int) string {
	counts := map[rollout.Drop]int{}
	for _, g := range groups {
		counts[g.Dropped]++
	}
	text := fmt.Sprintf("nothing to train on: of %d groups %d have equal rewards", len(groups), counts[rollout.ZeroVariance])
	if n := counts[rollout.TooFew]; n > 0 {
		text += fmt.Sprintf(", %d have too few rewards", n)
	}
	if n := counts[rollout.Unsampled]; n > 0 {
		text += fmt.Sprintf(", %d were not sampled", n)
	}
	if n := counts[rollout.Kept]; n > 0 {
		text += fmt.Sprintf(", and %d are for %d minibatches", n, minibatches)
	}
	return text
}

// begin takes from the ledger what an earlier life has published in this session, before anything is sampled.
func (f *fromRollouts) begin() {
	f.r.ledger.forget(func(s slot) bool {
		_, ok := f.r.rolled(s.step / f.per)
		return s.kind == kindSample && ok
	})
	var live *served
	for done := f.r.from / f.per * f.per; done >= f.r.gen.from.Done && live == nil; done -= f.per {
		if o := f.r.ledger.done(done, kindSync); o != nil {
			live = &served{done / f.per, o.expect, o.res.Version}
		}
	}
	f.change(func() {
		f.running, f.live = true, live
		f.open = f.r.from/f.per - 1
		if f.r.from%f.per != 0 {
			f.open++
		}
	})
}

// done is the operation of a kind behind so many steps that has ended well, under whatever attempt; nil: there is none.
func (l *ledger) done(step int, kind string) *operation {
	for attempt := range harmlessTries {
		if o := l.at(slot{step: step, kind: kind, attempt: attempt}); o != nil && o.final() && o.err == nil {
			return o
		}
	}
	return nil
}

// serves is what the generators serve, once something is published.
func (f *fromRollouts) serves() served {
	f.mu.Lock()
	defer f.mu.Unlock()
	return *f.live
}

// published says what the generators serve from now on.
func (f *fromRollouts) published(s served) {
	f.change(func() {
		f.live = &s
		for b := range f.stored {
			if b < f.open {
				delete(f.stored, b)
			}
		}
	})
}

// release implements batches: before the weights behind step are published, the samples of every batch that is due under
// the weights served now are stored. Where nothing is served yet, nothing is waited for.
func (f *fromRollouts) release(ctx context.Context, step int) error {
	f.mu.Lock()
	live := f.live
	f.mu.Unlock()
	if live == nil || live.batches*f.per > step {
		return nil
	}
	for b := step/f.per + 1; b <= step/f.per+f.lag && b < f.batches(); b++ {
		if _, err := f.batch(ctx, b); err != nil && !errors.Is(err, errHalted) {
			return err
		}
	}
	return nil
}

// batches is how many the plan has.
func (f *fromRollouts) batches() int { return len(f.r.plan.Rates) / f.per }

// enter says whether the step may be submitted: the first one of a batch may not where the run has stopped sampling.
func (r *run) enter(step int) bool {
	f, ok := r.batches.(*fromRollouts)
	if !ok || step%f.per != 0 {
		return true
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.left {
		return false
	}
	f.open = step / f.per
	return true
}

// leave says that the run is asked to stop, and that batch b is behind what it still brings to its end.
func (f *fromRollouts) leave(b int) (leaves bool) {
	f.change(func() {
		leaves = b > f.open+f.lag
		f.left = f.left || leaves
	})
	return leaves
}

// halts says that no step from this one on is submitted. A rollout batch is trained to its end, since its samples are paid
// for and a checkpoint inside it would need weights that are served no more.
func (r *run) halts(step int) bool {
	return r.early.isHalted() && (step%r.plan.perBatch() == 0 || r.ledger.tainted() != nil)
}

// halted is closed when halts says so; nil, which never is, inside of a rollout batch.
func (r *run) halted(step int) <-chan struct{} {
	if step%r.plan.perBatch() != 0 {
		return nil
	}
	return r.early.halted
}
