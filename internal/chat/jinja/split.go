package jinja

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// splitter collects the parts of a text, each of which is counted before it is kept.
type splitter struct {
	x     *exec
	parts []string
}

func (sp *splitter) add(s string) {
	sp.x.charge(3 * itemBytes)
	sp.parts = append(sp.parts, s)
}

// reversed are the parts, the last first.
func (sp *splitter) reversed() []string {
	slices.Reverse(sp.parts)
	return sp.parts
}

// fields splits at runs of white space, n times at most, as often as possible where n is negative.
func (x *exec) fields(s string, n int) []string {
	sp := &splitter{x: x}
	for ; ; n-- {
		s = strings.TrimLeftFunc(s, isSpace)
		if s == "" {
			return sp.parts
		}
		end := strings.IndexFunc(s, isSpace)
		if n == 0 || end < 0 {
			sp.add(s)
			return sp.parts
		}
		sp.add(s[:end])
		s = s[end:]
	}
}

// fieldsRight is fields from the end; the parts are in order of the text.
func (x *exec) fieldsRight(s string, n int) []string {
	sp := &splitter{x: x}
	for ; ; n-- {
		s = strings.TrimRightFunc(s, isSpace)
		if s == "" {
			return sp.reversed()
		}
		at := strings.LastIndexFunc(s, isSpace)
		if n == 0 || at < 0 {
			sp.add(s)
			return sp.reversed()
		}
		_, size := utf8.DecodeRuneInString(s[at:])
		sp.add(s[at+size:])
		s = s[:at]
	}
}

// split splits at sep, n times at most, as often as possible where n is negative.
func (x *exec) split(s, sep string, n int) []string {
	sp := &splitter{x: x}
	for ; n != 0; n-- {
		before, after, ok := strings.Cut(s, sep)
		if !ok {
			break
		}
		sp.add(before)
		s = after
	}
	sp.add(s)
	return sp.parts
}

// splitRight is split from the end.
func (x *exec) splitRight(s, sep string, n int) []string {
	sp := &splitter{x: x}
	for ; n != 0; n-- {
		i := strings.LastIndex(s, sep)
		if i < 0 {
			break
		}
		sp.add(s[i+len(sep):])
		s = s[:i]
	}
	sp.add(s)
	return sp.reversed()
}

// splitlines splits at every end of a line that Python knows.
func (x *exec) splitlines(s string, keep bool) []string {
	sp := &splitter{x: x}
	for s != "" {
		i := strings.IndexFunc(s, endsLine)
		if i < 0 {
			sp.add(s)
			break
		}
		_, n := utf8.DecodeRuneInString(s[i:])
		if strings.HasPrefix(s[i:], "\r\n") {
			n = 2
		}
		if keep {
			sp.add(s[:i+n])
		} else {
			sp.add(s[:i])
		}
		s = s[i+n:]
	}
	return sp.parts
}

func endsLine(r rune) bool {
	return r >= '\n' && r <= '\r' || r >= 0x1c && r <= 0x1e || r == 0x85 || r == 0x2028 || r == 0x2029
}
