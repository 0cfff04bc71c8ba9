package engine

import (
	"sync"

	"trainer/internal/sandbox/engine/kernel"
)

// keepFloats is how many numbers of activations a shard keeps between Logprobs and Backward, 32 MiB; groups beyond it are
// computed again.
const keepFloats = 8 << 20

// shard is one run of a batch's sequences: its groups, its gradient, its scratch.
type shard struct {
	m      *Model
	parts  []part
	groups []*group // kept ones first, then one that the rest take turns with
	kept   int      // groups that stay as they are until the weights change
	grad   []float32
	used   bool // grad may hold something else than zero
	mem    arena
}

// each runs f on every shard, side by side.
func (m *Model) each(f func(*shard)) {
	var wg sync.WaitGroup
	for _, s := range m.shards[1:] {
		wg.Go(func() { f(s) })
	}
	f(m.shards[0])
	wg.Wait()
}

// group returns the i-th group; those past the kept ones share one.
func (s *shard) group(i int) *group {
	i = min(i, s.kept)
	for len(s.groups) <= i {
		s.groups = append(s.groups, &group{m: s.m})
	}
	return s.groups[i]
}

// countKept decides how many groups can be kept.
func (s *shard) countKept() {
	floats := 0
	for s.kept = 0; s.kept < len(s.parts); s.kept++ {
		floats += s.parts[s.kept].tokens * s.m.floatsPerToken()
		if floats > s.m.keep {
			return
		}
	}
}

// floatsPerToken is about what a group takes from its arena for a token.
func (m *Model) floatsPerToken() int {
	c := m.base.config
	rank := 0
	if m.adapter != nil {
		rank = pad16(m.lora.Rank)
	}
	return c.Layers*(8*c.Dim+3*c.Hidden+7*rank+c.Heads*attentionKept) + 2*c.Dim
}

// score fills p.logprobs for the shard's sequences.
func (s *shard) score(p *plan) {
	s.countKept()
	for i, part := range s.parts {
		g := s.group(i)
		g.forward(p, part)
		g.logprobs(p)
	}
}

// backward adds the gradient of p.derivative to the shard's own.
func (s *shard) backward(p *plan) {
	if !p.scored {
		s.countKept()
	}
	for i, part := range s.parts {
		if !p.hot(part) {
			continue
		}
		g := s.group(i)
		if !p.scored || i >= s.kept {
			g.forward(p, part)
		}
		if s.grad == nil {
			s.grad = make([]float32, len(s.m.params))
		}
		s.used = true
		s.mem.reset()
		g.backward(p, s.grad, &s.mem)
	}
}

// hot reports whether any row of the part has a derivative.
func (p *plan) hot(part part) bool {
	for _, d := range p.derivative[part.at : part.at+part.tokens] {
		if d != 0 {
			return true
		}
	}
	return false
}

// gather adds the shards' gradients to the model's in order.
func (m *Model) gather() {
	for _, s := range m.shards {
		if s.used {
			kernel.Add(m.grad, s.grad)
			clear(s.grad)
			s.used, m.touched = false, true
		}
	}
}
