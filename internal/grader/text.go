package grader

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Which part of a completion is graded.
const (
	AfterReasoning = "after_reasoning"
	FullText       = "full"
	OnlyReasoning  = "reasoning"
)

// Scope says which part of a completion is graded.
type Scope struct {
	// Text is the part: after_reasoning is what follows the reasoning block, reasoning what is inside, full is all of it.
	Text string `yaml:"text" validate:"oneof=after_reasoning full reasoning"`
	// Start opens a reasoning block.
	Start string `yaml:"start"`
	// End closes a reasoning block.
	End string `yaml:"end"`
}

func newScope(text string) Scope { return Scope{Text: text, Start: "<think>", End: "</think>"} }

func (s Scope) check() error {
	switch {
	case s.Start == "":
		return fault("start", "must not be empty")
	case s.End == "":
		return fault("end", "must not be empty")
	}
	return nil
}

// of cuts the part out of a completion. open says that the reasoning never ended, so that there is nothing to grade.
func (s Scope) of(c Completion) (text string, open bool) {
	t := c.plain()
	switch s.Text {
	case FullText:
		return t, false
	case AfterReasoning:
		if i := strings.LastIndex(t, s.End); i >= 0 {
			return t[i+len(s.End):], false
		}
		if c.opens(s.Start) || strings.Contains(t, s.Start) {
			return "", true
		}
		return t, false
	}
	if i := strings.LastIndex(t, s.End); i >= 0 {
		t = t[:i]
	} else if !c.opens(s.Start) && !strings.Contains(t, s.Start) {
		return "", false
	}
	if i := strings.Index(t, s.Start); i >= 0 {
		t = t[i+len(s.Start):]
	}
	return t, false
}

// plain is the text with one kind of line ends and valid throughout.
func (c Completion) plain() string {
	return strings.ToValidUTF8(strings.ReplaceAll(c.Text, "\r\n", "\n"), "\ufffd")
}

// opens says whether the prompt ends inside a reasoning block.
func (c Completion) opens(start string) bool {
	return c.Open || c.Rendered != "" && strings.HasSuffix(strings.TrimRightFunc(c.Rendered, unicode.IsSpace), start)
}

// Folded says which differences between texts don't count.
type Folded struct {
	// IgnoreCase compares without regard to case.
	IgnoreCase bool `yaml:"ignore_case" default:"false"`
	// IgnoreWhitespace takes every run of blanks for one.
	IgnoreWhitespace bool `yaml:"ignore_whitespace" default:"false"`
}

// fold trims a text and drops what does not count.
func (f Folded) fold(s string) string {
	s = strings.TrimSpace(strings.ReplaceAll(s, "\r\n", "\n"))
	if f.IgnoreWhitespace {
		s = strings.Join(strings.Fields(s), " ")
	}
	if f.IgnoreCase {
		s = strings.ToLower(s)
	}
	return s
}

// isWordRune says whether r is part of a word.
func isWordRune(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsNumber(r) }

// hasWord says whether s has x with no letter, digit or underscore glued to one of its own.
func hasWord(s, x string) bool {
	first, _ := utf8.DecodeRuneInString(x)
	last, _ := utf8.DecodeLastRuneInString(x)
	for from := 0; ; {
		i := strings.Index(s[from:], x)
		if i < 0 {
			return false
		}
		at := from + i
		before, _ := utf8.DecodeLastRuneInString(s[:at])
		after, _ := utf8.DecodeRuneInString(s[at+len(x):])
		if !(at > 0 && isWordRune(before) && isWordRune(first)) && !(at+len(x) < len(s) && isWordRune(after) && isWordRune(last)) {
			return true
		}
		_, n := utf8.DecodeRuneInString(s[at:])
		from = at + n
	}
}
