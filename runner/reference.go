package runner

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"trainer/internal/diag"
	"trainer/loss"
)

// referencesName is the folder of a run that keeps what its reference says, where no other is given.
const referencesName = "reference"

// newGradient is how the recipe's loss reaches the service.
func (r *run) newGradient() gradient {
	l := r.in.Recipe.Loss
	loop := r.in.Recipe.Loop()
	if soft := r.in.softly(); soft != nil {
		return remote{loss: &loss.CrossEntropy{}, soft: soft}
	}
	if f, ok := r.batches.(*fromRollouts); ok && loop == loss.Reinforcement && r.in.Recipe.Advantage.ImportanceCap != nil {
		return &capped{remote: remote{loss: l.Params}, r: r, source: f, cap: *r.in.Recipe.Advantage.ImportanceCap}
	}
	if loop != loss.Preference && loop != loss.Distillation {
		return remote{loss: l.Params}
	}
	g := local{name: l.Type, loss: l.Params, most: r.limits.MaxBatch, length: r.in.Recipe.Dataset.MaxLength, compares: compares(r.in.Recipe), brief: r.brief,
		fromRows: !r.in.samples()}
	if r.in.program() != nil {
		const key = "loss.params.command"
		g.place = r.in.Recipe.At(key).String() + ": " + key
	}
	if kl, ok := l.Params.(*loss.ReverseKL); ok {
		g.loss = kl.Reduced(l.Reduction)
		return g
	}
	if !usesReference(l.Params) {
		return g
	}
	g.refs = &references{dir: r.world.References}
	if g.refs.dir == "" {
		g.refs.dir, g.refs.own = filepath.Join(r.world.Dir, referencesName), true
	}
	return g
}

// frozen names the weights of the reference by what they are made of: an adapter that is new adds nothing to those below
// it, and what the resource says of registered weights is the revision that it has.
func (r *run) frozen(ctx context.Context) (space string, err error) {
	of := map[string]string{"backend": r.plan.Lock["backend"], "base_model": r.in.Recipe.BaseModel}
	if ref := r.in.Recipe.BaseWeightsRef; ref != nil {
		res, err := r.world.Resources.Resource(ctx, r.lease.id)
		if err != nil {
			return "", fmt.Errorf("read which weights the resource has: %w", err)
		}
		of["base_weights_ref"] = cmp.Or(res.BaseWeightsRef, *ref)
	}
	if id := r.frozenAt(); id != "" {
		of["checkpoint"] = id
	}
	return spaceOf(of), nil
}

// scoreApart scores the reference in a session of its own, which is over before the one that trains begins.
func (g local) scoreApart(ctx, stop context.Context, r *run) error {
	if err := r.settleSession(ctx, stop); err != nil {
		return err
	}
	if last := r.past.last(); last != nil && last.reference { // an earlier life has not come to its end
		r.dismiss(ctx, last)
	}
	p := &refPass{local: g, r: r, stop: stop, apart: true}
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	err := p.run(inner)
	if p.opened {
		if err != nil {
			cancel() // nothing more is waited for
		}
		r.ledger.waits.Wait()
		r.dismiss(ctx, r.gen)
		r.session, r.gen, r.ledger = nil, nil, nil
	}
	return err
}

// openApart opens that session.
func (p *refPass) openApart(ctx context.Context) error {
	r, was := p.r, p.r.reason
	r.reason = toCompare
	defer func() { r.reason = was }()
	r.tell(Event{Kind: StageEvent, Done: r.past.done(), Text: "opening a session of the reference, checkpoint " + *r.in.Recipe.Reference.CheckpointID})
	s, err := r.openAt(ctx, p.stop, origin{*r.in.Recipe.Reference.CheckpointID, r.past.done(), r.past.updates()})
	if err != nil {
		return err
	}
	now, err := r.running(ctx, p.stop, s)
	if err != nil {
		return err
	}
	r.session, r.gen = s, r.past.last()
	r.ledger, p.opened = r.newLedger(s), true
	return r.started(ctx, now)
}

// refPass makes sure that every sequence which the run will compare with the reference has its log-probabilities under the
// frozen weights, so nothing is asked for once a step is taken. It goes over the plan in its order, each sequence once, in
// requests that depend on the plan alone: a life that dies in it leaves the next one the rest. One request is in flight
// while the next is made.
type refPass struct {
	local
	r     *run
	stop  context.Context
	apart bool // in a session of its own, which is opened when something is to be scored
	dry   bool // nothing is asked for: what would be is refused

	seen   map[[32]byte]bool
	chunk  []loss.Datum
	index  int
	asked  bool
	opened bool
	flying []loss.Datum // of the request in flight
	item   item
}

func (p *refPass) run(ctx context.Context) error {
	if p.refs.whole {
		return nil
	}
	p.seen = map[[32]byte]bool{}
	steps := len(p.r.plan.Rates)
	if p.r.plan.Evaluates {
		steps = 0
	}
	for step := range steps {
		b, err := p.r.batches.next(ctx, step)
		if err != nil {
			return err
		}
		if err := p.add(ctx, b.data()); err != nil {
			return err
		}
	}
	held, err := p.r.heldOut(0, p.r.in.heldRows())
	if err != nil {
		return err
	}
	if err := p.add(ctx, held); err != nil {
		return err
	}
	if err := p.flush(ctx); err != nil {
		return err
	}
	if err := p.land(ctx); err != nil {
		return err
	}
	p.refs.whole = true
	return nil
}

// sequencesARequest is how many a request of the pass carries where the service sets no bound.
const sequencesARequest = 64

func (p *refPass) add(ctx context.Context, data []loss.Datum) error {
	most := p.most
	if most <= 0 {
		most = sequencesARequest
	}
	for _, d := range append(slices.Clone(data), p.companions(data)...) {
		if name := nameOf(d); !p.seen[name] {
			p.seen[name] = true
			if p.chunk = append(p.chunk, d); len(p.chunk) >= most {
				if err := p.flush(ctx); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// flush asks for the chunk, unless the disk has all of it.
func (p *refPass) flush(ctx context.Context) error {
	chunk := p.chunk
	index := p.index
	p.chunk = nil
	p.index++
	missing := 0
	for _, d := range chunk {
		if !p.refs.has(d) {
			missing++
		}
	}
	if missing == 0 {
		return nil
	}
	if p.dry {
		return p.allowed()
	}
	if why := cmp.Or(context.Cause(p.stop), p.r.spent()); why != nil {
		return cmp.Or(p.land(ctx), why)
	}
	if err := p.first(ctx); err != nil {
		return err
	}
	items, err := scoring(ctx, p.r.session, slot{kind: kindReference, index: index}, [][]loss.Datum{chunk})
	if err != nil {
		return fmt.Errorf("prepare the scoring of the reference: %w", err)
	}
	if _, err := p.r.ledger.submit(ctx, items...); err != nil {
		return err
	}
	if err := p.land(ctx); err != nil {
		return err
	}
	p.flying, p.item = chunk, items[0]
	return nil
}

// first comes before the first request.
func (p *refPass) first(ctx context.Context) error {
	if p.asked {
		return nil
	}
	p.asked = true
	if err := p.allowed(); err != nil {
		return err
	}
	if p.apart {
		if err := p.openApart(ctx); err != nil {
			return err
		}
	}
	p.r.tell(Event{Kind: StageEvent, Done: p.r.past.done(), Text: "scoring the reference: a pass over the data under its weights"})
	return nil
}

// allowed says whether nothing is trained yet: what is scored later is under other weights, and a session of its own would
// take the place of the one that trains.
func (p *refPass) allowed() error {
	r := p.r
	trained := r.past.updates() > r.past.begun().Updates || !p.apart && r.past.updates() > 0
	if g := r.past.last(); g != nil {
		for _, in := range g.intents {
			trained = trained || in.Kind == kindOptimStep
		}
	}
	if !trained {
		return nil
	}
	return &hopeless{diag.List{{Pos: r.in.Recipe.At("loss.type"), Key: "loss.type", Msg: fmt.Sprintf(
		"%s compares with a reference that is scored before the first step, and %d are done: rows have no log-probabilities under it, as they were not planned then or the folder that kept them is gone; start a new run",
		p.name, r.past.done())}}}
}

// land waits for the request in flight, and stores what it says.
func (p *refPass) land(ctx context.Context) error {
	if p.flying == nil {
		return nil
	}
	rows, err := p.r.ledger.score(ctx, []item{p.item})
	if err != nil {
		return fmt.Errorf("score the reference: %w", err)
	}
	data := p.flying
	p.flying = nil
	return p.refs.put(data, rows)
}
