package tokenizer

import (
	"encoding/base64"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// ranked is a vocabulary of tiktoken: tokens are bytes, and two join where what they make is a token, the lowest rank first.
type ranked struct {
	texts []string // by rank
	shift int32    // id less rank
}

// maxRanked bounds the bytes of a token: all ways to cut it are tried. The longest published have some hundred.
const maxRanked = 1 << 10

// pipeline makes r into one, with tokens of control that the ranks know nothing of.
func (r ranked) pipeline(pattern match, tokens []added) (*pipeline, error) {
	m := &bpe{byteLevel: true, ignoreMerges: true, unknown: -1, ids: make(map[string]int32, len(r.texts))}
	b := &builder{t: &pipeline{control: map[string]int32{}, model: m}, indexOf: map[string]int{}, ranks: true}
	for i := range m.symbols {
		m.symbols[i] = -1
	}
	for rank, text := range r.texts {
		id := int32(rank) + r.shift
		if _, twice := m.ids[text]; twice || text == "" {
			return nil, fmt.Errorf("rank %d is %q, which is empty or has a rank already", rank, text)
		}
		if len(text) > maxRanked || int(id) > maxID {
			return nil, fmt.Errorf("rank %d has %d bytes: ranks up to %d of up to %d bytes are supported", rank, len(text), maxID, maxRanked)
		}
		b.grow(id)
		m.ids[text], b.byID[id], b.has[id] = id, text, true
		if len(text) == 1 {
			m.symbols[text[0]] = id
		}
	}
	if missing := slices.Index(m.symbols[:], -1); missing >= 0 {
		return nil, fmt.Errorf("no token is the byte %#02x, so some texts have no tokens", missing)
	}
	m.merges = r.merges(m.ids)
	b.t.splits = []splitter{patternSplit{next: pattern, behavior: isolated}}
	for _, t := range tokens {
		b.add(t)
	}
	m.texts = b.byID
	m.widths = make([]int32, len(b.byID))
	for id, text := range b.byID {
		m.widths[id] = int32(len(text))
	}
	return b.finishRanked(tokens)
}

// merges is each way to make a token out of two others, ranked as the token is.
func (r ranked) merges(ids map[string]int32) mergeTable {
	type merge struct {
		a, b int32
		rank int
	}
	var all []merge
	for rank, text := range r.texts {
		for cut := 1; cut < len(text); cut++ {
			a, okA := ids[text[:cut]]
			b, okB := ids[text[cut:]]
			if okA && okB {
				all = append(all, merge{a, b, rank})
			}
		}
	}
	table := newMergeTable(len(all))
	for _, m := range all {
		table.put(m.a, m.b, m.rank, int32(m.rank)+r.shift)
	}
	return table
}

// finishRanked is finish for what has no fields to name.
func (b *builder) finishRanked(tokens []added) (*pipeline, error) {
	for _, t := range tokens {
		if int(t.id) < len(b.has) && b.has[t.id] {
			return nil, fmt.Errorf("%q has the id %d, which is a token of the ranks", t.content, t.id)
		}
	}
	return b.finish(fields{scanner: &scanner{}})
}

// tiktokenKind is what a file of ranks does not say itself.
type tiktokenKind struct {
	pattern  string
	added    []added
	reserved int // so many ids behind the ranks are control tokens, <|reserved_token_ID|> where added has none
}

// tiktoken reads ranks: a line a token, its bytes in base64, a space, its rank.
func tiktoken(file, data string, kind tiktokenKind) (*pipeline, error) {
	var r ranked
	n := 0
	for line := range strings.Lines(data) {
		n++
		text := strings.TrimSpace(line)
		if text == "" {
			continue
		}
		token, rank, ok := strings.Cut(text, " ")
		raw, err := base64.StdEncoding.DecodeString(token)
		number, bad := strconv.Atoi(rank)
		if !ok || err != nil || bad != nil {
			return nil, fmt.Errorf("%s:%d: a line is a token in base64, a space, and its rank", file, n)
		}
		if number != len(r.texts) {
			return nil, fmt.Errorf("%s:%d: rank %d where %d should be: ranks with gaps are not supported", file, n, number, len(r.texts))
		}
		r.texts = append(r.texts, string(raw))
	}
	next := knownPattern(kind.pattern)
	if next == nil {
		return nil, fmt.Errorf("%s: the pattern %q is not supported", file, kind.pattern)
	}
	tokens := kind.added
	for i := range kind.reserved {
		id := int32(len(r.texts) + i)
		if !slices.ContainsFunc(tokens, func(t added) bool { return t.id == id }) {
			tokens = append(tokens, added{id: id, content: fmt.Sprintf("<|reserved_token_%d|>", id), special: true, control: true})
		}
	}
	p, err := r.pipeline(next, tokens)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return p, nil
}

// kimiReserved is how many ids Kimi's own code keeps behind the ranks.
const kimiReserved = 256

// tiktoken says how ranks are to be used: by pat_str of the configuration, by the class of Kimi's, or by the name of a file that
// OpenAI publishes.
func (c *companions) tiktoken(name string) (tiktokenKind, error) {
	kind := tiktokenKind{pattern: c.pattern, added: c.added}
	switch {
	case c.class == "TikTokenTokenizer":
		kind.reserved = kimiReserved
		if kind.pattern == "" {
			kind.pattern = kimiPattern
		}
	case kind.pattern != "":
	case name == "cl100k_base.tiktoken":
		kind.pattern = cl100kPattern
		kind.added = openAITokens(map[string]int32{"<|endoftext|>": 100257, "<|fim_prefix|>": 100258, "<|fim_middle|>": 100259, "<|fim_suffix|>": 100260, "<|endofprompt|>": 100276})
	case name == "o200k_base.tiktoken":
		kind.pattern = o200kPattern
		kind.added = openAITokens(map[string]int32{"<|endoftext|>": 199999, "<|endofprompt|>": 200018})
	default:
		return kind, fmt.Errorf("%s: ranks do not say how to split a text; a tokenizer_config.json beside them with tokenizer_class TikTokenTokenizer (Kimi), or with pat_str, does", filepath.Join(c.folder, name))
	}
	return kind, nil
}

func openAITokens(ids map[string]int32) (out []added) {
	for content, id := range ids {
		out = append(out, added{id: id, content: content, special: true, control: true})
	}
	slices.SortFunc(out, func(a, b added) int { return int(a.id) - int(b.id) })
	return out
}
