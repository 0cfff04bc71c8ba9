package dataset

import (
	"fmt"
	"math"
	"slices"

	"trainer/internal/chat"
)

// encodeTokens reads {"tokens": [ids], "weights": [one an id]}: rows that are tokenised already. Without weights every
// token but the first is trained. prompt_tokens stand before tokens, and nothing of them is trained; what is one for each
// token is then of tokens alone. Where a teacher is learnt from, what it said is read too. t may be nil; the vocabulary is then
// unknown and bounds nothing.
func encodeTokens(s *source, row value, t *chat.Template) (chat.Example, *fault) {
	limit := int64(math.MaxInt32)
	if t != nil {
		limit = int64(t.Tokenizer().Size()) - 1
	}
	ids, f := s.ids(row, "tokens", limit)
	if f != nil {
		return chat.Example{}, f
	}
	var lead []int32
	if v := s.columns["prompt_tokens"].raw(row); v != nil && !v.isNull() {
		if lead, f = s.ids(row, "prompt_tokens", limit); f != nil {
			return chat.Example{}, f
		}
	}
	all := append(lead, ids...)
	if len(all) < 2 {
		return chat.Example{}, bad(s.columns["tokens"].String(), "%d tokens; a row needs two, as the first is never predicted", len(all))
	}
	weights, f := tokenWeights(s.columns["weights"], row, len(ids))
	if f != nil {
		return chat.Example{}, f
	}
	ex := chat.Example{IDs: all, Weights: append(make([]float64, len(lead)), weights...)}
	ex.Weights[0] = 0 // which it is in effect
	if s.soft {
		f = s.teach(&ex, row, len(lead), limit)
		return ex, f
	}
	if s.taught {
		if ex.Teacher, f = s.logprobs(row, "teacher_logprobs", ex.Weights); f != nil {
			return chat.Example{}, f
		}
	}
	if s.sampled {
		ex.Sampled, f = s.logprobs(row, "logprobs", ex.Weights)
	}
	return ex, f
}

// ids are the token ids of a field.
func (s *source) ids(row value, field string, limit int64) (ids []int32, f *fault) {
	c := s.columns[field]
	v, f := c.list(row, "token ids")
	if f != nil {
		return nil, f
	}
	for i, item := range v.items() {
		id, ok := item.whole()
		switch {
		case !ok:
			return nil, bad(element(c.String(), i, ""), "%s is not a token id; a whole number of 0 to %d", brief(string(item)), limit)
		case id < 0 || id > limit:
			return nil, bad(element(c.String(), i, ""), "%d is outside of the vocabulary; ids are 0 to %d", id, limit)
		}
		ids = append(ids, int32(id))
	}
	return ids, nil
}

// list is what stands under the column, which has to be a list of what is said.
func (c *column) list(row value, of string) (value, *fault) {
	v := c.raw(row)
	switch {
	case v == nil:
		return nil, missing(row, c.String())
	case !v.isList():
		return nil, bad(c.String(), "%s where a list of %s is due", v.kind(), of)
	}
	return v, nil
}

// tokenWeights are [n].
func tokenWeights(c *column, row value, n int) ([]float64, *fault) {
	v := c.raw(row)
	if v == nil || v.isNull() {
		return slices.Repeat([]float64{1}, n), nil
	}
	if !v.isList() {
		return nil, bad(c.String(), "%s where a list of weights is due, one for each token", v.kind())
	}
	weights := make([]float64, 0, n)
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
	return weights, nil
}

// logprobs are [len(weights)] natural logs, the last of which the field gives, one for each of the tokens that the row calls
// so: a number where the token trains; what stands elsewhere, and may be null, is 0.
func (s *source) logprobs(row value, field string, weights []float64) ([]float64, *fault) {
	c := s.columns[field]
	v, f := c.list(row, "log-probabilities")
	if f != nil {
		return nil, f
	}
	n, given := 0, 0
	for range s.columns["tokens"].raw(row).items() {
		n++
	}
	for range v.items() {
		given++
	}
	if given != n {
		return nil, bad(c.String(), "%d log-probabilities for %d tokens; one each is due", given, n)
	}
	out, lead := make([]float64, len(weights)), len(weights)-n
	for i, item := range v.items() {
		key := element(c.String(), i, "")
		x, ok := item.number()
		switch trains := weights[lead+i] > 0; {
		case item.isNull() && trains:
			return nil, bad(key, "null, and the token trains; give its log-probability, or a weight of 0")
		case item.isNull():
		case !ok || !(x <= 0 && x >= -math.MaxFloat32):
			return nil, bad(key, "%s is not a log-probability; a finite number, at most 0", fmt.Sprintf("%.40s", item))
		case trains:
			out[lead+i] = x
		}
	}
	return out, nil
}
