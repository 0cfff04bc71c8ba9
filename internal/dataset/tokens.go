package dataset

import (
	"math"

	"trainer/internal/chat"
)

// encodeTokens reads {"tokens": [ids], "weights": [one an id]}: rows that are tokenised already. Without weights every
// token but the first is trained. Where a teacher is learnt from, teacher_topk is read too. t may be nil; the vocabulary is then unknown and bounds nothing.
func encodeTokens(s *source, row value, t *chat.Template) (chat.Example, *fault) {
	c := s.columns["tokens"]
	v := c.raw(row)
	switch {
	case v == nil:
		return chat.Example{}, missing(row, c.String())
	case !v.isList():
		return chat.Example{}, bad(c.String(), "%s where a list of token ids is due", v.kind())
	}
	limit := int64(math.MaxInt32)
	if t != nil {
		limit = int64(t.Tokenizer().Size()) - 1
	}
	ids, f := tokenIDs(v, c.String(), limit)
	if f != nil {
		return chat.Example{}, f
	}
	weights, f := tokenWeights(s.columns["weights"], row, len(ids))
	ex := chat.Example{IDs: ids, Weights: weights}
	if f == nil && s.soft {
		f = s.teach(&ex, row, limit)
	}
	return ex, f
}

func tokenIDs(v value, key string, limit int64) (ids []int32, f *fault) {
	for i, item := range v.items() {
		id, ok := item.whole()
		switch {
		case !ok:
			return nil, bad(element(key, i, ""), "%s is not a token id; a whole number of 0 to %d", brief(string(item)), limit)
		case id < 0 || id > limit:
			return nil, bad(element(key, i, ""), "%d is outside of the vocabulary; ids are 0 to %d", id, limit)
		}
		ids = append(ids, int32(id))
	}
	if len(ids) < 2 {
		return nil, bad(key, "%d tokens; a row needs two, as the first is never predicted", len(ids))
	}
	return ids, nil
}

// tokenWeights are [n]; the first is set to 0, which it is in effect.
func tokenWeights(c *column, row value, n int) ([]float64, *fault) {
	weights := make([]float64, 0, n)
	if v := c.raw(row); v != nil && !v.isNull() {
		if !v.isList() {
			return nil, bad(c.String(), "%s where a list of weights is due, one for each token", v.kind())
		}
		for i, item := range v.items() {
			w, ok := item.number()
			if !ok || !(w >= 0 && w <= math.MaxFloat32) {
				return nil, bad(element(c.String(), i, ""), "%s is not a weight; a finite number, at least 0", brief(string(item)))
			}
			weights = append(weights, w)
		}
		if len(weights) != n {
			return nil, bad(c.String(), "%d weights for %d tokens; one each is due", len(weights), n)
		}
	} else {
		for range n {
			weights = append(weights, 1)
		}
	}
	weights[0] = 0
	return weights, nil
}
