package chat

import (
	"slices"

	"trainer/internal/chat/jinja"
)

// examples renders the conversation and masks it.
func (j *job) examples() ([]Example, error) {
	if j.t.mode.headers || j.othersTrain() {
		ex, err := j.whole()
		return []Example{ex}, err
	}
	ts, err := j.turns()
	if err != nil {
		return nil, err
	}
	if len(ts) == 0 {
		ex, err := j.untrained()
		return []Example{ex}, err
	}
	if err := j.writtenAll(ts); err != nil {
		return nil, err
	}
	var out []Example
	for _, group := range merged(ts) {
		exs, err := j.group(group)
		if err != nil {
			return nil, err
		}
		out = append(out, exs...)
	}
	return out, nil
}

// othersTrain tells whether a message trains that is not the assistant's.
func (j *job) othersTrain() bool {
	for i, m := range j.c.Messages {
		if m.Role != "assistant" && j.weights[i] > 0 {
			return true
		}
	}
	return false
}

// untrained is a conversation of which nothing trains.
func (j *job) untrained() (Example, error) {
	r, err := j.render(len(j.given), false)
	if err != nil {
		return Example{}, refused(-1, err)
	}
	ids, ends := j.allTokens(r)
	if len(ids) == 0 {
		return Example{}, faultf(-1, "", "the template writes nothing for it")
	}
	return Example{IDs: ids, Weights: make([]float64, len(ids)), Parts: j.parts(r, ends)}, j.written(r)
}

// group encodes turns that share a rendering, the last one's. Where a token reaches over the boundary between a prompt and
// what is sampled behind it, sampling has other ids than the whole text has: the last turn is then encoded behind its prompt,
// and an earlier one becomes an example of its own.
func (j *job) group(ts []turn) ([]Example, error) {
	last := ts[len(ts)-1]
	r := last.in
	ids, ends := j.allTokens(r)
	var out []Example
	kept := make([]turn, 0, len(ts))
	for _, u := range ts[:len(ts)-1] {
		if j.separate(r, ids, ends, u.begin) {
			kept = append(kept, u)
			continue
		}
		exs, err := j.group([]turn{u})
		if err != nil {
			return nil, err
		}
		out = append(out, exs...)
	}
	if !j.separate(r, ids, ends, last.begin) {
		ids, ends = j.apart(r, last.begin)
	}
	weights := make([]float64, len(ids))
	for _, u := range append(kept, last) {
		if err := j.weigh(weights, ends, r, u); err != nil {
			return nil, err
		}
	}
	weights[0] = 0
	return append(out, Example{IDs: ids, Weights: weights, Parts: j.parts(r, ends)}), nil
}

// weigh gives the tokens of a turn their weight.
func (j *job) weigh(weights []float64, ends []int, r *rendering, u turn) error {
	w := j.weights[u.message]
	if len(u.in.generation) == 0 && !j.p.generation {
		fill(weights, ends, jinja.Span{Start: u.begin, End: u.end}, w)
		return nil
	}
	ended := false
	for _, s := range u.in.generation {
		s = jinja.Span{Start: max(s.Start, u.begin), End: min(s.End, u.end)}
		if s.Start < s.End {
			fill(weights, ends, s, w)
			ended = ended || s.End == u.end
		}
	}
	if !ended {
		return faultf(u.message, "", "the template's {%% generation %%} blocks leave out its end, so the model would never learn to stop; put the end token of every assistant message into them")
	}
	return nil
}

// fill gives w to the tokens that have bytes in s.
func fill(weights []float64, ends []int, s jinja.Span, w float64) {
	k, _ := slices.BinarySearch(ends, s.Start+1)
	for ; k < len(ends); k++ {
		start := 0
		if k > 0 {
			start = ends[k-1]
		}
		if start >= s.End && (start > s.End || ends[k] > start) {
			return
		}
		weights[k] = w
	}
}

// separate tells whether the ids of a rendering, cut at byte at, are those of the text before: a token ends there, and the
// text from the last control token on, at which encoding starts anew, has the same ids alone.
func (j *job) separate(r *rendering, ids []int32, ends []int, at int) bool {
	k, ok := slices.BinarySearch(ends, at)
	if !ok {
		return at == 0
	}
	for k+1 < len(ends) && ends[k+1] == at {
		k++
	}
	c := j.controlBefore(ids, k+1)
	from := 0
	if c > 0 {
		from = ends[c-1]
	}
	if c == k {
		return true
	}
	alone, _ := j.tokens(r, from, at)
	return slices.Equal(alone, ids[c:k+1])
}

// controlBefore is the index of the last control token before index n, 0 for none.
func (j *job) controlBefore(ids []int32, n int) int {
	for c := n - 1; c > 0; c-- {
		if j.t.tok.IsControl(ids[c]) {
			return c
		}
	}
	return 0
}

// apart encodes the text up to at as sampling does, and what follows behind it.
func (j *job) apart(r *rendering, at int) (ids []int32, ends []int) {
	ids, ends = j.tokens(r, 0, at)
	more, behind := j.tokens(r, at, len(r.text))
	for _, e := range behind {
		ends = append(ends, at+e)
	}
	return append(ids, more...), ends
}
