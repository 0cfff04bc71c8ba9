package tokenizer

import (
	"strings"
	"unicode/utf8"
)

// encoder is the working memory of one call at a time: what it makes, and what it remembers of words from call to call.
type encoder struct {
	*pipeline
	ids     []int32
	ends    []int
	wanted  bool // whether ends are
	aligned bool // whether pieces have to know where they stand
	counts  counter
	idRoom  []int32 // for ids and ends, from call to call
	endRoom []int
	steps   []func(piece) // by pre-tokenizer, and the model last: what is done with a piece

	cache wordCache
	merging
}

func newEncoder(t *pipeline) *encoder {
	e := &encoder{pipeline: t, cache: newWordCache()}
	e.steps = make([]func(piece), len(t.splits)+1)
	e.steps[len(t.splits)] = e.word
	for i, s := range t.splits {
		e.steps[i] = func(p piece) { s.split(p, e.aligned, e.steps[i+1]) }
		if s, ok := s.(patternSplit); ok && i == len(t.splits)-1 && s.behavior == isolated && t.model.inside == nil {
			e.steps[i] = func(p piece) { e.isolated(s, &p) }
		}
	}
	return e
}

// isolated gives the tokens of what s cuts p into, as the way over steps does, without making a piece of every word.
func (e *encoder) isolated(s patternSplit, p *piece) {
	s.each(p.text, func(from, to int, _ bool) { e.part(p, from, to) })
}

// append appends the tokens of text to dst.
func (e *encoder) append(dst []int32, text string, counts counter) []int32 {
	e.ids, e.counts, e.wanted = dst, counts, false
	e.aligned = counts.where != nil || e.placed
	e.raw.split(piece{text: text}, 0, counts, e.unnormalized, e.token)
	ids := e.ids
	e.ids, e.counts = nil, counter{}
	return ids
}

// keepTokens bounds the memory that an encoder keeps for the tokens of a text.
const keepTokens = 1 << 16

// encode gives the tokens of text and their ends; those of its first from bytes are known. The slices are the caller's.
func (e *encoder) encode(known Encoded, from int, text string, counts counter) (ids []int32, ends []int) {
	e.ids, e.ends = append(e.idRoom[:0], known.IDs...), append(e.endRoom[:0], known.Ends...)
	e.counts, e.wanted, e.aligned = counts, true, true
	e.raw.split(piece{text: text}, from, counts, e.unnormalized, e.token)
	ids, ends = make([]int32, len(e.ids)), make([]int, len(e.ends))
	copy(ids, e.ids)
	copy(ends, e.ends)
	if cap(e.ids) <= keepTokens && cap(e.ends) <= keepTokens {
		e.idRoom, e.endRoom = e.ids, e.ends
	}
	e.ids, e.ends, e.counts = nil, nil, counter{}
	return ids, ends
}

func (e *encoder) unnormalized(p piece) {
	if e.normalizer != nil {
		p = e.normalizer.apply(p, e.aligned)
	}
	if p.text != "" {
		e.late.split(p, 0, e.counts, e.steps[0], e.token)
	}
}

// token gives an added token that was found at p.
func (e *encoder) token(t *added, p piece) {
	e.ids = append(e.ids, t.id)
	if e.wanted {
		e.end(&p, len(p.text))
	}
}

// end notes the end of a token behind the first i bytes of p. Ends never go back.
func (e *encoder) end(p *piece, i int) {
	to := p.behind(i)
	if n := len(e.ends); n > 0 {
		to = max(to, e.ends[n-1])
	}
	e.ends = append(e.ends, to)
}

// word gives the tokens of what the pre-tokenizers left whole. Where nothing splits the text, it is cut before each ▁ that no
// token crosses, which changes no token and lets words be remembered.
func (e *encoder) word(p piece) {
	from := 0
	if e.model.inside != nil {
		for i := indexFrom(p.text, "▁", 0); i >= 0; i = indexFrom(p.text, "▁", i+len("▁")) {
			if r, n := utf8.DecodeLastRuneInString(p.text[:i]); n > 0 && !e.model.inside[r] {
				e.part(&p, from, i)
				from = i
			}
		}
	}
	e.part(&p, from, len(p.text))
}

// part gives the tokens of p.text[from:to], which is not empty.
func (e *encoder) part(p *piece, from, to int) {
	w := p.text[from:to]
	key, short := packed(w)
	ids := e.cache.get(key, short, w)
	if ids == nil {
		if ids = e.tokens(w); !e.regular(w) {
			e.odd(p, from)
			return
		}
		e.cache.put(key, short, w, ids)
	}
	e.ids = append(e.ids, ids...)
	switch {
	case !e.wanted:
	case len(ids) == 1:
		e.end(p, to)
	default:
		for _, id := range ids {
			from += int(e.model.widths[id])
			e.end(p, from)
		}
	}
}

// tokens are the ids of w; their ends in it are in e.cuts.
func (e *encoder) tokens(w string) []int32 {
	m := e.model
	if m.ignoreMerges {
		if id, ok := m.ids[w]; ok {
			e.syms, e.cuts = append(e.syms[:0], id), append(e.cuts[:0], int32(len(w)))
			return e.syms
		}
	}
	e.symbols(m, w)
	e.merge(&m.merges)
	return e.syms
}

// regular says that the tokens just made have the widths of their texts: not where characters are unknown to the vocabulary.
func (e *encoder) regular(w string) bool {
	from := int32(0)
	for i, id := range e.syms {
		if e.cuts[i]-from != e.model.widths[id] {
			return false
		}
		from = e.cuts[i]
	}
	return int(from) == len(w) && len(e.syms) > 0
}

// odd gives the tokens just made as they lie.
func (e *encoder) odd(p *piece, from int) {
	e.ids = append(e.ids, e.syms...)
	for _, cut := range e.cuts {
		if e.wanted {
			e.end(p, from+int(cut))
		}
	}
}

// wordCache remembers the tokens of words: short words in a table in which the newest of two that meet stays, all in a map that
// is emptied when it is full. It is bounded, to some 20 MB.
type wordCache struct {
	short []shortWord
	words map[string][2]uint32 // where in ids
	ids   []int32
}

// shortWord is a word of up to 15 bytes and its tokens.
type shortWord struct {
	key wordKey
	n   int32
	ids [5]int32
}

// wordKey is the bytes of a short word, and their number in the highest byte; a word is not empty, so no key is zero.
type wordKey [2]uint64

const (
	shortBits = 15
	maxWords  = 1 << 17
	maxWord   = 256 // bytes of a word worth remembering
)

func newWordCache() wordCache {
	return wordCache{short: make([]shortWord, 1<<shortBits), words: map[string][2]uint32{}}
}

// packed is the key of a short word.
func packed(w string) (key wordKey, short bool) {
	if len(w) > 15 {
		return key, false
	}
	if len(w) >= 8 {
		key[0] = word64(w)
		key[1] = word64(w[len(w)-8:]) >> (8 * (16 - len(w)) & 63)
		if len(w) == 8 {
			key[1] = 0
		}
	} else {
		for i := len(w) - 1; i >= 0; i-- {
			key[0] = key[0]<<8 | uint64(w[i])
		}
	}
	key[1] |= uint64(len(w)) << 56
	return key, true
}

// word64 is the first eight bytes of s, the first lowest.
func word64(s string) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

func (c *wordCache) slot(key wordKey) *shortWord {
	return &c.short[(key[0]*0x9e3779b97f4a7c15^key[1]*0xc2b2ae3d27d4eb4f)*0x9e3779b97f4a7c15>>(64-shortBits)]
}

// get is the tokens of w, or nil; they are good until the next put.
func (c *wordCache) get(key wordKey, short bool, w string) []int32 {
	if short {
		if s := c.slot(key); s.key == key {
			return s.ids[:s.n]
		}
	}
	if at, ok := c.words[w]; ok {
		ids := c.ids[at[0]:at[1]]
		c.keep(key, short, ids)
		return ids
	}
	return nil
}

func (c *wordCache) put(key wordKey, short bool, w string, ids []int32) {
	c.keep(key, short, ids)
	if len(w) > maxWord {
		return
	}
	if len(c.words) >= maxWords {
		clear(c.words)
		c.ids = c.ids[:0]
	}
	from := uint32(len(c.ids))
	c.ids = append(c.ids, ids...)
	c.words[strings.Clone(w)] = [2]uint32{from, uint32(len(c.ids))}
}

func (c *wordCache) keep(key wordKey, short bool, ids []int32) {
	if s := c.slot(key); short && len(ids) <= len(s.ids) {
		s.key, s.n = key, int32(len(ids))
		copy(s.ids[:], ids)
	}
}
