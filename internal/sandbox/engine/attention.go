package engine

import (
	"math"

	"trainer/internal/sandbox/engine/kernel"
)

// attentionBlock is how many queries are scored at a time, so that no [T][T] matrix exists.
const attentionBlock = 64

// attentionKept is the longest sequence whose attention weights are kept for the backward pass; those of longer ones are
// computed again, with the same bits.
const attentionKept = 128

// rotate turns the pairs of every head of x [tokens][Dim] by their position's angles, backwards with sign -1.
func (g *group) rotate(x []float32, sign float32) {
	c := g.m.base.config
	half := c.headDim() / 2
	for _, s := range g.seqs {
		for t := range s.n {
			row := x[(s.at+t)*c.Dim : (s.at+t+1)*c.Dim]
			cos, sin := g.m.base.cos[t*half:(t+1)*half], g.m.base.sin[t*half:(t+1)*half]
			for ; len(row) > 0; row = row[2*half:] {
				kernel.Rotate(row[:half], row[half:2*half], cos, sin, sign)
			}
		}
	}
}

// head is one attention head of one sequence: a view of [n][headDim] inside [tokens][Dim].
type head struct{ at, n, dim, stride int }

func (h head) of(x []float32) kernel.View { return kernel.Rows(x[h.at:], h.stride) }

// turned copies the head's part of x the other way round, [dim][padded n], zero where there is no token.
func (h head) turned(dst, x []float32) kernel.View {
	np := pad16(h.n)
	for i := range h.dim {
		row := dst[i*np : (i+1)*np]
		for t := range h.n {
			row[t] = x[h.at+t*h.stride+i]
		}
		clear(row[h.n:])
	}
	return kernel.Rows(dst, np)
}

// heads yields every head of every sequence.
func (g *group) heads(yield func(head) bool) {
	c := g.m.base.config
	for _, s := range g.seqs {
		for i := range c.Heads {
			if !yield(head{s.at*c.Dim + i*c.headDim(), s.n, c.headDim(), c.Dim}) {
				return
			}
		}
	}
}

func (c Config) attentionScale() float32 { return float32(1 / math.Sqrt(float64(c.headDim()))) }

// weights sets w [to-from][padded to] to the attention of queries [from, to) over keys up to their own.
func (h head) weights(w []float32, q []float32, keys kernel.View, from, to int, scale float32) {
	width := pad16(to)
	queries := h.of(q[from*h.stride:])
	kernel.Mul(kernel.Rows(w, width), queries, keys, to-from, width, h.dim, false)
	for t := from; t < to; t++ {
		row := w[(t-from)*width : (t-from+1)*width]
		kernel.Softmax(row[:t+1], scale)
		clear(row[t+1:])
	}
}

// attend sets l.mixed to the weighted mean of the values.
func (l *layerPass) attend(g *group) {
	c := g.m.base.config
	l.attention = l.attention[:0]
	keys, spare := g.attentionScratch(&g.mem)
	for h := range g.heads {
		kt := h.turned(keys, l.k)
		for from := 0; from < h.n; from += attentionBlock {
			to := min(from+attentionBlock, h.n)
			w := spare
			if h.n <= attentionKept {
				w = g.mem.take((to - from) * pad16(to))
				l.attention = append(l.attention, w)
			}
			h.weights(w, l.q, kt, from, to, c.attentionScale())
			kernel.Mul(h.of(l.mixed[from*h.stride:]), kernel.Rows(w, pad16(to)), h.of(l.v), to-from, h.dim, to, false)
		}
	}
}

// attentionScratch returns room for one head's keys and for one block of weights of a sequence whose weights are not kept.
func (g *group) attentionScratch(mem *arena) (keys, weights []float32) {
	longest := 0
	for _, s := range g.seqs {
		longest = max(longest, pad16(s.n))
	}
	if longest > attentionKept {
		weights = mem.take(attentionBlock * longest)
	}
	return mem.take(g.m.base.config.headDim() * longest), weights
}

// attendBack sets s.dq, s.dk and s.dv from s.dMixed. Blocks follow in the order of the queries, so the sums over queries
// have one order however they are cut.
func (l *layerPass) attendBack(g *group, s backScratch, mem *arena) {
	scale := g.m.base.config.attentionScale()
	clear(s.dk)
	clear(s.dv)
	keys, spare := g.attentionScratch(mem)
	values, _ := g.attentionScratch(mem)
	dw := mem.take(attentionBlock * len(values) / g.m.base.config.headDim())
	kept := l.attention
	for h := range g.heads {
		vt, kt := h.turned(values, l.v), kernel.View{}
		if h.n > attentionKept {
			kt = h.turned(keys, l.k)
		}
		for from := 0; from < h.n; from += attentionBlock {
			to := min(from+attentionBlock, h.n)
			w := spare
			if h.n > attentionKept {
				h.weights(w, l.q, kt, from, to, scale)
			} else {
				w, kept = kept[0], kept[1:]
			}
			h.blockBack(l, s, w, dw, vt, from, to, scale)
		}
	}
}

// blockBack does the queries [from, to), whose weights are w; dw is scratch.
func (h head) blockBack(l *layerPass, s backScratch, w, dw []float32, vt kernel.View, from, to int, scale float32) {
	n, width := to-from, pad16(to)
	wv, dwv := kernel.Rows(w, width), kernel.Rows(dw, width)
	dMixed, q := h.of(s.dMixed[from*h.stride:]), h.of(l.q[from*h.stride:])
	kernel.Mul(h.of(s.dv), wv.T(), dMixed, to, h.dim, n, true)
	kernel.Mul(dwv, dMixed, vt, n, width, h.dim, false)
	for t := from; t < to; t++ {
		row := (t - from) * width
		kernel.SoftmaxBack(dw[row:row+t+1], w[row:row+t+1], scale)
		clear(dw[row+t+1 : row+width])
	}
	kernel.Mul(h.of(s.dq[from*h.stride:]), dwv, h.of(l.k), n, h.dim, to, false)
	kernel.Mul(h.of(s.dk), dwv.T(), q, to, h.dim, n, true)
}
