package jinja

import (
	"strings"
	"unicode/utf8"
)

type tokenKind uint8

const (
	tokEOF        tokenKind = iota
	tokText                 // what stands outside of tags
	tokPrintBegin           // {{
	tokPrintEnd             // }}
	tokBlockBegin           // {%
	tokBlockEnd             // %}
	tokName
	tokString
	tokInt
	tokFloat
	tokOp
)

// token is a piece of a template. num is the value of a number; at is its first byte in the source.
type token struct {
	kind tokenKind
	text string
	num  Value
	at   int
}

// String names the token in a message.
func (t token) String() string {
	switch t.kind {
	case tokEOF:
		return "the end of the template"
	case tokText:
		return "text"
	case tokPrintBegin, tokBlockBegin:
		return "the start of a tag"
	case tokPrintEnd, tokBlockEnd:
		return "the end of the tag"
	case tokString:
		return "a string"
	}
	return "'" + t.text + "'"
}

// lexer splits a source as jinja2 does with trim_blocks and lstrip_blocks.
type lexer struct {
	src       string
	pos       int
	lineStart bool // the piece before pos ended a line
	tokens    []token
}

// normalize gives every line the end \n and drops the last one.
func normalize(src string) string {
	if len(src) > maxSource {
		fail("LimitError", "the template has more than %d bytes", maxSource)
	}
	if !utf8.ValidString(src) {
		fail("UnicodeDecodeError", "the template is not UTF-8")
	}
	src = strings.ReplaceAll(strings.ReplaceAll(src, "\r\n", "\n"), "\r", "\n")
	return strings.TrimSuffix(src, "\n")
}

// lex splits a normalized source.
func lex(src string) []token {
	l := &lexer{src: src, lineStart: true}
	for l.pos < len(l.src) {
		l.piece()
	}
	l.emit(tokEOF, "")
	return l.tokens
}

func (l *lexer) emit(k tokenKind, s string) {
	l.tokens = append(l.tokens, token{kind: k, text: s, at: l.pos})
}

func (l *lexer) fail(format string, a ...any) { failAt(l.pos, "TemplateSyntaxError", format, a...) }

// take steps over n bytes.
func (l *lexer) take(n int) {
	l.lineStart = n > 0 && l.src[l.pos+n-1] == '\n'
	l.pos += n
}

// piece reads text up to the next tag, and that tag.
func (l *lexer) piece() {
	rest := l.src[l.pos:]
	at := tagStart(rest)
	if at < 0 {
		l.text(rest)
		l.take(len(rest))
		return
	}
	kind, n := rest[at+1], at+2
	sign := signAt(rest, n)
	if sign != 0 {
		n++
	}
	l.text(l.stripBefore(rest[:at], sign, kind != '{'))
	if kind == '%' {
		if m := rawBegin(rest[n:]); m > 0 {
			l.take(n + m)
			l.raw()
			return
		}
	}
	l.take(n)
	switch kind {
	case '{':
		l.emit(tokPrintBegin, "")
		l.tag("}}", tokPrintEnd)
	case '%':
		l.emit(tokBlockBegin, "")
		l.tag("%}", tokBlockEnd)
	default:
		l.comment()
	}
}

// tagStart is where the next {{, {% or {# of s is, -1 for nowhere.
func tagStart(s string) int {
	for at := 0; ; at++ {
		i := strings.IndexByte(s[at:], '{')
		if i < 0 || at+i+1 >= len(s) {
			return -1
		}
		at += i
		if c := s[at+1]; c == '{' || c == '%' || c == '#' {
			return at
		}
	}
}

// signAt is the - or + at s[i] that controls white space, 0 for none.
func signAt(s string, i int) byte {
	if i < len(s) && (s[i] == '-' || s[i] == '+') {
		return s[i]
	}
	return 0
}

func (l *lexer) text(s string) {
	if s != "" {
		l.emit(tokText, s)
	}
}

// stripBefore is the text before a tag as the tag leaves it: - strips it, and a block or a comment that is alone on its
// line takes the line's indent unless + says otherwise.
func (l *lexer) stripBefore(s string, sign byte, block bool) string {
	switch {
	case sign == '-':
		return strings.TrimRightFunc(s, isSpace)
	case sign == '+' || !block:
		return s
	}
	from := strings.LastIndexByte(s, '\n') + 1
	if (from > 0 || l.lineStart) && strings.TrimLeftFunc(s[from:], isSpace) == "" {
		return s[:from]
	}
	return s
}

// tagEnd is the length of the end of a tag at the start of s with the white space that it takes, 0 if there is none: -
// takes all that follows, a block or a comment one newline.
func tagEnd(s, end string) int {
	switch {
	case strings.HasPrefix(s, "-"+end):
		n := 1 + len(end)
		return len(s) - len(strings.TrimLeftFunc(s[n:], isSpace))
	case end != "}}" && strings.HasPrefix(s, "+"+end):
		return 1 + len(end)
	case !strings.HasPrefix(s, end):
		return 0
	case end != "}}" && strings.HasPrefix(s[len(end):], "\n"):
		return len(end) + 1
	}
	return len(end)
}

func (l *lexer) comment() {
	rest := l.src[l.pos:]
	for i := range len(rest) {
		if c := rest[i]; c == '#' || c == '-' || c == '+' {
			if n := tagEnd(rest[i:], "#}"); n > 0 {
				l.take(i + n)
				return
			}
		}
	}
	l.fail("this comment has no end; it needs #}")
}

// rawBegin is the length of `raw %}` at the start of s, which follows {%; 0 if s is something else.
func rawBegin(s string) int {
	t, ok := strings.CutPrefix(strings.TrimLeftFunc(s, isSpace), "raw")
	if !ok {
		return 0
	}
	t = strings.TrimLeftFunc(t, isSpace)
	if after, ok := strings.CutPrefix(t, "%}"); ok {
		return len(s) - len(after)
	}
	if after, ok := strings.CutPrefix(t, "-%}"); ok {
		return len(s) - len(strings.TrimLeftFunc(after, isSpace))
	}
	return 0
}

// raw reads text up to {% endraw %}, in which nothing is a tag.
func (l *lexer) raw() {
	rest := l.src[l.pos:]
	for at := 0; ; at += 2 {
		i := strings.Index(rest[at:], "{%")
		if i < 0 {
			l.fail("this raw block has no end; it needs {%% endraw %%}")
		}
		at += i
		n, sign := at+2, signAt(rest, at+2)
		if sign != 0 {
			n++
		}
		after, ok := strings.CutPrefix(strings.TrimLeftFunc(rest[n:], isSpace), "endraw")
		if !ok {
			continue
		}
		after = strings.TrimLeftFunc(after, isSpace)
		if m := tagEnd(after, "%}"); m > 0 {
			l.text(l.stripBefore(rest[:at], sign, true))
			l.take(len(rest) - len(after) + m)
			return
		}
	}
}
