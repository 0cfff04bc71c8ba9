package dataset

import (
	"math"

	"trainer/internal/chat"
	"trainer/loss"
)

// teach reads {"teacher_topk": [one a token]}: what a teacher finds likeliest in place of each token, as pairs of an id and the
// natural log of its probability. A token without any, null or [], is not trained; one that weights trains needs some.
// The first lead tokens of ex are those of the prompt, which have no entries.
func (s *source) teach(ex *chat.Example, row value, lead int, limit int64) *fault {
	c := s.columns["teacher_topk"]
	v := c.raw(row)
	switch {
	case v == nil:
		return missing(row, c.String())
	case !v.isList():
		return bad(c.String(), "%s where a list is due, for each token the pairs of a token id and its logprob", v.kind())
	}
	weighed := s.columns["weights"].raw(row)
	given := weighed != nil && !weighed.isNull()
	n := len(ex.IDs)
	ex.TopIDs, ex.TopLogprobs = make([][]int32, n), make([][]float64, n)
	entries := 0
	for i, item := range v.items() {
		t := lead + i
		if entries++; t >= n {
			continue
		}
		key := element(c.String(), i, "")
		ids, logprobs, f := likeliest(item, key, limit)
		switch {
		case f != nil:
			return f
		case t == 0 && len(ids) > 0:
			return bad(key, "the first token is never predicted; null or [] is due")
		case len(ids) == 0 && given && ex.Weights[t] > 0:
			return bad(key, "has nothing to learn, and weights trains token %d with %v; give its likeliest tokens, or the weight 0", i, ex.Weights[t])
		case len(ids) == 0:
			ex.Weights[t] = 0
		}
		ex.TopIDs[t], ex.TopLogprobs[t] = ids, logprobs
	}
	if n -= lead; entries != n {
		return bad(c.String(), "%d entries for %d tokens; one each is due, null where nothing trains", entries, n)
	}
	return nil
}

// likeliest reads [[id, logprob], …]; null has none.
func likeliest(v value, key string, limit int64) (ids []int32, logprobs []float64, f *fault) {
	if v.isNull() {
		return nil, nil, nil
	}
	const due = "[token id, logprob]"
	if !v.isList() {
		return nil, nil, bad(key, "%s where a list of %s is due", v.kind(), due)
	}
	for k, pair := range v.items() {
		at := element(key, k, "")
		if !pair.isList() || pair.item(0) == nil || pair.item(1) == nil || pair.item(2) != nil {
			return nil, nil, bad(at, "%s is not %s", brief(string(pair)), due)
		}
		id, whole := pair.item(0).whole()
		if !whole || id < 0 || id > math.MaxInt32 {
			return nil, nil, bad(at, "%s is not a token id; a whole number of 0 to %d", brief(string(pair.item(0))), limit)
		}
		p, number := pair.item(1).number()
		if !number {
			return nil, nil, bad(at, "%s is not a logprob; a finite number, at most 0", brief(string(pair.item(1))))
		}
		ids, logprobs = append(ids, int32(id)), append(logprobs, p)
	}
	if at, err := loss.CheckTop(ids, logprobs, limit); err != nil {
		if at >= 0 {
			key = element(key, at, "")
		}
		return nil, nil, bad(key, "%v", err)
	}
	return ids, logprobs, nil
}
