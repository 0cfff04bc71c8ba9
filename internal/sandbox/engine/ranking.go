package engine

import (
	"math"
	"slices"

	"trainer/internal/sandbox/engine/kernel"
)

// before is the order of ranks: by probability, equal ones by id.
func (c Candidate) before(d Candidate) bool {
	return c.Logprob > d.Logprob || c.Logprob == d.Logprob && c.ID < d.ID
}

// heap keeps the first candidate by rank at its front.
type heap []Candidate

// order makes a heap of what lies in any order.
func (h heap) order() {
	for i := len(h)/2 - 1; i >= 0; i-- {
		h.sink(i)
	}
}

func (h heap) sink(i int) {
	for {
		child := 2*i + 1
		if child >= len(h) {
			return
		}
		if child+1 < len(h) && h[child+1].before(h[child]) {
			child++
		}
		if !h[child].before(h[i]) {
			return
		}
		h[i], h[child] = h[child], h[i]
		i = child
	}
}

func (h *heap) pop() Candidate {
	first := (*h)[0]
	last := len(*h) - 1
	(*h)[0] = (*h)[last]
	*h = (*h)[:last]
	h.sink(0)
	return first
}

// ranking yields the ids that may follow, by rank. Under a two-level head an id is never more probable than its high part,
// so a high part is opened only when the ids known so far do not all come before anything in it. The room it has taken
// serves the next one that is begun.
type ranking struct {
	m      *Model
	mem    *arena
	hidden []float32
	known  heap
	closed heap // high parts that are not opened; ID is the part
	batch  int  // how many are opened next

	most  int     // how many ids are still wanted
	floor float32 // what is below it is not among them
	spare heap
}

// rankSlack is far above the rounding by which a log-probability may exceed that of its high part.
const rankSlack = 1e-4

// begin ranks the ids after a hidden row, whose logits of the first level are known. At most most of them will be asked
// for. Scratch is taken from mem.
func (r *ranking) begin(m *Model, hidden, logits []float32, most int, mem *arena) {
	r.m, r.hidden, r.mem, r.batch = m, hidden, mem, 4
	r.known, r.closed, r.most, r.floor = r.known[:0], r.closed[:0], most, float32(math.Inf(-1))
	if m.base.config.twoLevel() {
		r.closed = r.closed.add(logits[:m.base.config.high()], 0, 0, r.floor, mem)
		r.closed.order()
	} else {
		r.known = r.known.add(logits[:m.base.config.Vocab], 0, 0, r.floor, mem)
		r.known.order()
	}
}

// add appends the log-softmax of logits plus what comes before, with ids from first on, but for what is below floor. The
// heap is out of order then.
func (h heap) add(logits []float32, first int, before, floor float32, mem *arena) heap {
	mark := mem.mark()
	logprobs := mem.take(len(logits))
	fill(logprobs, logits, before, mem)
	h = slices.Grow(h, len(logits))
	for i, l := range logprobs {
		if !(l < floor) {
			h = append(h, Candidate{int32(first + i), l})
		}
	}
	mem.release(mark)
	return h
}

// next returns the next id by rank; ok is false when there is none.
func (r *ranking) next() (c Candidate, ok bool) {
	for len(r.closed) > 0 && !(len(r.known) > 0 && r.known[0].Logprob > r.closed[0].Logprob+rankSlack) {
		r.open()
	}
	if len(r.known) == 0 || r.most == 0 {
		return Candidate{}, false
	}
	r.most--
	return r.known.pop(), true
}

// open adds the ids of the most probable closed parts to the known ones: of few parts at first, then of ever more, so that
// putting them in order costs little where all must be opened.
func (r *ranking) open() {
	parts := make([]Candidate, min(r.batch, len(r.closed)))
	r.batch = min(2*r.batch, headRows)
	for i := range parts {
		parts[i] = r.closed.pop()
	}
	c := r.m.base.config
	mark := r.mem.mark()
	logits := r.m.lowLogits(r.hidden, len(parts), func(i int) int { return int(parts[i].ID) }, r.mem)
	for i, part := range parts {
		high := int(part.ID)
		own := logits[i*r.m.heads[1].out:]
		r.known = r.known.add(own[:c.lowIn(high)], high*c.low(), part.Logprob, r.floor, r.mem)
	}
	r.known.order()
	r.mem.release(mark)
	if len(r.known) > r.most {
		r.spare = r.spare[:0]
		for range r.most {
			r.spare = append(r.spare, r.known.pop()) // falling, which is a heap
		}
		r.known, r.spare = r.spare, r.known
		r.floor = r.known[len(r.known)-1].Logprob
	}
}

// lowLogits computes the second level's logits [n][out] after a hidden row, for n high parts.
func (m *Model) lowLogits(hidden []float32, n int, high func(i int) int, mem *arena) []float32 {
	d := len(hidden)
	logits, x := mem.take(n*m.heads[1].out), mem.take(n*d)
	for i := range n {
		row := x[i*d : (i+1)*d]
		copy(row, hidden)
		kernel.Add(row, m.given.w[high(i)*d:(high(i)+1)*d])
	}
	m.heads[1].forward(logits, x, n, dropping{}, mem)
	return logits
}
