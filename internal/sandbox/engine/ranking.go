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

	given int  // how many ids it has yielded
	rest  bool // known is in order from behind
	keys  [2][]uint64
}

// restAfter is how many ids come from a heap. Where still more are wanted, what is left is put in order at once.
const restAfter = 512

// rankSlack is far above the rounding by which a log-probability may exceed that of its high part.
const rankSlack = 1e-4

// begin ranks the ids after a hidden row, whose logits of the first level are known. At most most of them will be asked
// for. Scratch is taken from mem.
func (r *ranking) begin(m *Model, hidden, logits []float32, most int, mem *arena) {
	r.reset(most)
	r.m, r.hidden, r.mem, r.batch = m, hidden, mem, 4
	if m.base.config.twoLevel() {
		r.closed = r.closed.add(logits[:m.base.config.high()], 0, 0, r.floor, mem)
		r.closed.order()
	} else {
		r.known = r.known.add(logits[:m.base.config.Vocab], 0, 0, r.floor, mem)
		r.known.order()
	}
}

func (r *ranking) reset(most int) {
	r.known, r.closed, r.most, r.floor = r.known[:0], r.closed[:0], most, float32(math.Inf(-1))
	r.given, r.rest = 0, false
}

// ranked makes r a ranking of all ids, whose log-probabilities are known.
func (r *ranking) ranked(logprobs []float32) {
	r.reset(len(logprobs))
	for i, l := range logprobs {
		r.known = append(r.known, Candidate{int32(i), l})
	}
	r.known.order()
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
	r.given++
	if r.given > restAfter && !r.rest && len(r.closed) == 0 {
		r.orderRest()
	}
	if r.rest {
		last := len(r.known) - 1
		c, r.known = r.known[last], r.known[:last]
		return c, true
	}
	return r.known.pop(), true
}

// orderRest puts the known ids in order, the first by rank last. The order of a key is that of its log-probability, then
// the falling one of its id.
func (r *ranking) orderRest() {
	from, to := resize(r.keys[0], len(r.known)), resize(r.keys[1], len(r.known))
	for i, c := range r.known {
		bits := math.Float32bits(c.Logprob)
		bits ^= uint32(int32(bits)>>31) | 1<<31
		from[i] = uint64(bits)<<32 | uint64(^uint32(c.ID))
	}
	from, to = radixSort(from, to)
	for i, key := range from {
		bits := uint32(key >> 32)
		bits ^= uint32(int32(^bits)>>31) | 1<<31
		r.known[i] = Candidate{int32(^uint32(key)), math.Float32frombits(bits)}
	}
	r.keys, r.rest = [2][]uint64{from, to}, true
}

// radixSort sorts keys, which are not empty, and returns them and the other of the two slices, which is scratch.
func radixSort(keys, scratch []uint64) (sorted, other []uint64) {
	const width = 11
	for shift := 0; shift < 64; shift += width {
		digit := func(key uint64) uint64 { return key >> shift & (1<<width - 1) }
		var at [1 << width]int
		for _, key := range keys {
			at[digit(key)]++
		}
		if at[digit(keys[0])] == len(keys) {
			continue
		}
		sum := 0
		for d, n := range at {
			at[d], sum = sum, sum+n
		}
		for _, key := range keys {
			d := digit(key)
			scratch[at[d]] = key
			at[d]++
		}
		keys, scratch = scratch, keys
	}
	return keys, scratch
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
