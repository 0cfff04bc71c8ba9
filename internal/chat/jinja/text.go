package jinja

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Case mapping is Python's: the full mappings of Unicode, where Go's strings has the simple ones.

// fullUpper are the characters whose upper case is several; of the rest the simple mapping is the full one.
var fullUpper = map[rune]string{'ß': "SS", 'ŉ': "ʼN", 'ǰ': "J̌", 'ΐ': "Ϊ́", 'ΰ': "Ϋ́", 'և': "ԵՒ", 'ẖ': "H̱", 'ẗ': "T̈", 'ẘ': "W̊", 'ẙ': "Y̊",
	'ẚ': "Aʾ", 'ﬀ': "FF", 'ﬁ': "FI", 'ﬂ': "FL", 'ﬃ': "FFI", 'ﬄ': "FFL", 'ﬅ': "ST", 'ﬆ': "ST"}

// fullTitle are those of them whose title case is another.
var fullTitle = map[rune]string{'ß': "Ss", 'և': "Եւ", 'ﬀ': "Ff", 'ﬁ': "Fi", 'ﬂ': "Fl", 'ﬃ': "Ffi", 'ﬄ': "Ffl", 'ﬅ': "St", 'ﬆ': "St"}

// irregular are blocks with further full mappings, polytonic Greek and Armenian ligatures, which are refused.
var irregular = &unicode.RangeTable{R16: []unicode.Range16{{Lo: 0x1f50, Hi: 0x1f50, Stride: 1}, {Lo: 0x1f52, Hi: 0x1f56, Stride: 2},
	{Lo: 0x1f80, Hi: 0x1fff, Stride: 1}, {Lo: 0xfb13, Hi: 0xfb17, Stride: 1}}}

func checkCase(s string) {
	if !isASCII(s) && strings.IndexFunc(s, func(r rune) bool { return unicode.Is(irregular, r) }) >= 0 {
		unsupported("a case mapping of this script")
	}
}

func upper(s string) string {
	if isASCII(s) {
		return strings.ToUpper(s)
	}
	checkCase(s)
	var b strings.Builder
	for _, r := range s {
		if full, ok := fullUpper[r]; ok {
			b.WriteString(full)
		} else {
			b.WriteRune(unicode.ToUpper(r))
		}
	}
	return b.String()
}

func lower(s string) string { return lowerFrom(s, 0) }

// lowerFrom is the lower case of s from a byte on; what stands before decides about a final sigma.
func lowerFrom(s string, from int) string {
	if isASCII(s[from:]) || !strings.ContainsAny(s[from:], "Σİ") {
		return strings.ToLower(s[from:])
	}
	var b strings.Builder
	for i, r := range s[from:] {
		b.WriteString(lowerRune(s, from+i, r))
	}
	return b.String()
}

// lowerRune is the lower case of r, which stands at byte i of s.
func lowerRune(s string, i int, r rune) string {
	switch {
	case r == 'İ':
		return "i̇"
	case r == 'Σ' && isFinal(s[:i], s[i+len("Σ"):]):
		return "ς"
	}
	return string(unicode.ToLower(r))
}

// isFinal tells whether a sigma between these ends a word: a cased letter before it, none behind it.
func isFinal(before, after string) bool {
	skip := func(r rune) bool {
		return unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf, unicode.Lm) || r == '\'' || r == '’' || r == '·'
	}
	last, _ := utf8.DecodeLastRuneInString(strings.TrimRightFunc(before, skip))
	next, _ := utf8.DecodeRuneInString(strings.TrimLeftFunc(after, skip))
	return isCased(last) && !isCased(next)
}

func isCased(r rune) bool {
	return unicode.IsUpper(r) || unicode.IsLower(r) || unicode.IsTitle(r) || unicode.Is(unicode.Other_Lowercase, r) || unicode.Is(unicode.Other_Uppercase, r)
}

func titleCase(s string) string {
	checkCase(s)
	r, _ := utf8.DecodeRuneInString(s)
	if full, ok := fullTitle[r]; ok {
		return full
	}
	if full, ok := fullUpper[r]; ok {
		return full
	}
	return string(unicode.ToTitle(r))
}

// firstRune cuts s behind its first character.
func firstRune(s string) (first, rest string) {
	_, n := utf8.DecodeRuneInString(s)
	return s[:n], s[n:]
}

func capitalize(s string) string {
	if s == "" {
		return s
	}
	first, _ := firstRune(s)
	return titleCase(first) + lowerFrom(s, len(first))
}

// title starts a word after every character that has no case.
func title(s string) string {
	var b strings.Builder
	inWord := false
	for i, r := range s {
		switch {
		case !isCased(r):
			b.WriteRune(r)
		case inWord:
			b.WriteString(lowerRune(s, i, r))
		default:
			b.WriteString(titleCase(string(r)))
		}
		inWord = isCased(r)
	}
	return b.String()
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// trim strips the characters of set, or white space where set is unset or None.
func (x *exec) trim(s string, set Value, name string, left, right bool) string {
	in := isSpace
	if isSet(set) {
		chars := stringArg(name, set)
		x.charge(16 * len(chars))
		in = strippable(chars)
	}
	if left {
		s = strings.TrimLeftFunc(s, in)
	}
	if right {
		s = strings.TrimRightFunc(s, in)
	}
	return s
}

// strippable tests for the characters of a set.
func strippable(chars string) func(rune) bool {
	if len(chars) < 8 {
		return func(r rune) bool { return strings.ContainsRune(chars, r) }
	}
	set := map[rune]bool{}
	for _, r := range chars {
		set[r] = true
	}
	return func(r rune) bool { return set[r] }
}

// replace replaces old n times at most, everywhere where n is negative.
func (x *exec) replace(s, old, repl string, n int) string {
	hits := strings.Count(s, old)
	if n >= 0 {
		hits = min(hits, n)
	}
	x.charge(len(s))
	x.chargeTimes(max(len(repl)-len(old), 0), hits)
	return strings.Replace(s, old, repl, n)
}
