package jinja

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// operators in the order in which they are tried: the longer first.
var operators = []string{"**", "//", "==", "!=", ">=", "<=", "+", "-", "*", "/", "%", "~", "<", ">", "=", ".", ":", "|", ",", ";", "(", ")", "[", "]", "{", "}"}

var closing = map[string]string{"(": ")", "[": "]", "{": "}"}

// tag reads the tokens of a tag up to its end; within brackets nothing is an end.
func (l *lexer) tag(end string, endKind tokenKind) {
	var open []string // the closing brackets that are due
	for {
		rest := l.src[l.pos:]
		if len(open) == 0 {
			if n := tagEnd(rest, end); n > 0 {
				l.emit(endKind, "")
				l.take(n)
				return
			}
		}
		r, size := utf8.DecodeRuneInString(rest)
		switch {
		case rest == "":
			l.fail("the template ends inside a tag; it needs %s", end)
		case isSpace(r):
			l.take(size)
		case r >= '0' && r <= '9':
			l.number(rest)
		case isWord(r):
			l.name(rest)
		case r == '\'' || r == '"':
			l.quoted(rest)
		default:
			open = l.operator(rest, open)
		}
	}
}

func (l *lexer) name(s string) {
	n := len(s) - len(strings.TrimLeftFunc(s, isWord))
	if r, _ := utf8.DecodeRuneInString(s); r != '_' && !unicode.IsLetter(r) {
		l.fail("%q starts no name", r)
	}
	l.emit(tokName, s[:n])
	l.take(n)
}

func (l *lexer) operator(s string, open []string) []string {
	i := slices.IndexFunc(operators, func(o string) bool { return strings.HasPrefix(s, o) })
	if i < 0 {
		r, _ := utf8.DecodeRuneInString(s)
		l.fail("unexpected character %q", r)
	}
	op := operators[i]
	switch op {
	case "(", "[", "{":
		open = append(open, closing[op])
	case ")", "]", "}":
		if len(open) == 0 {
			l.fail("unexpected '%s'", op)
		}
		if due := open[len(open)-1]; due != op {
			l.fail("unexpected '%s', '%s' is due", op, due)
		}
		open = open[:len(open)-1]
	}
	l.emit(tokOp, op)
	l.take(len(op))
	return open
}

// isSpace is Python's str.isspace of a character.
func isSpace(r rune) bool { return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f }

// isWord is \w of Python's regular expressions.
func isWord(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsNumber(r) }
