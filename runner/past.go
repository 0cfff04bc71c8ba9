package runner

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"trainer/internal/journal"
)

// past is what the journal says of the lives before this one. Steps, evals and saves are of the lineage of the weights
// trained now; abandoned are the measured steps that a later session began before.
type past struct {
	run       *runRecord
	life      *lifeRecord    // the last one
	asked     []createRecord // resources asked for, also those that were refused
	plan      *decided
	resources []*held
	unclear   map[string]*createRecord // creates without an answer, by what they make
	settled   []int                    // attempts at a resource that were seen to have made nothing
	tried     notCreatedRecord         // the last create of a session that made nothing
	triedGen  int                      // the session that it was for
	gens      []*generation
	anchors   int // sessions asked for that are compared with beside those
	steps     []measured
	evals     map[int]measured // by steps done
	saves     []checkpointRecord
	rollouts  map[int]rolloutRecord // by batch: those sampled under weights of the lineage
	scored    map[int]scoredRecord  // by batch: those scored by the last session before they train
	teachers  int                   // sessions of teachers that were asked for
	forgotten map[string]string     // ids of saves that are not kept: why
	abandoned []measured
	end       *endRecord
	meters    map[string]meterRecord // by resource, the newest
	skip      map[int]string         // steps that are left out, with why
	leftOut   int                    // of which train.on_non_finite decided
	furthest  int                    // the most steps that a verified checkpoint held
	fruitless int                    // rollbacks of the last life since then
	salvaged  *salvageRecord         // records are lost, and no session was made since; nil: none
	disorder  bool                   // the service was seen not to keep the order of operations
}

// held is a resource that the journal knows.
type held struct {
	id       string
	what     string // aResource, aTeacher
	attached bool
	price    float64
	readyAt  readyRecord
	stopping bool // asked to stop
	stopped  bool
}

// generation is one session and what the journal knows of its operations.
type generation struct {
	gen       int
	attempt   int
	id        string
	from      origin
	started   *sessionRecord // nil until RUNNING was seen
	base      *int64         // the service's step less ours; nil until the first answer fixes it
	reference bool           // it is only scored in
	spoiled   bool           // a life saw that it holds what is not in the plan
	unfit     *unfitRecord   // the step that ended the last life in it, of which nothing was sent; nil: none
	closed    bool
	witnesses []witnessRecord
	intents   []intentRecord // in pos order
	acks      map[string]string
	results   map[string]resultRecord
}

// recall reads records in order.
func recall(records []journal.Record) (*past, error) {
	p := &past{unclear: map[string]*createRecord{}, evals: map[int]measured{}, rollouts: map[int]rolloutRecord{}, scored: map[int]scoredRecord{}, meters: map[string]meterRecord{}, skip: map[int]string{}}
	for _, rec := range records {
		if err := p.read(rec); err != nil {
			return nil, fmt.Errorf("journal record %d (%s): %w", rec.N, rec.Type, err)
		}
	}
	return p, nil
}

// readers decode a record into the past, by type; a type that is not here changes nothing.
var readers = map[string]func(p *past, data []byte) error{
	recRun: func(p *past, d []byte) error { return into(d, func(v runRecord) { p.run = &v }) },
	recLife: func(p *past, d []byte) error {
		return into(d, func(v lifeRecord) { p.life, p.end, p.fruitless = &v, nil, 0 })
	},
	recPlan: func(p *past, d []byte) error { return into(d, func(v decided) { p.plan = &v }) },
	recEnd:  func(p *past, d []byte) error { return into(d, p.ends) },
	recMeter: func(p *past, d []byte) error {
		return into(d, func(v meterRecord) { p.meters[v.Resource] = v })
	},
	recReady: func(p *past, d []byte) error {
		return into(d, func(v readyRecord) {
			if h := p.resource(v.Resource); h != nil {
				h.readyAt = v
			}
		})
	},
	recCreate:     func(p *past, d []byte) error { return into(d, p.create) },
	recCreated:    func(p *past, d []byte) error { return into(d, p.created) },
	recNotCreated: func(p *past, d []byte) error { return into(d, p.notCreated) },
	recStop: func(p *past, d []byte) error {
		return into(d, func(v stopRecord) {
			if h := p.resource(v.ID); h != nil {
				h.stopping = true
			}
			for _, g := range p.gens {
				g.spoiled = g.spoiled || g.id == v.ID && strings.HasPrefix(v.Why, whyTainted)
			}
			p.disorder = p.disorder || strings.HasPrefix(v.Why, whyDisorder)
		})
	},
	recStopped: func(p *past, d []byte) error { return into(d, p.stopped) },
	recSession: func(p *past, d []byte) error {
		return into(d, func(v sessionRecord) {
			if g := p.last(); g != nil {
				g.started = &v
			}
		})
	},
	recWitness: func(p *past, d []byte) error {
		return into(d, func(v witnessRecord) {
			if g := p.last(); g != nil {
				g.witnesses = append(g.witnesses, v)
			}
		})
	},
	recIntent: func(p *past, d []byte) error {
		return into(d, func(v intentRecord) {
			if g := p.last(); g != nil && g.id == v.Session {
				g.intents = append(g.intents, v)
			}
		})
	},
	recAck: func(p *past, d []byte) error {
		return into(d, func(v ackRecord) {
			if g := p.last(); g != nil {
				g.acks[v.Key] = v.Op
			}
		})
	},
	recResult: func(p *past, d []byte) error { return into(d, p.result) },
	recStep: func(p *past, d []byte) error {
		return into(d, func(v stepRecord) {
			p.steps = append(p.steps, v.measured())
			if u := p.unfitStep(); u != nil && u.Step == v.Step {
				p.last().unfit = nil // it was tried again
			}
		})
	},
	recEval: func(p *past, d []byte) error {
		return into(d, func(v evalRecord) { p.evals[v.Done] = v.measured() })
	},
	recCheckpoint: func(p *past, d []byte) error {
		return into(d, p.checkpoint)
	},
	recRollout: func(p *past, d []byte) error {
		return into(d, func(v rolloutRecord) { p.rollouts[v.Batch] = v })
	},
	recScored: func(p *past, d []byte) error {
		return into(d, func(v scoredRecord) { p.scored[v.Batch] = v })
	},
	recTeacher: func(p *past, _ []byte) error { p.teachers++; return nil },
	recUnfit:   func(p *past, d []byte) error { return into(d, p.unfit) },
	recForget:  func(p *past, d []byte) error { return into(d, p.forget) },
	recSalvage: func(p *past, d []byte) error { return into(d, p.salvage) },
}

func (p *past) read(rec journal.Record) error {
	if f, ok := readers[rec.Type]; ok {
		return f(p, rec.Data)
	}
	return nil
}

func into[T any](data []byte, keep func(T)) error {
	var v T
	if err := json.Unmarshal(data, &v); err != nil {
		return err
	}
	keep(v)
	return nil
}

func (p *past) create(v createRecord) {
	if v.What == aReference {
		p.anchors++
		return
	}
	p.unclear[v.What] = &v
	if v.What != aSession {
		p.asked = append(p.asked, v)
		return
	}
	p.opens(v)
	from, gen := origin{}, len(p.gens)
	if v.From != nil {
		from = *v.From
	}
	if v.Gen != nil {
		gen = *v.Gen
	}
	g := newGeneration(gen, v.Attempt, from)
	g.reference = v.Reason == toCompare
	p.begin(g)
}

// opens takes from the create of a session what it was decided for.
func (p *past) opens(v createRecord) {
	in, code, failed := p.failed()
	for _, step := range v.Skip {
		if _, known := p.skip[step]; known {
			continue
		}
		p.skip[step] = "--skip-step"
		if failed && in.Step == step {
			p.skip[step] = code
		}
	}
	switch v.Reason {
	case toRollBack, toCompare:
		p.fruitless++
	case toSkip:
		p.leftOut++
	}
}

func (p *past) checkpoint(v checkpointRecord) {
	p.saves = append(p.saves, v)
	if v.Kind == "training" && v.Done > p.furthest {
		p.furthest, p.fruitless = v.Done, 0
	}
}

func newGeneration(gen, attempt int, from origin) *generation {
	return &generation{gen: gen, attempt: attempt, from: from, acks: map[string]string{}, results: map[string]resultRecord{}}
}

// begin cuts the lineage where g begins, and makes g its last generation.
func (p *past) begin(g *generation) {
	p.cut(g.from.Done)
	maps.DeleteFunc(p.rollouts, func(_ int, v rolloutRecord) bool { return v.Version > g.from.Updates })
	clear(p.scored) // a session begins between batches
	p.gens = append(p.gens, g)
}

// result keeps an answer; that of an optimiser step fixes the difference of the step counters.
func (p *past) result(v resultRecord) {
	g := p.last()
	if g == nil {
		return
	}
	g.results[v.Key] = v
	for _, in := range slices.Backward(g.intents) {
		if in.Key != v.Key {
			continue
		}
		if in.Kind == kindOptimStep && v.Step > 0 && g.base == nil {
			base := v.Step - int64(in.Expect)
			g.base = &base
		}
		return
	}
}

// tainted says whether the session is not to be trained on: it is spoiled, or an operation that trains has failed in it,
// and what that leaves behind is unknown.
func (g *generation) tainted() bool {
	if g.spoiled {
		return true
	}
	for _, in := range g.intents {
		if res, ok := g.results[in.Key]; ok && res.Status == "FAILED" && (slot{kind: in.Kind}).mutating() {
			return true
		}
	}
	return false
}

// cut leaves in the lineage what a session that starts with done steps builds on.
func (p *past) cut(done int) {
	if i := slices.IndexFunc(p.steps, func(m measured) bool { return m.Step >= done }); i >= 0 {
		p.abandoned = append(p.abandoned, p.steps[i:]...)
		p.steps = slices.Clone(p.steps[:i])
	}
	for d := range p.evals {
		if d > done {
			delete(p.evals, d)
		}
	}
	p.saves = slices.DeleteFunc(p.saves, func(c checkpointRecord) bool { return c.Done > done })
}

func (p *past) created(v createdRecord) {
	if v.What == aReference {
		return
	}
	if c := p.open(v.What); c != nil && c.Attempt == v.Attempt {
		delete(p.unclear, v.What)
	}
	if v.What != aSession {
		p.resources = append(p.resources, &held{id: v.ID, what: v.What, attached: v.How == "attached", price: v.PriceUSD})
		return
	}
	p.salvaged = nil
	if g := p.last(); g != nil {
		g.id = v.ID
	}
}

// notCreated takes back a session that was never made. What its create has cut off stays cut off.
func (p *past) notCreated(v notCreatedRecord) {
	if v.What == aReference {
		return
	}
	delete(p.unclear, v.What)
	if v.What != aSession && v.Why == whySettled {
		p.settled = append(p.settled, v.Attempt)
	}
	if g := p.last(); v.What == aSession && g != nil && g.id == "" {
		p.tried, p.triedGen = v, g.gen
		p.gens = p.gens[:len(p.gens)-1]
	}
}

// open is the create of a resource, or of a session, that has no answer; nil when there is none.
func (p *past) open(what string) *createRecord { return p.unclear[what] }

// next is the number of the session to come, and of the attempt to make it.
func (p *past) next() (gen, attempt int) {
	if g := p.last(); g != nil {
		gen = g.gen + 1
	}
	if p.tried.What == aSession && p.triedGen == gen {
		attempt = p.tried.Attempt + 1
	}
	return gen, attempt
}

func (p *past) stopped(v stopRecord) {
	if h := p.resource(v.ID); h != nil {
		h.stopped = true
	}
	for _, g := range p.gens {
		g.closed = g.closed || g.id == v.ID
	}
}

// ends closes a life. What it released counts as stopped also where the disk had no room to say so at the time.
func (p *past) ends(v endRecord) {
	p.end = &v
	for _, id := range v.Released {
		p.stopped(stopRecord{ID: id})
	}
}

func (p *past) resource(id string) *held {
	for _, h := range p.resources {
		if h.id == id {
			return h
		}
	}
	return nil
}

// last is the newest generation, nil before the first.
func (p *past) last() *generation {
	if len(p.gens) == 0 {
		return nil
	}
	return p.gens[len(p.gens)-1]
}

// current is the id of the session that is trained, empty where none is.
func (p *past) current() string {
	if g := p.last(); g != nil && !g.closed {
		return g.id
	}
	return ""
}

// holding is the resource of the student, or of the teacher, that has no stopped record, nil when there is none.
func (p *past) holding(what string) *held {
	for _, h := range slices.Backward(p.resources) {
		if h.what == what && !h.stopped {
			return h
		}
	}
	return nil
}

// done and updates count the steps of the lineage, and those of them that ran an optimiser step.
func (p *past) done() int { return p.begun().Done + len(p.steps) }

func (p *past) updates() int {
	if n := len(p.steps); n > 0 {
		return p.steps[n-1].Updates
	}
	return p.begun().Updates
}

// begun is where the run begins: at the base model's weights, or at another run's checkpoint.
func (p *past) begun() origin {
	if p.run == nil || p.run.Parent == nil {
		return origin{}
	}
	return origin{p.run.Parent.CheckpointID, p.run.Parent.Done, p.run.Parent.Updates}
}

// step is the last of done steps, false where this run has not trained it.
func (p *past) step(done int) (measured, bool) {
	if i := done - 1 - p.begun().Done; i >= 0 && i < len(p.steps) {
		return p.steps[i], true
	}
	return measured{}, false
}

// newest is the training checkpoint with the most steps, false when there is none.
func (p *past) newest() (checkpointRecord, bool) {
	best, ok := checkpointRecord{}, false
	for _, c := range p.saves {
		if c.Kind == "training" && (!ok || c.Done >= best.Done) {
			best, ok = c, true
		}
	}
	return best, ok
}

// complete says that a plan of so many steps has nothing left to do.
func (p *past) complete(steps int) bool {
	return p.end != nil && p.end.Outcome == "complete" && (p.life == nil || steps <= p.life.Steps)
}

// spent is the cost of the resources that are no longer held, in US dollars.
func (p *past) spent(except ...string) (usd float64) {
	for id, m := range p.meters {
		if !slices.Contains(except, id) {
			usd += m.CostUSD
		}
	}
	return usd
}

// summary is the state at the start of a life.
func (p *past) summary(dir string, steps int) Summary {
	s := Summary{Outcome: "failed", Begun: p.begun().Done, Done: p.done(), Steps: steps, Dir: dir, CostUSD: p.spent(), LastLoss: math.NaN(), LastEval: math.NaN()}
	if p.end != nil {
		s.Outcome = p.end.Outcome
	}
	if n := len(p.steps); n > 0 {
		if v, ok := p.steps[n-1].Metrics["train/loss"]; ok {
			s.LastLoss = v
		}
	}
	for _, m := range p.steps[max(0, len(p.steps)-1):] {
		s.follow(m.Metrics)
	}
	for d := p.done(); d >= 0; d-- {
		m := p.evals[d].Metrics
		if len(m) == 0 {
			continue
		}
		s.follow(m)
		if v, ok := m[evalLoss]; ok {
			s.LastEval = v
		}
		break
	}
	for _, c := range slices.Backward(p.saves) {
		s.Saved = append(s.Saved, c.saved())
	}
	return s
}

func (c checkpointRecord) saved() Saved {
	return Saved{Done: c.Done, Inference: c.Kind == "inference", SavedCheckpoint: SavedCheckpoint{
		ID: c.ID, Step: c.ServerStep, Registered: c.Registered, Revision: c.Revision, Adapter: c.Adapter}}
}
