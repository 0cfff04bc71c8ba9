package engine

import "trainer/internal/sandbox/engine/kernel"

// Dropout drops a share of the inputs of an adapter's pairs and scales the others up, as PEFT does. Which ones is a function
// of its members, the number of the sequence in the batch, the position in the sequence, the matrix and the column: scoring
// and its backward pass agree, and a step that is done again drops the same. The zero value drops nothing.
// Source: Srivastava et al. 2014 (JMLR 15).
type Dropout struct {
	Rate    float64 // in [0, 1)
	Seed    uint64  // of the training as a whole
	Step    int64   // optimiser steps that the weights contain
	Ordinal int64   // gradients gathered since the last of them
}

// SetDropout is for the calls of Logprobs and Backward that follow. A model without an adapter has nothing to drop.
func (m *Model) SetDropout(d Dropout) {
	if m.adapter == nil {
		d = Dropout{}
	}
	if d != m.dropout {
		m.dropout, m.plan.scored = d, false
	}
}

// dropping is what one pair of a model drops of its input rows. Without keys it drops nothing.
type dropping struct {
	keys   []uint64 // one a row
	module uint64
	rate   float64
	scale  float32
}

// dropKeys sets the keys of the group's tokens; nil where nothing is dropped.
func (g *group) dropKeys() {
	d := g.m.dropout
	g.keys = g.keys[:0]
	if d.Rate == 0 {
		return
	}
	root := mix(mix(mix(d.Seed+golden)+uint64(d.Step)) + uint64(d.Ordinal))
	for i, s := range g.seqs {
		sequence := mix(root + uint64(g.part.from+i)*golden)
		for t := range s.n {
			g.keys = append(g.keys, mix(sequence+uint64(t)*golden))
		}
	}
}

// drop is what linear l drops of the rows with the given keys.
func (g *group) drop(l *linear, keys []uint64) dropping {
	if len(keys) == 0 {
		return dropping{}
	}
	rate := g.m.dropout.Rate
	return dropping{keys: keys, module: l.module, rate: rate, scale: float32(1 / (1 - rate))}
}

// apply multiplies row by row: by 0 with the probability rate, by 1/(1-rate) else.
func (d dropping) apply(x []float32) {
	width := len(x) / len(d.keys)
	for i, key := range d.keys {
		draws := stream(key + mix(d.module+golden))
		row := x[i*width : (i+1)*width]
		for j := range row {
			if draws.uniform(uint64(j)) < d.rate {
				row[j] = 0
			} else {
				row[j] *= d.scale
			}
		}
	}
}

// thinned is x [n][in] after dropping: x itself where nothing is dropped.
func (d dropping) thinned(x []float32, n, in int, mem *arena) []float32 {
	if d.keys == nil {
		return x
	}
	y := mem.take(n * in)
	copy(y, x)
	d.apply(y)
	return y
}

// addThinned adds to dx [n][in] the product of dz [n][rank] and aT [rank][in], after dropping.
func (d dropping) addThinned(dx, dz, aT []float32, n, in, rank int, mem *arena) {
	if d.keys == nil {
		kernel.Mul(kernel.Rows(dx, in), kernel.Rows(dz, rank), kernel.Rows(aT, in), n, in, rank, true)
		return
	}
	through := mem.take(n * in)
	kernel.Mul(kernel.Rows(through, in), kernel.Rows(dz, rank), kernel.Rows(aT, in), n, in, rank, false)
	d.apply(through)
	kernel.Add(dx[:n*in], through)
}
