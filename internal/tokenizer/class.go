package tokenizer

import (
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
)

// class is what the split patterns ask of a character; bits add up.
type class uint16

const (
	letter class = 1 << iota
	number
	mark
	punctuation
	symbol
	upper   // [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]
	lower   // [\p{Ll}\p{Lm}\p{Lo}\p{M}]
	space   // \s
	newline // [\r\n]
	han     // \p{Han}
	word    // \w
)

// classTable holds the class of every code point, in pages of 256; nil is a page of zeros.
type classTable struct {
	ascii [utf8.RuneSelf]class
	pages [0x1100]*[256]class
}

// classes builds the table once, when the first tokenizer needs it.
var classes = sync.OnceValue(func() *classTable {
	t := new(classTable)
	for _, row := range []struct {
		ranges string
		bits   class
	}{
		{rangesLu, letter | upper}, {rangesLt, letter | upper}, {rangesLm, letter | upper | lower}, {rangesLo, letter | upper | lower},
		{rangesLl, letter | lower}, {rangesM, mark | upper | lower}, {rangesN, number}, {rangesP, punctuation}, {rangesS, symbol},
		{rangesSpace, space}, {rangesHan, han}, {rangesWord, word}, {"a;d", newline},
	} {
		eachRune(row.ranges, func(r rune) { t.add(r, row.bits) })
	}
	copy(t.ascii[:], t.pages[0][:])
	return t
})

func (t *classTable) add(r rune, bits class) {
	if t.pages[r>>8] == nil {
		t.pages[r>>8] = new([256]class)
	}
	t.pages[r>>8][r&255] |= bits
}

// of is the class of r; r is a valid rune or utf8.RuneError.
func (t *classTable) of(r rune) class {
	if page := t.pages[r>>8]; page != nil {
		return page[r&255]
	}
	return 0
}

// at is the class of the character that starts at s[i], and its length in bytes; i < len(s).
func (t *classTable) at(s string, i int) (class, int) {
	if c := s[i]; c < utf8.RuneSelf {
		return t.ascii[c], 1
	}
	r, n := utf8.DecodeRuneInString(s[i:])
	return t.of(r), n
}

// run is the end of the characters from i on that have a bit of mask.
func (t *classTable) run(s string, i int, mask class) int {
	for i < len(s) {
		c, n := t.at(s, i)
		if c&mask == 0 {
			break
		}
		i += n
	}
	return i
}

// until is the end of the characters from i on that have no bit of mask.
func (t *classTable) until(s string, i int, mask class) int {
	for i < len(s) {
		c, n := t.at(s, i)
		if c&mask != 0 {
			break
		}
		i += n
	}
	return i
}

// eachRune calls do for every code point of ranges, as tables.go writes them.
func eachRune(ranges string, do func(rune)) {
	for item := range strings.SplitSeq(ranges, ";") {
		from, to, ok := strings.Cut(item, ",")
		if !ok {
			to = from
		}
		for r, last := hexRune(from), hexRune(to); r <= last; r++ {
			do(r)
		}
	}
}

// hexRune reads a number of our own tables.
func hexRune(s string) rune {
	r, err := strconv.ParseInt(s, 16, 32)
	if err != nil {
		panic("tokenizer: tables.go: " + err.Error())
	}
	return rune(r)
}
