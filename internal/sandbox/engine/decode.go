package engine

import (
	"context"

	"trainer/internal/sandbox/engine/kernel"
)

// pageTokens is how many tokens of a completion's keys and values are allocated at a time.
const pageTokens = 64

// page holds keys and values of up to pageTokens tokens of one completion.
type page struct {
	keys   [][]float32 // a layer: [Dim][pageTokens]
	values [][]float32 // a layer: [pageTokens][Dim]
}

func newPage(c Config) page {
	p := page{keys: make([][]float32, c.Layers), values: make([][]float32, c.Layers)}
	slab := make([]float32, 2*c.Layers*c.Dim*pageTokens)
	for l := range c.Layers {
		n := c.Dim * pageTokens
		p.keys[l], p.values[l], slab = slab[:n:n], slab[n:2*n:2*n], slab[2*n:]
	}
	return p
}

// decoder extends some completions, a token each at a time; those that end leave it.
type decoder struct {
	m      *Model
	r      *SampleRequest
	rows   []*row
	made   int       // tokens that each row has
	hidden []float32 // [rows][Dim] after the last norm
	mem    arena
	choose chooser
}

func (w *Weights) decode(ctx context.Context, rows []*row, r *SampleRequest) error {
	spread(len(rows), func(from, to int) {
		d := &decoder{m: w.forward(), r: r, rows: append([]*row(nil), rows[from:to]...)}
		d.run(ctx)
	})
	return ctx.Err()
}

func (d *decoder) run(ctx context.Context) {
	dim := d.m.base.config.Dim
	d.hidden = make([]float32, len(d.rows)*dim)
	for i, row := range d.rows {
		copy(d.hidden[i*dim:(i+1)*dim], row.prefix.last)
	}
	for ctx.Err() == nil {
		d.mem.reset()
		if d.r.Then != nil && d.made == d.r.ThenAt {
			d.goOver(d.r.Then)
		}
		d.extend()
		if len(d.rows) == 0 {
			return
		}
		d.forward()
	}
}

// goOver lets w go on with the rows: the prompts and the tokens so far run through its layers.
func (d *decoder) goOver(w *Weights) {
	d.m = w.forward()
	again := map[*prefix]*prefix{}
	for _, row := range d.rows {
		p := again[row.prefix]
		if p == nil {
			p = &prefix{tokens: row.prefix.tokens}
			again[row.prefix] = p
		}
		row.prefix, row.pages = p, nil
	}
	w.prefill(d.rows, &SampleRequest{})
	made := d.made
	for d.made = 1; ; d.made++ {
		d.mem.reset()
		d.forward()
		if d.made == made {
			break
		}
	}
	d.mem.reset()
}

// extend gives every row its next token; rows that end leave.
func (d *decoder) extend() {
	chosen := d.choose.next(d, d.hidden)
	going := d.rows[:0]
	for i, row := range d.rows {
		out := row.out
		out.Tokens, out.Logprobs = append(out.Tokens, chosen[i].ID), append(out.Logprobs, chosen[i].Logprob)
		out.Stopped = row.ending.after(chosen[i].ID)
		if !out.Stopped && len(out.Tokens) < d.r.MaxTokens {
			going = append(going, row)
		}
	}
	clear(d.rows[len(going):])
	d.rows = going
	d.made++
}

// forward runs the newest token of every row through the layers. It is the training pass for one more token: each number is
// the same sum in the same order.
func (d *decoder) forward() {
	c := d.m.base.config
	n := len(d.rows)
	wide := func(width int) []float32 { return d.mem.take(n * width) }
	x, normed, root := wide(c.Dim), wide(c.Dim), wide(1)
	q, k, v, mixed := wide(c.Dim), wide(c.Dim), wide(c.Dim), wide(c.Dim)
	gate, up, hidden := wide(c.Hidden), wide(c.Hidden), wide(c.Hidden)
	mid := wide(c.Dim)
	for i, row := range d.rows {
		d.m.embed(x[i*c.Dim:(i+1)*c.Dim], row.out.Tokens[d.made-1])
		if (d.made-1)%pageTokens == 0 {
			row.pages = append(row.pages, newPage(c))
		}
	}
	mark := d.mem.mark()
	for l := range d.m.blocks {
		b := &d.m.blocks[l]
		norm(normed, root, x, b.norm1)
		b.q.forward(q, normed, n, dropping{}, &d.mem)
		b.k.forward(k, normed, n, dropping{}, &d.mem)
		b.v.forward(v, normed, n, dropping{}, &d.mem)
		d.rotate(q)
		d.rotate(k)
		d.store(l, k, v)
		d.attend(l, mixed, q)
		b.o.forward(mid, mixed, n, dropping{}, &d.mem)
		kernel.Add(mid, x)
		norm(normed, root, mid, b.norm2)
		b.gate.forward(gate, normed, n, dropping{}, &d.mem)
		b.up.forward(up, normed, n, dropping{}, &d.mem)
		kernel.SwiGLU(hidden, gate, up)
		b.dn.forward(x, hidden, n, dropping{}, &d.mem)
		kernel.Add(x, mid)
		d.mem.release(mark)
	}
	d.hidden = d.hidden[:n*c.Dim]
	norm(d.hidden, root, x, d.m.final)
}

// rotate turns x by the rows' positions.
func (d *decoder) rotate(x []float32) {
	c := d.m.base.config
	half := c.headDim() / 2
	for i, row := range d.rows {
		at := (len(row.prefix.tokens) + d.made - 1) * half
		cos, sin := d.m.base.cos[at:at+half], d.m.base.sin[at:at+half]
		for rest := x[i*c.Dim : (i+1)*c.Dim]; len(rest) > 0; rest = rest[2*half:] {
			kernel.Rotate(rest[:half], rest[half:2*half], cos, sin, 1)
		}
	}
}

// store puts the newest keys and values of layer l into the rows' pages.
func (d *decoder) store(l int, k, v []float32) {
	dim := d.m.base.config.Dim
	at := (d.made - 1) % pageTokens
	for i, row := range d.rows {
		p := &row.pages[len(row.pages)-1]
		for j, x := range k[i*dim : (i+1)*dim] {
			p.keys[l][j*pageTokens+at] = x
		}
		copy(p.values[l][at*dim:(at+1)*dim], v[i*dim:(i+1)*dim])
	}
}

// attend sets mixed to the weighted mean of values. Rows of one prompt meet its keys and values together; their own tokens
// follow a page at a time, in the order of positions, so that every sum is that of the training pass.
func (d *decoder) attend(l int, mixed, q []float32) {
	for from := 0; from < len(d.rows); {
		to := from + 1
		for to < len(d.rows) && d.rows[to].prefix == d.rows[from].prefix {
			to++
		}
		d.attendTogether(l, mixed, q, from, to)
		from = to
	}
}

// attendTogether is attend for the rows [from, to), all of one prompt.
func (d *decoder) attendTogether(l int, mixed, q []float32, from, to int) {
	c := d.m.base.config
	p, n, hd := d.rows[from].prefix, to-from, c.headDim()
	length := len(p.tokens) + d.made
	// Scores of a page may begin at any column; a page's worth of room past the last one takes what its padding gives.
	stride := pad16(length) + pageTokens
	mark := d.mem.mark()
	w := d.mem.take(n * stride)
	scale := c.attentionScale()
	for h := range c.Heads {
		at := from*c.Dim + h*hd
		queries, out := kernel.Rows(q[at:], c.Dim), kernel.Rows(mixed[at:], c.Dim)
		kernel.Mul(kernel.Rows(w, stride), queries, kernel.Rows(p.keys[l][h*hd*p.width:], p.width), n, p.width, hd, false)
		for i := range n {
			d.rows[from+i].score(l, h*hd, w[i*stride:], q[at+i*c.Dim:], len(p.tokens), hd)
			kernel.Softmax(w[i*stride:i*stride+length], scale)
		}
		kernel.Mul(out, kernel.Rows(w, stride), kernel.Rows(p.values[l][h*hd:], c.Dim), n, hd, len(p.tokens), false)
		for i := range n {
			d.rows[from+i].mix(l, h*hd, mixed[at+i*c.Dim:], w[i*stride+len(p.tokens):], d.made, hd, c.Dim)
		}
	}
	d.mem.release(mark)
}

// score appends the scores of a row's own tokens to w, from column at on, and those of the rest of the last page, which mean
// nothing; query is [hd].
func (r *row) score(l, first int, w, query []float32, at, hd int) {
	for i := range r.pages {
		keys := kernel.Rows(r.pages[i].keys[l][first*pageTokens:], pageTokens)
		kernel.Mul(kernel.Rows(w[at+i*pageTokens:], pageTokens), kernel.Rows(query, hd), keys, 1, pageTokens, hd, false)
	}
}

// mix adds the weighted values of a row's own tokens to out [hd].
func (r *row) mix(l, first int, out, w []float32, made, hd, dim int) {
	for i := range r.pages {
		n := min(made-i*pageTokens, pageTokens)
		values := kernel.Rows(r.pages[i].values[l][first:], dim)
		kernel.Mul(kernel.Rows(out, hd), kernel.Rows(w[i*pageTokens:], n), values, 1, hd, n, true)
	}
}
