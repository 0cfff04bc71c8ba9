package tokenizer

import (
	"strings"
	"unicode/utf8"
)

// splitter is a pre-tokenizer: it cuts a piece into those that no token may cross, in order.
type splitter interface {
	split(p piece, aligned bool, yield func(piece))
}

// behavior is what a Split does with what its pattern matches.
type behavior string

const (
	isolated           behavior = "Isolated"
	removed            behavior = "Removed"
	mergedWithPrevious behavior = "MergedWithPrevious"
	mergedWithNext     behavior = "MergedWithNext"
	contiguous         behavior = "Contiguous"
)

// patternSplit cuts at the matches of a pattern.
type patternSplit struct {
	next     match
	behavior behavior
	invert   bool // what lies between the matches takes their place
}

func (s patternSplit) split(p piece, _ bool, yield func(piece)) {
	if s.behavior != isolated && s.behavior != removed {
		s.joined(p, yield)
		return
	}
	s.each(p.text, func(from, to int, matched bool) {
		if s.behavior == isolated || !matched {
			yield(p.cut(from, to))
		}
	})
}

// each calls do for every match and for all that lies between two of them, in order.
func (s patternSplit) each(text string, do func(from, to int, matched bool)) {
	gap := 0
	for i := 0; i < len(text); {
		end := s.next(text, i)
		if end < 0 {
			_, n := utf8.DecodeRuneInString(text[i:])
			i += n
			continue
		}
		if gap < i {
			do(gap, i, s.invert)
		}
		do(i, end, !s.invert)
		i, gap = end, end
	}
	if gap < len(text) {
		do(gap, len(text), s.invert)
	}
}

// joined is split where matches go with their neighbours.
func (s patternSplit) joined(p piece, yield func(piece)) {
	type part struct {
		from, to int
		matched  bool
	}
	var parts []part
	s.each(p.text, func(from, to int, matched bool) { parts = append(parts, part{from, to, matched}) })
	for i := 0; i < len(parts); {
		j := i + 1
		switch s.behavior {
		case contiguous:
			for j < len(parts) && parts[j].matched == parts[i].matched {
				j++
			}
		case mergedWithPrevious: // one match goes with what is no match before it
			if !parts[i].matched && j < len(parts) && parts[j].matched {
				j++
			}
		case mergedWithNext:
			if parts[i].matched && j < len(parts) && !parts[j].matched {
				j++
			}
		}
		yield(p.cut(parts[i].from, parts[j-1].to))
		i = j
	}
}

// literal is the pattern of a text that stands for itself; it is not empty.
func literal(text string) match {
	return func(s string, i int) int {
		if strings.HasPrefix(s[i:], text) {
			return i + len(text)
		}
		return -1
	}
}

// spaced is ByteLevel's add_prefix_space: a piece starts with a space.
type spaced struct{}

func (spaced) split(p piece, aligned bool, yield func(piece)) {
	if !strings.HasPrefix(p.text, " ") {
		p = p.prepend(" ", aligned)
	}
	yield(p)
}

// metaspace makes spaces into a character of their own, puts it before a piece, and cuts before each of it.
type metaspace struct {
	mark   string
	scheme string // always, first (the piece at the very start of the text), never
	cut    bool
}

func (s metaspace) split(p piece, aligned bool, yield func(piece)) {
	p = p.replace(" ", s.mark, aligned)
	if !strings.HasPrefix(p.text, s.mark) && (s.scheme == "always" || s.scheme == "first" && p.start == 0) {
		p = p.prepend(s.mark, aligned)
	}
	if !s.cut {
		yield(p)
		return
	}
	from := 0
	for i := indexFrom(p.text, s.mark, 0); i >= 0; i = indexFrom(p.text, s.mark, i+len(s.mark)) {
		if i > from {
			yield(p.cut(from, i))
			from = i
		}
	}
	if from < len(p.text) {
		yield(p.cut(from, len(p.text)))
	}
}
