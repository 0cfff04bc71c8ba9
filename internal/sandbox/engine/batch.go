package engine

import "slices"

// Batch is sequences of token ids, each [T] with T from 0 to the context. Targets has the shape of Input: entry t is the id
// whose probability after Input[:t+1] is asked for. All ids are in the vocabulary; shapes and ids are the caller's duty.
type Batch struct{ Input, Targets [][]int32 }

// plan is the batch last seen, laid end to end, and what is known about it.
type plan struct {
	tokens, targets []int32
	lengths         []int
	need            []bool
	logprobs        []float32 // of the rows needed
	derivative      []float32 // of Backward
	scored          bool      // the shards hold the forward pass of this batch under the weights now
}

// holds reports whether b is the batch of the plan.
func (p *plan) holds(b Batch) bool {
	if len(p.lengths) != len(b.Input) {
		return false
	}
	at := 0
	for i, in := range b.Input {
		n := p.lengths[i]
		if n != len(in) || !slices.Equal(p.tokens[at:at+n], in) || !slices.Equal(p.targets[at:at+n], b.Targets[i]) {
			return false
		}
		at += n
	}
	return true
}

// set makes b the batch of the plan, with nothing known about it.
func (p *plan) set(b Batch) {
	p.tokens, p.targets, p.lengths, p.scored = p.tokens[:0], p.targets[:0], p.lengths[:0], false
	for i, in := range b.Input {
		p.tokens, p.targets = append(p.tokens, in...), append(p.targets, b.Targets[i]...)
		p.lengths = append(p.lengths, len(in))
	}
	n := len(p.tokens)
	p.need, p.logprobs, p.derivative = resize(p.need, n), resize(p.logprobs, n), resize(p.derivative, n)
}

func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

// setNeed says which rows are wanted; nil means all.
func (p *plan) setNeed(need [][]bool) {
	at := 0
	for i, n := range p.lengths {
		for t := range n {
			p.need[at+t] = need == nil || need[i][t]
		}
		at += n
	}
}

// cut divides the sequences among the shards, in order and with about equal tokens, and each shard's into groups.
func (p *plan) cut(shards []*shard) {
	seq, at := 0, 0
	for k, s := range shards {
		s.parts = s.parts[:0]
		last := k == len(shards)-1
		for seq < len(p.lengths) && (last || at < len(p.tokens)*(k+1)/len(shards)) {
			s.add(seq, at, p.lengths[seq])
			at += p.lengths[seq]
			seq++
		}
	}
}

// part is the sequences [from, to) of a plan, tokens [at, at+tokens).
type part struct{ from, to, at, tokens int }

// add gives a sequence to the shard: to the group before it, if there is room.
func (s *shard) add(seq, at, length int) {
	if n := len(s.parts); n > 0 && s.parts[n-1].tokens+length <= groupTokens {
		s.parts[n-1].to++
		s.parts[n-1].tokens += length
		return
	}
	s.parts = append(s.parts, part{seq, seq + 1, at, length})
}

// Logprobs returns the natural logarithm of the probability of every target, [B][T]. need, of the same shape, says which
// are wanted, nil means all; the others are 0 and cost less. The result is the caller's. A row's bits depend on its own
// sequence alone.
func (m *Model) Logprobs(b Batch, need [][]bool) [][]float32 {
	p := &m.plan
	p.set(b)
	p.setNeed(need)
	p.cut(m.shards[:])
	m.each(func(s *shard) { s.score(p) })
	p.scored = true
	out := make([][]float32, len(b.Input))
	flat := slices.Clone(p.logprobs)
	for i, n := range p.lengths {
		out[i], flat = flat[:n:n], flat[n:]
	}
	return out
}

// Backward adds to the gradient the derivative of a loss whose derivative by the log-probabilities of b is d, of b's shape.
// Rows with d of 0 are skipped. The forward pass is that of the Logprobs before where batch and weights are the same, and
// is computed again otherwise; the bits are equal.
func (m *Model) Backward(b Batch, d [][]float32) {
	p := &m.plan
	if !p.scored || !p.holds(b) || !p.covers(d) {
		p.set(b)
		p.needWhere(d)
		p.cut(m.shards[:])
	}
	at := 0
	for i, n := range p.lengths {
		copy(p.derivative[at:at+n], d[i])
		at += n
	}
	m.each(func(s *shard) { s.backward(p) })
	m.gather()
}

// covers reports whether every row with a derivative was scored.
func (p *plan) covers(d [][]float32) bool {
	at := 0
	for i, n := range p.lengths {
		for t := range n {
			if d[i][t] != 0 && !p.need[at+t] {
				return false
			}
		}
		at += n
	}
	return true
}

func (p *plan) needWhere(d [][]float32) {
	at := 0
	for i, n := range p.lengths {
		for t := range n {
			p.need[at+t] = d[i][t] != 0
		}
		at += n
	}
}
