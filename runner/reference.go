package runner

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"

	"trainer/internal/diag"
	"trainer/loss"
)

// referencesName is the folder of a run that keeps what its reference says, where no other is given.
const referencesName = "reference"

// newGradient is how the recipe's loss reaches the service.
func (r *run) newGradient() (gradient, error) {
	l := r.in.Recipe.Loss
	if r.in.Recipe.Loop() != loss.Preference {
		return remote{l.Params}, nil
	}
	g := local{name: l.Type, loss: l.Params, most: r.limits.MaxBatch, length: r.in.Recipe.Dataset.MaxLength}
	if ref, ok := l.Params.(loss.Referenced); !ok || !ref.UsesReference() {
		return g, nil
	}
	dir := r.world.References
	if dir == "" {
		dir = filepath.Join(r.world.Dir, referencesName)
	}
	refs, err := openReferences(r.disk, dir, spaceOf(r.start()))
	g.refs = refs
	return g, err
}

// start is what the weights that training starts from are made of: an adapter that is new adds nothing to them.
func (r *run) start() map[string]string {
	of := map[string]string{"backend": r.plan.Lock["backend"], "base_model": r.in.Recipe.BaseModel}
	if ref := r.in.Recipe.BaseWeightsRef; ref != nil {
		of["base_weights_ref"] = *ref
	}
	if s := r.in.Start; s != nil {
		of["checkpoint"] = s.CheckpointID
	}
	return of
}

// score makes sure that every sequence which this run will compare with the reference has its log-probabilities under the
// weights that training starts from, so nothing is asked for once a step is taken. The pass goes over the plan in its order,
// each sequence once, in requests that depend on the plan alone: a life that dies in it leaves the next one the rest.
func (g local) score(ctx, stop context.Context, r *run) error {
	p := &refPass{local: g, r: r, stop: stop, seen: map[[32]byte]bool{}}
	for step := range r.plan.Rates {
		b, err := r.batches.next(ctx, step)
		if err != nil {
			return err
		}
		data := b.data()
		if err := p.add(ctx, append(data, g.companions(data)...)); err != nil {
			return err
		}
	}
	held, err := r.heldOut(0, r.heldRows())
	if err != nil {
		return err
	}
	if err := p.add(ctx, append(held, g.companions(held)...)); err != nil {
		return err
	}
	if err := p.flush(ctx); err != nil {
		return err
	}
	return p.land(ctx)
}

// refPass is the scoring of everything under the reference: one request is in flight while the next is made.
type refPass struct {
	local
	r     *run
	stop  context.Context
	seen  map[[32]byte]bool
	chunk []loss.Datum
	index int

	asked  bool
	flying []loss.Datum // of the request in flight
	item   item
}

// sequencesARequest is how many a request of the pass carries where the service sets no bound.
const sequencesARequest = 64

func (p *refPass) add(ctx context.Context, data []loss.Datum) error {
	most := p.most
	if most <= 0 {
		most = sequencesARequest
	}
	for _, d := range data {
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
	if why := context.Cause(p.stop); why != nil {
		return cmp.Or(p.land(ctx), why)
	}
	if err := p.allowed(); err != nil {
		return err
	}
	items, err := p.scoring(ctx, p.r.session, slot{kind: kindReference, index: index}, [][]loss.Datum{chunk})
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

// allowed says whether the session still has the weights that training starts from.
func (p *refPass) allowed() error {
	r := p.r
	if !p.asked {
		r.tell(Event{Kind: StageEvent, Done: r.past.done(), Text: "scoring the reference: a pass over the data under the weights that training starts from"})
		p.asked = true
	}
	trained := r.past.updates() > 0
	for _, in := range r.gen.intents {
		trained = trained || in.Kind == kindOptimStep
	}
	if !trained {
		return nil
	}
	return &hopeless{diag.List{{Pos: r.in.Recipe.At("loss.type"), Key: "loss.type", Msg: fmt.Sprintf(
		"%s compares with the weights that training starts from, and these are gone: %d steps are done, and rows that the run was not planned with have no reference log-probabilities; start a new run",
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
