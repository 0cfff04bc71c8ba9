package tokenizer

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// added is a token that is found in the text before the model sees it.
type added struct {
	id         int32
	content    string
	form       string // content, or what the normalizer makes of it where the token is looked for in normalized text
	singleWord bool   // counts only between characters that belong to no word
	lstrip     bool   // takes the white space before it along
	rstrip     bool   // and behind it
	normalized bool
	special    bool
	control    bool
}

// isControl says whether a token steers the model: flagged special, or of the form of such tokens whatever the flag says, as
// DeepSeek's role markers are.
func isControl(content string, special bool) bool {
	return special ||
		strings.HasPrefix(content, "<|") && strings.HasSuffix(content, "|>") ||
		strings.HasPrefix(content, "<｜") && strings.HasSuffix(content, "｜>")
}

// matcher finds added tokens in a text: at each place the longest, from left to right.
type matcher struct {
	tokens []added
	first  [256]bool
	long   int      // bytes of the longest
	only   int      // the one byte that tokens start with, or -1 where there are several
	next   [][]edge // by node
	leaf   []int32  // by node: index of the token that ends there, or -1
}

// edge is a byte that goes on from a node, and the node it leads to.
type edge struct {
	by byte
	to int32
}

// newMatcher is nil where there are no tokens. Two tokens of one form are refused before.
func newMatcher(tokens []added) *matcher {
	if len(tokens) == 0 {
		return nil
	}
	m := &matcher{tokens: tokens, only: -1, next: make([][]edge, 1), leaf: []int32{-1}}
	for i, t := range tokens {
		m.first[t.form[0]] = true
		m.long = max(m.long, len(t.form))
		node := int32(0)
		for j := range len(t.form) {
			child := m.child(node, t.form[j])
			if child < 0 {
				child = int32(len(m.leaf))
				m.next[node] = append(m.next[node], edge{t.form[j], child})
				m.next, m.leaf = append(m.next, nil), append(m.leaf, -1)
			}
			node = child
		}
		m.leaf[node] = int32(i)
	}
	for b, yes := range m.first {
		if yes && m.only >= 0 {
			m.only = -1
			break
		} else if yes {
			m.only = b
		}
	}
	return m
}

// child is where byte b leads from a node, -1 for nowhere.
func (m *matcher) child(node int32, b byte) int32 {
	for _, e := range m.next[node] {
		if e.by == b {
			return e.to
		}
	}
	return -1
}

// seek is the first place from i on where a token may start, or len(s).
func (m *matcher) seek(s string, i int) int {
	if m.only >= 0 {
		if k := strings.IndexByte(s[i:], byte(m.only)); k >= 0 {
			return i + k
		}
		return len(s)
	}
	for i < len(s) && !m.first[s[i]] {
		i++
	}
	return i
}

// longest is the longest token at s[i] that counts, and its end; nil where there is none.
func (m *matcher) longest(p piece, i int, counts counter) (token *added, end int) {
	node := int32(0)
	for j := i; j < len(p.text); j++ {
		if node = m.child(node, p.text[j]); node < 0 {
			break
		}
		if m.leaf[node] >= 0 {
			if t := &m.tokens[m.leaf[node]]; !t.control || counts.control(p.origin(i, j+1)) {
				token, end = t, j+1
			}
		}
	}
	return token, end
}

// counter says of a control token at a span of the given text whether it counts as one.
type counter struct {
	all   bool
	where func(from, to int) bool // nil: nowhere, unless all
}

func (c counter) control(at span) bool { return c.all || c.where != nil && c.where(at.from, at.to) }

// split gives the parts of p behind byte from in order: text to text, tokens to token, with their place in p. Where white space that a token took
// along holds another token, that one is given too, and may lie before the end of the one before: so does the reference, but where both take white space
// along, on which it ends in a panic.
func (m *matcher) split(p piece, from int, counts counter, text func(piece), token func(t *added, p piece)) {
	done := from
	for i := from; m != nil && i < len(p.text); {
		if i = m.seek(p.text, i); i == len(p.text) {
			break
		}
		t, end := m.longest(p, i, counts)
		if t == nil {
			i++
			continue
		}
		from, to := i, end
		i = end
		if t.singleWord && !alone(p.text, from, to) {
			continue
		}
		if t.lstrip {
			from = max(min(done, from), len(strings.TrimRightFunc(p.text[:from], unicode.IsSpace)))
		}
		if t.rstrip {
			to = len(p.text) - len(strings.TrimLeftFunc(p.text[to:], unicode.IsSpace))
		}
		if done < from {
			text(p.cut(done, from))
		}
		token(t, p.cut(from, to))
		done = to
	}
	if done < len(p.text) {
		text(p.cut(done, len(p.text)))
	}
}

// alone says that no character of a word stands beside s[from:to].
func alone(s string, from, to int) bool {
	t := classes()
	if r, n := utf8.DecodeLastRuneInString(s[:from]); n > 0 && t.of(r)&word != 0 {
		return false
	}
	r, n := utf8.DecodeRuneInString(s[to:])
	return n == 0 || t.of(r)&word == 0
}
