package tokenizer

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
)

// form is a Unicode normalization form, by the tables of Unicode 9.0: marks that came later stay where they are, as in the
// reference, and unlike in golang.org/x/text nothing is put into long runs of marks.
type form struct {
	*forms
	compatible bool // NFKC, NFKD
	composed   bool // NFC, NFKC
}

// forms is the tables of all four forms.
type forms struct {
	class                 map[rune]uint8
	canonical, compatible map[rune][]rune
	pairs                 map[[2]rune]rune
	moves                 *classTable // bit form.kind: what may change, or change its neighbour; without Hangul
}

const (
	hangulFirst, hangulLast          = 0xac00, 0xd7a3
	jamoL, jamoV, jamoT              = 0x1100, 0x1161, 0x11a7
	jamoLCount, jamoVCount, jamoTots = 19, 21, 28
)

var unicodeForms = sync.OnceValue(func() *forms {
	f := &forms{class: map[rune]uint8{}, canonical: map[rune][]rune{}, compatible: map[rune][]rune{}, pairs: map[[2]rune]rune{}, moves: new(classTable)}
	for row := range strings.SplitSeq(combiningClasses, "|") {
		number, ranges, _ := strings.Cut(row, ":")
		class, err := strconv.ParseUint(number, 10, 8)
		if err != nil {
			panic("tokenizer: tables.go: " + err.Error())
		}
		eachRune(ranges, func(r rune) { f.class[r] = uint8(class) })
	}
	readDecompositions(f.canonical, canonicalDecompositions)
	readDecompositions(f.compatible, compatibleDecompositions)
	for row := range strings.SplitSeq(compositions, ";") {
		pair, into, _ := strings.Cut(row, "=")
		a, b, _ := strings.Cut(pair, " ")
		f.pairs[[2]rune{hexRune(a), hexRune(b)}] = hexRune(into)
	}
	for _, n := range []form{{f, false, false}, {f, true, false}, {f, false, true}, {f, true, true}} {
		n.mark()
	}
	return f
})

func readDecompositions(to map[rune][]rune, table string) {
	for row := range strings.SplitSeq(table, ";") {
		from, parts, _ := strings.Cut(row, "=")
		var runes []rune
		for part := range strings.SplitSeq(parts, " ") {
			runes = append(runes, hexRune(part))
		}
		to[hexRune(from)] = runes
	}
}

// mark notes the characters that n may change, or that may change the one before.
func (n form) mark() {
	for r := range n.class {
		n.moves.add(r, n.kind())
	}
	for _, table := range []map[rune][]rune{n.canonical, n.forms.compatible} {
		for r := range table {
			if out, _ := n.runes(string(r)); !slices.Equal(out, []rune{r}) {
				n.moves.add(r, n.kind())
			}
		}
	}
	for pair := range n.pairs {
		if n.composed {
			n.moves.add(pair[1], n.kind())
		}
	}
}

// kind is the bit of n in moves.
func (n form) kind() class {
	switch {
	case n.compatible && n.composed:
		return 1
	case n.compatible:
		return 2
	case n.composed:
		return 4
	}
	return 8
}

// stays says that text is in form n without a doubt: most texts are.
func (n form) stays(text string) bool {
	kind := n.kind()
	for i := 0; i < len(text); {
		if text[i] < utf8.RuneSelf {
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case r >= hangulFirst && r <= hangulLast:
			if !n.composed {
				return false
			}
		case r >= jamoV && r < jamoT+jamoTots || n.moves.of(r)&kind != 0:
			return false
		}
		i += size
	}
	return true
}

func (n form) apply(p piece, aligned bool) piece {
	if n.stays(p.text) {
		return p
	}
	runes, changes := n.runes(p.text)
	text := string(runes)
	if text == p.text {
		return p
	}
	if !aligned {
		return p.with(text, nil)
	}
	return p.with(text, p.changed(runes, changes))
}

// changed is the spans of runes, which took the place of p's text: changes[i] is 1 where runes[i] is new, else it took the place
// of a character and of -changes[i] more behind it. So the reference counts: what was reordered is not traced.
func (p piece) changed(runes []rune, changes []int) []span {
	old := p.spans()
	spans := make([]span, 0, len(old))
	at := 0 // the byte of p's text that is next to be replaced
	for i, r := range runes {
		from := span{p.start, p.start}
		if changes[i] > 0 {
			if at > 0 {
				from = old[at-1]
			}
		} else if at < len(old) {
			from = old[at]
		}
		for left := changes[i]; left <= 0 && at < len(p.text); left++ {
			_, size := utf8.DecodeRuneInString(p.text[at:])
			at += size
		}
		for range utf8.RuneLen(r) {
			spans = append(spans, from)
		}
	}
	return spans
}

// runes is text in form n, and what became of its characters, [len(runes)], as changed wants it.
func (n form) runes(text string) (runes []rune, changes []int) {
	var classes []uint8
	for _, r := range text {
		for i, d := range n.decompose(r) {
			runes, classes, changes = append(runes, d), append(classes, n.class[d]), append(changes, min(i, 1))
		}
	}
	reorder(runes, classes, changes)
	if n.composed {
		return n.compose(runes, classes, changes)
	}
	return runes, changes
}

func (n form) decompose(r rune) []rune {
	if r >= hangulFirst && r <= hangulLast {
		s := r - hangulFirst
		parts := []rune{jamoL + s/(jamoVCount*jamoTots), jamoV + s%(jamoVCount*jamoTots)/jamoTots, jamoT + s%jamoTots}
		if parts[2] == jamoT {
			parts = parts[:2]
		}
		return parts
	}
	if parts := n.forms.compatible[r]; n.compatible && parts != nil {
		return parts
	}
	if parts := n.canonical[r]; parts != nil {
		return parts
	}
	return []rune{r}
}

// reorder sorts each run of marks by their combining class; equal ones stay in order.
func reorder(runes []rune, classes []uint8, changes []int) {
	type row struct {
		r      rune
		class  uint8
		change int
	}
	var rows []row
	for i := 0; i < len(runes); i++ {
		if classes[i] == 0 {
			continue
		}
		rows = rows[:0]
		for j := i; j < len(runes) && classes[j] != 0; j++ {
			rows = append(rows, row{runes[j], classes[j], changes[j]})
		}
		slices.SortStableFunc(rows, func(a, b row) int { return cmp.Compare(a.class, b.class) })
		for k, x := range rows {
			runes[i+k], classes[i+k], changes[i+k] = x.r, x.class, x.change
		}
		i += len(rows)
	}
}

// compose joins what composes, in place: UAX 15, the canonical composition algorithm.
func (n form) compose(runes []rune, classes []uint8, changes []int) ([]rune, []int) {
	out, starter, last := 0, -1, -1 // last: the class of the mark before, -1 where none is between it and the starter
	for i, r := range runes {
		class := int(classes[i])
		if starter >= 0 && last < class {
			if into, ok := n.pair(runes[starter], r); ok {
				runes[starter], changes[starter] = into, changes[starter]+changes[i]-1
				continue
			}
		}
		if class == 0 {
			starter, last = out, -1
		} else if starter >= 0 {
			last = class
		}
		runes[out], changes[out] = r, changes[i]
		out++
	}
	return runes[:out], changes[:out]
}

func (n form) pair(a, b rune) (rune, bool) {
	switch {
	case a >= jamoL && a < jamoL+jamoLCount && b >= jamoV && b < jamoV+jamoVCount:
		return hangulFirst + ((a-jamoL)*jamoVCount+b-jamoV)*jamoTots, true
	case a >= hangulFirst && a <= hangulLast && (a-hangulFirst)%jamoTots == 0 && b > jamoT && b < jamoT+jamoTots:
		return a + b - jamoT, true
	}
	into, ok := n.pairs[[2]rune{a, b}]
	return into, ok
}
