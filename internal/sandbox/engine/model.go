package engine

import (
	"slices"

	"trainer/internal/sandbox/engine/kernel"
)

// Model is what one session trains: a clone of a base, or a LoRA adapter beside it, with its gradient, the moments of Adam
// and a count of steps. One caller at a time; different models of one base may run at the same time.
type Model struct {
	base    *Base
	lora    *LoRA    // nil: full weights
	net     *network // the base's own where only an adapter trains
	adapter *adapter // nil: full weights

	blocks []block
	heads  []linear
	final  gain
	given  matrix // of a two-level head

	params  []float32 // what trains; the slabs below have its shape
	spans   []span
	grad    []float32
	m, v    []float32
	steps   int64
	touched bool // grad may hold something else than zero
	shards  [shardCount]*shard
	plan    plan
	keep    int // keepFloats, less in tests
	dropout Dropout
}

// gain is a norm's gain; trained says whether it has a gradient.
type gain struct {
	matrix
	trained bool
}

// block is a layer as the passes use it.
type block struct {
	norm1, norm2             gain
	q, k, v, o, gate, up, dn linear
}

// NewModel returns a model that trains the adapter l beside b, or with a nil l a copy of all weights of b. It does not keep
// l. l.Rank is at least 1 and l.Alpha finite: the caller's duty.
func NewModel(b *Base, l *LoRA) *Model {
	params := slices.Clone(b.net.slab)
	if l != nil {
		kept := *l
		l = &kept
		_, size := newAdapter(b.config, b.net, kept, nil)
		params = make([]float32, size.size)
		_, cut := newAdapter(b.config, b.net, kept, params)
		cut.fill(kept.Seed)
	}
	m := newView(b, l, params)
	m.grad, m.m, m.v = make([]float32, len(m.params)), make([]float32, len(m.params)), make([]float32, len(m.params))
	for i := range m.shards {
		m.shards[i] = &shard{m: m}
	}
	return m
}

// newView is a model over params that can only run forward: it has no gradient and no optimizer. It keeps l and params.
func newView(b *Base, l *LoRA, params []float32) *Model {
	m := &Model{base: b, lora: l, net: b.net, params: params, keep: keepFloats}
	if l == nil {
		m.net, _ = newNetwork(b.config, params)
		m.spans = m.net.spans
	} else {
		m.adapter, _ = newAdapter(b.config, b.net, *l, params)
		m.spans = m.adapter.spans
	}
	m.refresh()
	m.assemble()
	return m
}

// refresh renews the transposed copies after the weights changed, and forgets what was computed with the old ones.
func (m *Model) refresh() {
	if m.adapter != nil {
		m.adapter.each((*matrix).transpose)
	} else {
		m.net.each((*matrix).transpose)
	}
	m.plan.scored = false
}

// assemble joins weights and pairs into the linear maps that the passes use.
func (m *Model) assemble() {
	full := m.adapter == nil
	for i := range m.net.layers {
		l := &m.net.layers[i]
		var x [7]linear
		for j, w := range l.projections() {
			x[j] = linear{in: w.rows, out: w.cols, w: w.w, wT: w.wT, off: w.off, trained: full, module: uint64(i*len(x) + j)}
			if !full {
				x[j].adapt(m.adapter.layers[i][j], m.lora)
			}
		}
		m.blocks = append(m.blocks, block{gain{l.norm1, full}, gain{l.norm2, full}, x[0], x[1], x[2], x[3], x[4], x[5], x[6]})
	}
	for i, t := range m.net.tables {
		// The head is the table the other way round.
		h := linear{in: t.cols, out: t.rows, w: t.wT, wT: t.w, off: t.off, trained: full, tied: true, module: uint64(7*len(m.net.layers) + i)}
		if !full && m.lora.TrainUnembed {
			h.adapt(m.adapter.heads[i], m.lora)
		}
		m.heads = append(m.heads, h)
	}
	m.final = gain{m.net.norm, full}
	m.given = m.net.given
}

// embed sets row to the input vector of id.
func (m *Model) embed(row []float32, id int32) {
	for i, at := range m.base.config.parts(id) {
		t := &m.net.tables[i]
		from := t.w[at*t.cols : (at+1)*t.cols]
		if i == 0 {
			copy(row, from)
		} else {
			kernel.Add(row, from)
		}
		if len(m.net.tables) == 1 {
			return
		}
	}
}

// parts are the rows of the tables that stand for id; a flat vocabulary has the first only.
func (c Config) parts(id int32) [2]int {
	if !c.twoLevel() {
		return [2]int{int(id), 0}
	}
	return [2]int{int(id) / c.low(), int(id) % c.low()}
}

// ClearGradient forgets the gradient that Backward gathered.
func (m *Model) ClearGradient() {
	if m.touched {
		clear(m.grad)
	}
	m.touched = false
}

// ScaleGradient multiplies the gathered gradient by a finite factor, taken as float32.
func (m *Model) ScaleGradient(factor float64) {
	for i := range m.grad {
		m.grad[i] *= float32(factor)
	}
}

// Steps is how many optimiser steps the weights contain.
func (m *Model) Steps() int64 { return m.steps }

// SetSteps sets the count, which Adam's bias correction depends on.
func (m *Model) SetSteps(n int64) { m.steps = n }

// Base returns the base that the model was made from.
func (m *Model) Base() *Base { return m.base }

// Hash is the SHA-256 of the trained weights: all of them, or the adapter's.
func (m *Model) Hash() [32]byte { return hashOf(m.params) }

// Adam holds the numbers of one optimiser step. They are taken as float32, except the powers of the betas.
type Adam struct {
	Rate, Beta1, Beta2, Eps float64
	WeightDecay             float64 // decoupled: the weights shrink by Rate·WeightDecay
	ClipNorm                float64 // the gradient is scaled down to this norm; 0 leaves it as it is
}

// Step applies the gathered gradient, clears it and counts the step. It returns the norm of the gradient before clipping.
// A gradient that is not finite spoils the weights, as it does elsewhere; the norm tells.
func (m *Model) Step(a Adam) (gradNorm float64) {
	gradNorm = m.gradNorm()
	clip := clipTo(a.ClipNorm, gradNorm)
	m.steps++
	kernel.Adam(m.params, m.m, m.v, m.grad, m.adamStep(a, clip))
	m.ClearGradient()
	m.refresh()
	return gradNorm
}

// clipTo is the factor that brings a gradient of the given norm down to most; 0 does not bound it.
func clipTo(most, norm float64) float64 {
	if most > 0 && norm > most {
		return most / norm
	}
	return 1
}

// adamStep is the step that m.steps counts.
func (m *Model) adamStep(a Adam, clip float64) kernel.AdamStep {
	return kernel.AdamStep{
		Clip:  float32(clip),
		Keep1: float32(a.Beta1), Take1: float32(1 - a.Beta1),
		Keep2: float32(a.Beta2), Take2: float32(1 - a.Beta2),
		Fix1:    float32(1 / (1 - kernel.Power(a.Beta1, m.steps))),
		Fix2:    float32(1 / (1 - kernel.Power(a.Beta2, m.steps))),
		Epsilon: float32(a.Eps), Rate: float32(a.Rate), Decay: float32(a.WeightDecay),
	}
}

func (m *Model) gradNorm() float64 { return frobenius(m.grad) }
