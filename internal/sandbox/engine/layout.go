package engine

import (
	"fmt"
	"math"

	"trainer/internal/sandbox/engine/kernel"
)

// span is one tensor in a slab of weights: [rows][cols], of which the first keepRows and keepCols mean something. The rest
// is padding, zero for ever. std is the spread of its first values; gain marks a vector that starts at one.
type span struct {
	name               string
	off, rows, cols    int
	keepRows, keepCols int
	std                float64
	gain               bool
	swap               bool // saved as [cols][rows], the way checkpoints of other programs have it
}

func (s span) size() int { return s.rows * s.cols }

// matrix is a span in use: its weights and, for weights that a product needs the other way round, the transpose.
type matrix struct {
	span
	w, wT []float32
}

// transpose renews the transposed copy.
func (m *matrix) transpose() {
	if m.wT != nil {
		kernel.Transpose(m.wT, m.w, m.rows, m.cols)
	}
}

// carver lays tensors end to end. With a nil slab it only measures.
type carver struct {
	slab  []float32
	spans []span
	size  int
}

func (c *carver) take(s span, transposed bool) matrix {
	s.off = c.size
	s.keepRows, s.keepCols = max(s.keepRows, 1), max(s.keepCols, 1)
	s.rows, s.cols = max(s.rows, s.keepRows), max(s.cols, s.keepCols)
	c.spans = append(c.spans, s)
	c.size += s.size()
	m := matrix{span: s}
	if c.slab != nil {
		m.w = c.slab[s.off : s.off+s.size() : s.off+s.size()]
		if transposed {
			m.wT = make([]float32, s.size())
		}
	}
	return m
}

// fill draws the first values of every span.
func (c *carver) fill(seed uint64) {
	for _, s := range c.spans {
		w := c.slab[s.off : s.off+s.size()]
		draw := newStream(seed, s.name)
		for i := range s.keepRows {
			for j := range s.keepCols {
				switch {
				case s.gain:
					w[i*s.cols+j] = 1
				case s.std > 0:
					w[i*s.cols+j] = float32(draw.normal(uint64(i*s.keepCols+j)) * s.std)
				}
			}
		}
	}
}

// network is a full set of weights in one slab.
type network struct {
	slab   []float32
	spans  []span
	tables []matrix // [ids or parts][Dim]: one for a flat vocabulary, high and low for a two-level one
	given  matrix   // [high][Dim]: what the high part of an id adds before its low part is predicted
	layers []layer
	norm   matrix
}

// layer is one block: gains of its two norms, projections of attention and of the gated layer, all [in][out].
type layer struct {
	norm1, q, k, v, o     matrix
	norm2, gate, up, down matrix
}

// newNetwork lays out the weights of c; slab is nil to measure only. The order of spans is the order in the slab.
func newNetwork(c Config, slab []float32) (*network, *carver) {
	n, cut := &network{slab: slab}, &carver{slab: slab}
	n.carveTables(c, cut)
	gain := func(name string) matrix {
		return cut.take(span{name: name, keepCols: c.Dim, gain: true}, false)
	}
	root := math.Sqrt(float64(c.Dim))
	linear := func(name string, in, out int, std float64) matrix {
		return cut.take(span{name: name, keepRows: in, keepCols: out, std: std, swap: true}, true)
	}
	deep := math.Sqrt(float64(2 * c.Layers))
	for i := range c.Layers {
		p := fmt.Sprintf("model.layers.%d.", i)
		var l layer
		l.norm1 = gain(p + "input_layernorm.weight")
		l.q = linear(p+"self_attn.q_proj.weight", c.Dim, c.Dim, 1/root)
		l.k = linear(p+"self_attn.k_proj.weight", c.Dim, c.Dim, 1/root)
		l.v = linear(p+"self_attn.v_proj.weight", c.Dim, c.Dim, 1/root)
		l.o = linear(p+"self_attn.o_proj.weight", c.Dim, c.Dim, 1/(root*deep))
		l.norm2 = gain(p + "post_attention_layernorm.weight")
		l.gate = linear(p+"mlp.gate_proj.weight", c.Dim, c.Hidden, 1/root)
		l.up = linear(p+"mlp.up_proj.weight", c.Dim, c.Hidden, 1/root)
		l.down = linear(p+"mlp.down_proj.weight", c.Hidden, c.Dim, 1/(math.Sqrt(float64(c.Hidden))*deep))
		n.layers = append(n.layers, l)
	}
	n.norm = gain("model.norm.weight")
	n.spans = cut.spans
	return n, cut
}

// carveTables lays out the vocabulary. Rows are short (an expected length of 0.45) so that the first logits are small and
// the first loss is about the logarithm of the vocabulary.
func (n *network) carveTables(c Config, cut *carver) {
	std := 0.45 / math.Sqrt(float64(c.Dim))
	table := func(name string, rows int) matrix {
		return cut.take(span{name: name, keepRows: rows, rows: pad16(rows), keepCols: c.Dim, std: std}, true)
	}
	if !c.twoLevel() {
		n.tables = []matrix{table("model.embed_tokens.weight", c.Vocab)}
		return
	}
	n.tables = []matrix{table("model.embed_tokens.high.weight", c.high()), table("model.embed_tokens.low.weight", c.low())}
	n.given = cut.take(span{name: "lm_head.given_high.weight", keepRows: c.high(), keepCols: c.Dim, std: std}, false)
}

// each calls f with every matrix that has a transposed copy.
func (n *network) each(f func(*matrix)) {
	for i := range n.tables {
		f(&n.tables[i])
	}
	for i := range n.layers {
		l := &n.layers[i]
		for _, m := range []*matrix{&l.q, &l.k, &l.v, &l.o, &l.gate, &l.up, &l.down} {
			f(m)
		}
	}
}
