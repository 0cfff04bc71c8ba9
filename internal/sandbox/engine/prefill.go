package engine

import "slices"

// prefix is a prompt that has gone through the layers of some weights, which all of its completions share.
type prefix struct {
	tokens []int32
	scored *Sampled    // where the prompt's own log-probabilities go
	width  int         // len(tokens), padded
	keys   [][]float32 // a layer: [Dim][width], zero past the prompt
	values [][]float32 // a layer: [len(tokens)][Dim]
	last   []float32   // [Dim] after the last norm, at the last token
}

// forget frees what only decoding needs.
func (p *prefix) forget() { p.keys, p.values, p.last = nil, nil, nil }

// prefill runs the prompts of rows that have not been run through the training pass.
func (w *Weights) prefill(rows []*row, r *SampleRequest) {
	var waiting []*prefix
	for _, row := range rows {
		if p := row.prefix; p.keys == nil && (len(waiting) == 0 || waiting[len(waiting)-1] != p) {
			waiting = append(waiting, p)
		}
	}
	spread(len(waiting), func(from, to int) {
		g := &group{m: w.forward()}
		for from < to {
			n, tokens := 1, len(waiting[from].tokens)
			for from+n < to && tokens+len(waiting[from+n].tokens) <= groupTokens {
				tokens += len(waiting[from+n].tokens)
				n++
			}
			g.prefill(waiting[from:from+n], r)
			from += n
		}
	})
}

// prefill runs some prompts together and leaves in each what its completions need.
func (g *group) prefill(prefixes []*prefix, r *SampleRequest) {
	var b Batch
	var need [][]bool
	for _, p := range prefixes {
		b.Input = append(b.Input, p.tokens)
		b.Targets = append(b.Targets, append(slices.Clone(p.tokens[1:]), 0))
		rows := make([]bool, len(p.tokens))
		for t := range len(rows) - 1 {
			rows[t] = r.PromptLogprobs
		}
		need = append(need, rows)
	}
	var plan plan
	plan.set(b)
	plan.setNeed(need)
	g.forward(&plan, part{from: 0, to: len(prefixes), at: 0, tokens: len(plan.tokens)})
	g.logprobs(&plan)
	for i, p := range prefixes {
		s := g.seqs[i]
		p.keep(g, s)
		if r.PromptLogprobs {
			p.scored.Prompt = append([]float32{0}, plan.logprobs[s.at:s.at+s.n-1]...)
		}
		if r.TopPromptLogprobs > 0 {
			p.scored.Top = g.alternatives(s, r.TopPromptLogprobs)
		}
	}
}

// keep copies keys, values and the last hidden row.
func (p *prefix) keep(g *group, s sequence) {
	c := g.m.base.config
	p.width = pad16(s.n)
	p.keys, p.values = make([][]float32, c.Layers), make([][]float32, c.Layers)
	for l := range g.layers {
		k := make([]float32, c.Dim*p.width)
		for t := range s.n {
			for j, v := range g.layers[l].k[(s.at+t)*c.Dim : (s.at+t+1)*c.Dim] {
				k[j*p.width+t] = v
			}
		}
		p.keys[l] = k
		p.values[l] = slices.Clone(g.layers[l].v[s.at*c.Dim : (s.at+s.n)*c.Dim])
	}
	end := (s.at + s.n) * c.Dim
	p.last = slices.Clone(g.normed[end-c.Dim : end])
}

// alternatives ranks the most probable ids of every token of s but the first, which nothing predicts.
func (g *group) alternatives(s sequence, most int) [][]Candidate {
	c := g.m.base.config
	out := make([][]Candidate, s.n)
	out[0] = []Candidate{}
	var r ranking
	for t := 1; t < s.n; t++ {
		mark := g.mem.mark()
		hidden := g.normed[(s.at+t-1)*c.Dim : (s.at+t)*c.Dim]
		logits := g.mem.take(g.m.heads[0].out)
		g.m.heads[0].forward(logits, hidden, 1, dropping{}, &g.mem)
		r.begin(g.m, hidden, logits, most, &g.mem)
		for len(out[t]) < most {
			next, ok := r.next()
			if !ok {
				break
			}
			out[t] = append(out[t], next)
		}
		g.mem.release(mark)
	}
	return out
}
