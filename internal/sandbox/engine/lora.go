package engine

import (
	"math"
	"strings"
)

// LoRA says what a session trains beside a frozen base: a pair A [in][Rank], B [Rank][out] for each of the projections q, k,
// v, o, gate, up and down of every layer. Source: Hu et al. 2021 (arXiv 2106.09685).
type LoRA struct {
	Rank  int     // at least 1
	Alpha float64 // the product A·B counts Alpha/Rank
	Seed  uint64  // of the first values of A; B starts at zero
	// TrainUnembed adds such a pair to the output head, or to both parts of a two-level head. A random base hardly learns
	// without it: its frozen head cannot express a confident prediction.
	TrainUnembed bool
}

// pair is one A and B; rank is padded to a multiple of 16, the padding stays zero.
type pair struct {
	a, b matrix
	rank int
}

// adapter is all pairs of a session in one slab.
type adapter struct {
	slab   []float32
	spans  []span
	layers [][7]pair // q, k, v, o, gate, up, down
	heads  []pair    // empty, or one for each table
}

func newAdapter(c Config, base *network, l LoRA, slab []float32) (*adapter, *carver) {
	a, cut := &adapter{slab: slab}, &carver{slab: slab}
	rank := pad16(l.Rank)
	take := func(name string, in, out, keep int) pair {
		name = "base_model.model." + strings.TrimSuffix(name, ".weight")
		return pair{rank: rank,
			a: cut.take(span{name: name + ".lora_A.weight", keepRows: in, keepCols: l.Rank, cols: rank,
				std: 1 / math.Sqrt(float64(in)), swap: true}, true),
			b: cut.take(span{name: name + ".lora_B.weight", keepRows: l.Rank, rows: rank, keepCols: keep, cols: out,
				swap: true}, true)}
	}
	for i := range base.layers {
		var pairs [7]pair
		for j, m := range base.layers[i].projections() {
			pairs[j] = take(m.name, m.rows, m.cols, m.cols)
		}
		a.layers = append(a.layers, pairs)
	}
	if l.TrainUnembed {
		for i, m := range base.tables {
			a.heads = append(a.heads, take(headName(c, i), c.Dim, m.rows, m.keepRows))
		}
	}
	a.spans = cut.spans
	return a, cut
}

// projections are the seven matrices of a layer, in the order of an adapter's pairs.
func (l *layer) projections() [7]*matrix {
	return [7]*matrix{&l.q, &l.k, &l.v, &l.o, &l.gate, &l.up, &l.down}
}

// each calls f with every matrix of the adapter.
func (a *adapter) each(f func(*matrix)) {
	for i := range a.layers {
		for j := range a.layers[i] {
			f(&a.layers[i][j].a)
			f(&a.layers[i][j].b)
		}
	}
	for i := range a.heads {
		f(&a.heads[i].a)
		f(&a.heads[i].b)
	}
}
