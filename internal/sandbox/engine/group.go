package engine

import (
	"trainer/internal/sandbox/engine/kernel"
)

// group is some sequences going through the layers together, and what the backward pass needs of their forward pass.
type group struct {
	m      *Model
	mem    arena
	part   part
	rows   []int       // tokens of the group whose log-probability is wanted
	layers []layerPass // one a layer
	last   []float32   // [tokens][Dim] after the layers
	root   []float32   // [tokens] factors of the last norm
	normed []float32   // [tokens][Dim] after it
	seqs   []sequence
	keys   []uint64     // [tokens] what dropping draws from; empty where nothing is dropped
	lse    [2][]float32 // [rows] of each level of the head
	scores []float32    // [rows]

	hotRows, hotIndex []int // rows with a derivative, and where they stand in rows
}

// sequence is where one begins in its group and how long it is.
type sequence struct{ at, n int }

// layerPass is what a layer's forward pass leaves behind, [tokens][width] each.
type layerPass struct {
	in, root1, normed1 []float32
	q, k, v, mixed     []float32
	mid, root2         []float32
	normed2            []float32
	gate, up, hidden   []float32
	z                  [7][]float32 // of the adapters
	attention          [][]float32  // weights of attention, a block each, as far as they are kept
}

// forward runs the layers over the tokens of part; and the head over the wanted rows; logprobs or backward follow.
func (g *group) forward(p *plan, part part) {
	g.mem.reset()
	g.part = part
	g.place(p)
	g.dropKeys()
	c := g.m.base.config
	n := part.tokens
	x := g.mem.take(n * c.Dim)
	for t, id := range p.tokens[part.at : part.at+n] {
		g.m.embed(x[t*c.Dim:(t+1)*c.Dim], id)
	}
	g.layers = resize(g.layers, c.Layers)
	for i := range g.m.blocks {
		x = g.layers[i].forward(g, &g.m.blocks[i], x)
	}
	g.last = x
	g.root, g.normed = g.mem.take(n), g.mem.take(n*c.Dim)
	norm(g.normed, g.root, x, g.m.final)
	g.logSumExps(p)
}

// place notes sequences and wanted rows.
func (g *group) place(p *plan) {
	g.seqs, g.rows = g.seqs[:0], g.rows[:0]
	at := 0
	for _, n := range p.lengths[g.part.from:g.part.to] {
		g.seqs = append(g.seqs, sequence{at, n})
		at += n
	}
	for t, need := range p.need[g.part.at : g.part.at+g.part.tokens] {
		if need {
			g.rows = append(g.rows, t)
		}
	}
}

// forward runs one layer on x and returns its output.
func (l *layerPass) forward(g *group, b *block, x []float32) []float32 {
	c, mem := g.m.base.config, &g.mem
	n := g.part.tokens
	wide := func(width int) []float32 { return mem.take(n * width) }
	l.in, l.root1, l.normed1 = x, wide(1), wide(c.Dim)
	norm(l.normed1, l.root1, x, b.norm1)
	l.q, l.k, l.v, l.mixed = wide(c.Dim), wide(c.Dim), wide(c.Dim), wide(c.Dim)
	l.z[0] = b.q.forward(l.q, l.normed1, n, g.drop(&b.q, g.keys), mem)
	l.z[1] = b.k.forward(l.k, l.normed1, n, g.drop(&b.k, g.keys), mem)
	l.z[2] = b.v.forward(l.v, l.normed1, n, g.drop(&b.v, g.keys), mem)
	g.rotate(l.q, 1)
	g.rotate(l.k, 1)
	l.attend(g)
	l.mid = wide(c.Dim)
	l.z[3] = b.o.forward(l.mid, l.mixed, n, g.drop(&b.o, g.keys), mem)
	kernel.Add(l.mid, x)
	l.root2, l.normed2 = wide(1), wide(c.Dim)
	norm(l.normed2, l.root2, l.mid, b.norm2)
	l.gate, l.up, l.hidden = wide(c.Hidden), wide(c.Hidden), wide(c.Hidden)
	l.z[4] = b.gate.forward(l.gate, l.normed2, n, g.drop(&b.gate, g.keys), mem)
	l.z[5] = b.up.forward(l.up, l.normed2, n, g.drop(&b.up, g.keys), mem)
	kernel.SwiGLU(l.hidden, l.gate, l.up)
	out := wide(c.Dim)
	l.z[6] = b.dn.forward(out, l.hidden, n, g.drop(&b.dn, g.keys), mem)
	kernel.Add(out, l.mid)
	return out
}

// backward adds the gradient of the group's derivatives to grad.
func (g *group) backward(p *plan, grad []float32, mem *arena) {
	c := g.m.base.config
	n := g.part.tokens
	dn := mem.take(n * c.Dim)
	clear(dn)
	g.headBack(p, dn, grad, mem)
	dx := mem.take(n * c.Dim)
	clear(dx)
	normBack(dx, dn, g.last, g.root, g.m.final, grad)
	s := newBackScratch(c, n, mem)
	s.dn = dn
	for i := len(g.layers) - 1; i >= 0; i-- {
		if i == 0 && g.m.adapter != nil {
			s.dn = nil // nothing before the first layer trains
		}
		g.layers[i].backward(g, &g.m.blocks[i], dx, s, grad, mem)
	}
	if g.m.adapter == nil {
		g.embedBack(p, dx, grad)
	}
}

// embedBack adds the derivatives of the input vectors to the tables' gradient.
func (g *group) embedBack(p *plan, dx, grad []float32) {
	c := g.m.base.config
	for t, id := range p.tokens[g.part.at : g.part.at+g.part.tokens] {
		at := c.parts(id)
		for i, table := range g.m.net.tables {
			row := table.off + at[i]*c.Dim
			kernel.Add(grad[row:row+c.Dim], dx[t*c.Dim:(t+1)*c.Dim])
		}
	}
}

// backScratch is the derivatives that every layer uses in turn.
type backScratch struct {
	dn, dHidden, dGate, dUp, dMixed, dq, dk, dv []float32
}

func newBackScratch(c Config, n int, mem *arena) backScratch {
	d := func() []float32 { return mem.take(n * c.Dim) }
	h := func() []float32 { return mem.take(n * c.Hidden) }
	return backScratch{dHidden: h(), dGate: h(), dUp: h(), dMixed: d(), dq: d(), dk: d(), dv: d()}
}

// backward turns dx, the derivative by the layer's output, into that by its input, which without s.dn nobody needs.
func (l *layerPass) backward(g *group, b *block, dx []float32, s backScratch, grad []float32, mem *arena) {
	n := g.part.tokens
	mark := mem.mark()
	dn := s.dn
	if dn == nil {
		dn = mem.take(n * g.m.base.config.Dim)
	}
	b.dn.backward(s.dHidden, dx, l.hidden, l.z[6], n, g.drop(&b.dn, g.keys), grad, false, mem)
	kernel.SwiGLUBack(s.dGate, s.dUp, s.dHidden, l.gate, l.up)
	b.gate.backward(dn, s.dGate, l.normed2, l.z[4], n, g.drop(&b.gate, g.keys), grad, false, mem)
	b.up.backward(dn, s.dUp, l.normed2, l.z[5], n, g.drop(&b.up, g.keys), grad, true, mem)
	normBack(dx, dn, l.mid, l.root2, b.norm2, grad)
	b.o.backward(s.dMixed, dx, l.mixed, l.z[3], n, g.drop(&b.o, g.keys), grad, false, mem)
	l.attendBack(g, s, mem)
	g.rotate(s.dq, -1)
	g.rotate(s.dk, -1)
	b.q.backward(s.dn, s.dq, l.normed1, l.z[0], n, g.drop(&b.q, g.keys), grad, false, mem)
	b.k.backward(s.dn, s.dk, l.normed1, l.z[1], n, g.drop(&b.k, g.keys), grad, true, mem)
	b.v.backward(s.dn, s.dv, l.normed1, l.z[2], n, g.drop(&b.v, g.keys), grad, true, mem)
	if s.dn != nil {
		normBack(dx, s.dn, l.in, l.root1, b.norm1, grad)
	}
	mem.release(mark)
}

// norm sets y [n][width] row by row and keeps the factors in root [n].
func norm(y, root, x []float32, g gain) {
	d := len(g.w)
	for t := range root {
		root[t] = kernel.Norm(y[t*d:(t+1)*d], x[t*d:(t+1)*d], g.w)
	}
}

// normBack adds to dx row by row, and to the gain's gradient where it has one.
func normBack(dx, dy, x, root []float32, g gain, grad []float32) {
	d := len(g.w)
	var dg []float32
	if g.trained {
		dg = grad[g.off : g.off+d]
	}
	for t, r := range root {
		kernel.NormBack(dx[t*d:(t+1)*d], dg, dy[t*d:(t+1)*d], x[t*d:(t+1)*d], g.w, r)
	}
}
