package tokenizer

import "unicode/utf8"

// merging is the working memory of one word: its tokens, and their ends in it.
type merging struct {
	syms, cuts []int32
	unknownEnd int // where the newest unknown token ends

	ranks      []uint64    // of few tokens: the merge of each with the next
	prev, next []int32     // of many: the neighbours
	heap       []candidate // and the merges that may be done
}

// candidate is a merge of the token at a place with the one behind it.
type candidate struct {
	merge uint64 // rank<<32 | id
	at    int32
}

// few is up to how many tokens a scan for the best merge beats a heap.
const few = 48

// symbols makes the tokens of w before any merge.
func (g *merging) symbols(m *bpe, w string) {
	g.syms, g.cuts, g.unknownEnd = g.syms[:0], g.cuts[:0], -1
	if m.byteLevel {
		for i := range len(w) {
			if id := m.symbols[w[i]]; id >= 0 {
				g.add(id, i+1)
			} else {
				g.unknown(m, i, i+1)
			}
		}
		return
	}
	for i := 0; i < len(w); {
		_, n := utf8.DecodeRuneInString(w[i:])
		if id, ok := m.ids[w[i:i+n]]; ok {
			g.add(id, i+n)
		} else if m.byteFallback {
			for j := i; j < i+n; j++ {
				g.add(m.symbols[w[j]], j+1)
			}
		} else {
			g.unknown(m, i, i+n)
		}
		i += n
	}
}

func (g *merging) add(id int32, end int) {
	g.syms, g.cuts = append(g.syms, id), append(g.cuts, int32(end))
}

// unknown is the bytes [from, end), which the vocabulary lacks: nothing where it has no token for such.
func (g *merging) unknown(m *bpe, from, end int) {
	switch {
	case m.unknown < 0:
		return
	case m.fuseUnknown && g.unknownEnd == from:
		g.cuts[len(g.cuts)-1] = int32(end)
	default:
		g.add(m.unknown, end)
	}
	g.unknownEnd = end
}

// merge joins tokens until no merge is left: each time the one of the lowest rank, of several the leftmost.
func (g *merging) merge(table *mergeTable) {
	if len(g.syms) < few {
		g.mergeFew(table)
	} else {
		g.mergeMany(table)
	}
}

func (g *merging) mergeFew(table *mergeTable) {
	syms, cuts, ranks := g.syms, g.cuts, g.ranks[:0]
	for i := 0; i+1 < len(syms); i++ {
		ranks = append(ranks, table.get(syms[i], syms[i+1]))
	}
	for len(ranks) > 0 {
		best := 0
		for i, r := range ranks {
			if r>>32 < ranks[best]>>32 {
				best = i
			}
		}
		if ranks[best] == noMerge {
			break
		}
		syms[best], cuts[best] = int32(uint32(ranks[best])), cuts[best+1]
		syms = append(syms[:best+1], syms[best+2:]...)
		cuts = append(cuts[:best+1], cuts[best+2:]...)
		ranks = append(ranks[:best], ranks[best+1:]...)
		if best > 0 {
			ranks[best-1] = table.get(syms[best-1], syms[best])
		}
		if best < len(ranks) {
			ranks[best] = table.get(syms[best], syms[best+1])
		}
	}
	g.syms, g.cuts, g.ranks = syms, cuts, ranks
}

// mergeMany is mergeFew in n log n: tokens in a list, merges in a heap, those that are no longer possible dropped when they are met.
func (g *merging) mergeMany(table *mergeTable) {
	n := len(g.syms)
	g.prev, g.next, g.heap = g.prev[:0], g.next[:0], g.heap[:0]
	for i := range n {
		g.prev, g.next = append(g.prev, int32(i-1)), append(g.next, int32(i+1))
	}
	for i := range n - 1 {
		g.offer(table, int32(i))
	}
	const gone = -1
	for len(g.heap) > 0 {
		c := g.pop()
		if g.syms[c.at] == gone || int(g.next[c.at]) == n {
			continue
		}
		after := g.next[c.at]
		if now := table.get(g.syms[c.at], g.syms[after]); now != c.merge {
			continue
		}
		g.syms[c.at], g.cuts[c.at], g.syms[after] = int32(uint32(c.merge)), g.cuts[after], gone
		g.next[c.at] = g.next[after]
		if next := g.next[c.at]; int(next) < n {
			g.prev[next] = c.at
			g.offer(table, c.at)
		}
		if before := g.prev[c.at]; before >= 0 {
			g.offer(table, before)
		}
	}
	k := 0
	for i := int32(0); int(i) < n; i = g.next[i] {
		g.syms[k], g.cuts[k] = g.syms[i], g.cuts[i]
		k++
	}
	g.syms, g.cuts = g.syms[:k], g.cuts[:k]
}

// offer puts the merge of the token at a place with the next one into the heap, if there is one.
func (g *merging) offer(table *mergeTable, at int32) {
	m := table.get(g.syms[at], g.syms[g.next[at]])
	if m == noMerge {
		return
	}
	g.heap = append(g.heap, candidate{m, at})
	h := g.heap
	for i := len(h) - 1; i > 0; {
		up := (i - 1) / 2
		if !h[i].before(h[up]) {
			break
		}
		h[i], h[up] = h[up], h[i]
		i = up
	}
}

func (c candidate) before(d candidate) bool {
	if c.merge>>32 != d.merge>>32 {
		return c.merge>>32 < d.merge>>32
	}
	return c.at < d.at
}

// pop takes the best merge out of the heap.
func (g *merging) pop() candidate {
	h := g.heap
	top, last := h[0], len(h)-1
	h[0] = h[last]
	h = h[:last]
	for i := 0; ; {
		down := 2*i + 1
		if down >= len(h) {
			break
		}
		if down+1 < len(h) && h[down+1].before(h[down]) {
			down++
		}
		if !h[down].before(h[i]) {
			break
		}
		h[i], h[down] = h[down], h[i]
		i = down
	}
	g.heap = h
	return top
}
