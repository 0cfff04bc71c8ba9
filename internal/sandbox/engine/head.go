package engine

import "trainer/internal/sandbox/engine/kernel"

// headRows is how many rows' logits exist at a time.
const headRows = 64

// target is where a target stands in one level of the head: its column, and how many columns exist for it.
type target struct{ column, valid int }

// target returns the place of id in a level. Columns from valid on stand for no id and take no part.
func (c Config) target(level int, id int32) target {
	if !c.twoLevel() {
		return target{int(id), c.Vocab}
	}
	at := c.parts(id)
	if level == 0 {
		return target{at[0], c.high()}
	}
	return target{at[1], c.lowIn(at[0])}
}

// headChunk is some rows of the head going through its levels.
type headChunk struct {
	rows   []int     // tokens of the group
	ids    []int32   // their targets, by token of the group
	x      []float32 // [rows][Dim] into the level
	logits []float32 // [rows][columns]
	z      []float32 // of the adapter
	keys   []uint64  // of the rows: see group
}

// chunks yields rows in pieces, with room for the logits of the widest level.
func (g *group) chunks(p *plan, rows []int, mem *arena, yield func(first int, h *headChunk)) {
	mark := mem.mark()
	widest := 0
	for _, l := range g.m.heads {
		widest = max(widest, l.out)
	}
	x, logits := mem.take(headRows*g.m.base.config.Dim), mem.take(headRows*widest)
	inner := mem.mark()
	for first := 0; first < len(rows); first += headRows {
		part := rows[first:min(first+headRows, len(rows))]
		yield(first, &headChunk{rows: part, ids: p.targets[g.part.at:], x: x, logits: logits, keys: g.keysOf(part)})
		mem.release(inner)
	}
	mem.release(mark)
}

// keysOf are the keys of some tokens; nil where nothing is dropped.
func (g *group) keysOf(rows []int) (keys []uint64) {
	if len(g.keys) == 0 {
		return nil
	}
	for _, row := range rows {
		keys = append(keys, g.keys[row])
	}
	return keys
}

// level computes the logits of one level.
func (h *headChunk) level(g *group, level int, mem *arena) {
	d := g.m.base.config.Dim
	for i, row := range h.rows {
		x := h.x[i*d : (i+1)*d]
		copy(x, g.normed[row*d:(row+1)*d])
		if level == 1 {
			high := g.m.base.config.parts(h.ids[row])[0]
			kernel.Add(x, g.m.given.w[high*d:(high+1)*d])
		}
	}
	head := &g.m.heads[level]
	h.z = head.forward(h.logits, h.x, len(h.rows), g.drop(head, h.keys), mem)
}

// logSumExps scores the wanted rows: it leaves one log-sum-exp a row and level for the backward pass and the
// log-probabilities themselves.
func (g *group) logSumExps(p *plan) {
	c := g.m.base.config
	for level := range g.m.heads {
		g.lse[level] = g.mem.take(len(g.rows))
	}
	g.scores = g.mem.take(len(g.rows))
	clear(g.scores)
	g.chunks(p, g.rows, &g.mem, func(first int, h *headChunk) {
		for level, head := range g.m.heads {
			h.level(g, level, &g.mem)
			for i, row := range h.rows {
				t := c.target(level, h.ids[row])
				logits := h.logits[i*head.out : i*head.out+t.valid]
				logit := logits[t.column]
				lse := kernel.LogSumExp(logits)
				g.lse[level][first+i] = lse
				g.scores[first+i] += logit - lse
			}
		}
	})
}

// logprobs writes the scores to the plan, 0 where none was wanted.
func (g *group) logprobs(p *plan) {
	clear(p.logprobs[g.part.at : g.part.at+g.part.tokens])
	for i, row := range g.rows {
		p.logprobs[g.part.at+row] = g.scores[i]
	}
}

// headBack sets the rows of dn that have a derivative, and adds the head's gradient.
func (g *group) headBack(p *plan, dn, grad []float32, mem *arena) {
	c := g.m.base.config
	d := p.derivative[g.part.at:]
	g.hotRows, g.hotIndex = g.hotRows[:0], g.hotIndex[:0]
	for i, row := range g.rows {
		if d[row] != 0 {
			g.hotRows, g.hotIndex = append(g.hotRows, row), append(g.hotIndex, i)
		}
	}
	dx := mem.take(headRows * c.Dim)
	g.chunks(p, g.hotRows, mem, func(first int, h *headChunk) {
		for level := range g.m.heads {
			head := &g.m.heads[level]
			h.level(g, level, mem)
			for i, row := range h.rows {
				h.rowBack(i, c.target(level, h.ids[row]), head.out, g.lse[level][g.hotIndex[first+i]], d[row])
			}
			head.backward(dx, h.logits, h.x, h.z, len(h.rows), g.drop(head, h.keys), grad, false, mem)
			for i, row := range h.rows {
				from := dx[i*c.Dim : (i+1)*c.Dim]
				kernel.Add(dn[row*c.Dim:(row+1)*c.Dim], from)
				if level == 1 && g.m.adapter == nil {
					at := g.m.given.off + c.parts(h.ids[row])[0]*c.Dim
					kernel.Add(grad[at:at+c.Dim], from)
				}
			}
		}
	})
}

// rowBack turns the logits of row i into their derivative: d·(1 at the target - softmax), 0 where no id is.
func (h *headChunk) rowBack(i int, t target, columns int, lse, d float32) {
	row := h.logits[i*columns : (i+1)*columns]
	kernel.ExpScaled(row[:t.valid], row[:t.valid], 1, lse)
	kernel.Scale(row[:t.valid], -d)
	row[t.column] += d
	clear(row[t.valid:])
}
