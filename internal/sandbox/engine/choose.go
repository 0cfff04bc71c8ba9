package engine

import "trainer/internal/sandbox/engine/kernel"

// chooser picks next tokens. It keeps room between the calls.
type chooser struct {
	chosen []Candidate
	rank   ranking
	kept   kept
}

// next picks a token for every row of d after hidden [rows][Dim].
func (c *chooser) next(d *decoder, hidden []float32) []Candidate {
	c.chosen = resize(c.chosen, len(d.rows))
	dim, s := d.m.base.config.Dim, &d.r.Sampling
	head := &d.m.heads[0]
	mark := d.mem.mark()
	logits := d.mem.take(min(headRows, len(d.rows)) * head.out)
	inner := d.mem.mark()
	for from := 0; from < len(d.rows); from += headRows {
		rows := d.rows[from:min(from+headRows, len(d.rows))]
		x, chosen := hidden[from*dim:(from+len(rows))*dim], c.chosen[from:]
		head.forward(logits, x, len(rows), dropping{}, &d.mem)
		if d.m.base.config.twoLevel() && s.plain() {
			d.pickPairs(rows, x, logits, chosen)
		} else {
			for i, row := range rows {
				mark := d.mem.mark()
				chosen[i] = d.pick(row, x[i*dim:(i+1)*dim], logits[i*head.out:(i+1)*head.out])
				d.mem.release(mark)
			}
		}
		d.mem.release(inner)
	}
	d.mem.release(mark)
	return c.chosen
}

func (s *Sampling) greedy() bool    { return s.Temperature < GreedyBelow }
func (s *Sampling) truncates() bool { return s.TopK > 0 || s.TopP < 1 }

// plain: what is drawn from is the model's own distribution.
func (s *Sampling) plain() bool { return s.Temperature == 1 && !s.truncates() }

// pickPairs draws the high parts of some rows, then the low ones: where nothing is tempered or truncated, that is the joint
// distribution, at the cost of one product for all rows.
func (d *decoder) pickPairs(rows []*row, hidden, logits []float32, chosen []Candidate) {
	c := d.m.base.config
	x := d.mem.take(len(hidden))
	copy(x, hidden)
	for i, row := range rows {
		own := logits[i*d.m.heads[0].out:]
		chosen[i] = pickFrom(own[:c.high()], row.draws.uniform(uint64(2*d.made)), &d.mem)
		high := int(chosen[i].ID)
		kernel.Add(x[i*c.Dim:(i+1)*c.Dim], d.m.given.w[high*c.Dim:(high+1)*c.Dim])
	}
	head := &d.m.heads[1]
	lows := d.mem.take(len(rows) * head.out)
	head.forward(lows, x, len(rows), dropping{}, &d.mem)
	for i, row := range rows {
		high := int(chosen[i].ID)
		low := pickFrom(lows[i*head.out:i*head.out+c.lowIn(high)], row.draws.uniform(uint64(2*d.made+1)), &d.mem)
		chosen[i] = Candidate{int32(high*c.low()) + low.ID, chosen[i].Logprob + low.Logprob}
	}
}

// pickFrom draws from the softmax of logits.
func pickFrom(logits []float32, u float64, mem *arena) Candidate {
	mark := mem.mark()
	weights := mem.take(len(logits))
	copy(weights, logits)
	lse := kernel.LogSumExp(weights) // which leaves the exponentials
	i := fall(weights, u)
	mem.release(mark)
	return Candidate{int32(i), logits[i] - lse}
}

// fallBlock is how many weights are summed before the sum joins the others.
const fallBlock = 256

// sum adds float32 sums of fixed blocks in float64.
func sum(weights []float32) (total float64) {
	for len(weights) > 0 {
		n := min(fallBlock, len(weights))
		total += float64(kernel.Sum(weights[:n]))
		weights = weights[n:]
	}
	return total
}

// fall returns the index that u, of [0, 1), falls on where each weight has its share. It is never one without weight, as
// long as there is any.
func fall(weights []float32, u float64) int {
	x, before, last := float64(u*sum(weights)), 0.0, 0
	for from := 0; from < len(weights); from += fallBlock {
		block := weights[from:min(from+fallBlock, len(weights))]
		after := before + float64(kernel.Sum(block))
		if after == before {
			continue
		}
		for i, w := range block {
			if w > 0 {
				last = from + i
			}
			if before += float64(w); x < before && w > 0 {
				return last
			}
		}
		if before = after; x < after {
			return last // the two ways of adding up the block differ by a rounding
		}
	}
	return last
}

// pick draws one row's next token; logits are of the head's first level.
func (d *decoder) pick(row *row, hidden, logits []float32) Candidate {
	s, rank := &d.r.Sampling, &d.choose.rank
	u := row.draws.uniform(uint64(2 * d.made))
	switch {
	case s.greedy():
		rank.begin(d.m, hidden, logits, 1, &d.mem)
		first, _ := rank.next()
		if s.Tempered {
			first.Logprob = 0
		}
		return first
	case s.plain():
		return pickFrom(logits[:d.m.base.config.Vocab], u, &d.mem)
	case s.TopK > 0:
		rank.begin(d.m, hidden, logits, s.TopK, &d.mem)
		return d.choose.kept.first(s, rank, u)
	case s.Temperature == 1:
		rank.begin(d.m, hidden, logits, d.m.base.config.Vocab, &d.mem)
		return d.choose.kept.nucleus(s, rank, u, 0)
	}
	logprobs := d.m.all(hidden, logits, &d.mem)
	weights := d.mem.take(len(logprobs))
	s.temper(weights, logprobs, kernel.Max(logprobs))
	if s.TopP < 1 {
		rank.ranked(logprobs)
		return d.choose.kept.nucleus(s, rank, u, sum(weights))
	}
	i := fall(weights, u)
	c := Candidate{int32(i), logprobs[i]}
	if s.Tempered {
		c.Logprob = logShare(weights[i], sum(weights))
	}
	return c
}

func logShare(weight float32, total float64) float32 {
	return float32(kernel.Log(float64(weight) / total))
}

// temper sets weights to the probabilities at the temperature, that of the log-probability most being 1.
func (s *Sampling) temper(weights, logprobs []float32, most float32) {
	for i, l := range logprobs {
		weights[i] = l - most
	}
	kernel.ExpScaled(weights, weights, float32(1/s.Temperature), 0)
}

// kept is the candidates that truncation leaves, with their weights at the temperature, the first one's being 1.
type kept struct {
	ids     []Candidate
	weights []float32
}

// take adds the next candidate of a ranking; it is false when there is none.
func (k *kept) take(s *Sampling, r *ranking) bool {
	c, ok := r.next()
	if ok {
		k.ids = append(k.ids, c)
		k.weights = append(k.weights, kernel.Exp(float32((c.Logprob-k.ids[0].Logprob)*float32(1/s.Temperature))))
	}
	return ok
}

// first draws from the TopK first candidates, of which TopP may leave fewer.
func (k *kept) first(s *Sampling, r *ranking, u float64) Candidate {
	k.ids, k.weights = k.ids[:0], k.weights[:0]
	for len(k.ids) < s.TopK && k.take(s, r) {
	}
	n, enough := len(k.weights), float64(s.TopP*sum(k.weights))
	if s.TopP < 1 {
		have := 0.0
		for n = 0; n < len(k.weights) && have < enough; n++ {
			have += float64(k.weights[n])
		}
	}
	return k.draw(s, max(n, 1), u)
}

// nucleus draws from the first candidates that make up TopP of total, the sum of all weights; at the temperature 1 it is
// known from the first one's own probability, and not asked for.
func (k *kept) nucleus(s *Sampling, r *ranking, u, total float64) Candidate {
	k.ids, k.weights = k.ids[:0], k.weights[:0]
	have := 0.0
	for k.take(s, r) {
		if len(k.ids) == 1 && s.Temperature == 1 {
			total = 1 / kernel.Exp64(float64(k.ids[0].Logprob))
		}
		if have += float64(k.weights[len(k.weights)-1]); have >= float64(s.TopP*total) {
			break
		}
	}
	return k.draw(s, len(k.ids), u)
}

// draw draws from the first n.
func (k *kept) draw(s *Sampling, n int, u float64) Candidate {
	i := fall(k.weights[:n], u)
	c := k.ids[i]
	if s.Tempered {
		c.Logprob = logShare(k.weights[i], sum(k.weights[:n]))
	}
	return c
}

// all returns the log-probability of every id after a hidden row; logits are of the head's first level.
func (m *Model) all(hidden, logits []float32, mem *arena) []float32 {
	c := m.base.config
	out := mem.take(c.Vocab)
	if !c.twoLevel() {
		fill(out, logits[:c.Vocab], 0, mem)
		return out
	}
	highs := mem.take(c.high())
	fill(highs, logits[:c.high()], 0, mem)
	for from := 0; from < c.high(); from += headRows {
		mark := mem.mark()
		n := min(headRows, c.high()-from)
		lows := m.lowLogits(hidden, n, func(i int) int { return from + i }, mem)
		for i := range n {
			high := from + i
			valid := c.lowIn(high)
			fill(out[high*c.low():high*c.low()+valid], lows[i*m.heads[1].out:i*m.heads[1].out+valid], highs[high], mem)
		}
		mem.release(mark)
	}
	return out
}

// fill sets dst to the log-softmax of logits plus what comes before.
func fill(dst, logits []float32, before float32, mem *arena) {
	mark := mem.mark()
	scratch := mem.take(len(logits))
	copy(scratch, logits)
	lse := kernel.LogSumExp(scratch)
	for i, l := range logits {
		dst[i] = before + (l - lse)
	}
	mem.release(mark)
}
