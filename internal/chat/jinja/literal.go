package jinja

import (
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
)

var (
	floatToken = regexp.MustCompile(`^(?:\d+_)*\d+(?:(?:\.(?:\d+_)*\d+)?[eE][+\-]?(?:\d+_)*\d+|\.(?:\d+_)*\d+)`)
	intToken   = regexp.MustCompile(`^(?:0[bB](?:_?[0-1])+|0[oO](?:_?[0-7])+|0[xX](?:_?[\da-fA-F])+|[1-9](?:_?\d)*|0(?:_?0)*)`)
)

// number reads an integer or a float; behind a dot only an integer, as in a.0.1.
func (l *lexer) number(s string) {
	s = numberRun(s)
	if n, err := strconv.ParseUint(s, 10, 63); err == nil && (s[0] != '0' || s == "0") { // most are plain
		l.integer(s, int64(n))
		return
	}
	afterDot := l.pos > 0 && l.src[l.pos-1] == '.'
	if lit := floatToken.FindString(s); lit != "" && !afterDot {
		f, _ := strconv.ParseFloat(strings.ReplaceAll(lit, "_", ""), 64) // an overflow is infinity, as in Python
		l.emit(tokFloat, lit)
		l.tokens[len(l.tokens)-1].num = f
		l.take(len(lit))
		return
	}
	lit := intToken.FindString(s)
	if n, err := strconv.ParseInt(lit, 10, 64); err == nil {
		l.integer(lit, n)
		return
	}
	if len(lit) > maxDigits {
		l.fail("this integer has more than %d digits", maxDigits)
	}
	n, ok := new(big.Int).SetString(strings.ReplaceAll(lit, "_", ""), 0)
	if !ok { // 0_0 is Python's zero
		n = new(big.Int)
	}
	l.integer(lit, smallest(n))
}

// numberRun is the start of s that a number at its start can reach; the expressions above take longer the more follows.
func numberRun(s string) string {
	n := 0
	for n < len(s) && n < 2*maxDigits {
		c := s[n]
		sign := (c == '+' || c == '-') && n > 0 && s[n-1]|0x20 == 'e'
		if !sign && c != '.' && !isWord(rune(c)) {
			break
		}
		n++
	}
	return s[:n]
}

func (l *lexer) integer(lit string, v Value) {
	l.emit(tokInt, lit)
	l.tokens[len(l.tokens)-1].num = v
	l.take(len(lit))
}

// quoted reads a string and decodes Python's escapes.
func (l *lexer) quoted(s string) {
	n := 1
	for n < len(s) && s[n] != s[0] {
		if s[n] == '\\' {
			n++
		}
		n++
	}
	if n >= len(s) {
		l.fail("this string has no end")
	}
	l.emit(tokString, l.unescape(s[1:n]))
	l.take(n + 1)
}

var escapes = map[byte]string{'n': "\n", 't': "\t", 'r': "\r", '\\': "\\", '\'': "'", '"': "\"", 'a': "\a", 'b': "\b", 'f': "\f", 'v': "\v", '\n': ""}

func (l *lexer) unescape(s string) string {
	if !strings.Contains(s, "\\") {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		if s[i] != '\\' {
			b.WriteByte(s[i])
			i++
			continue
		}
		c := s[i+1] // quoted has made sure that something follows
		if e, ok := escapes[c]; ok {
			b.WriteString(e)
			i += 2
		} else if width := map[byte]int{'x': 2, 'u': 4, 'U': 8}[c]; width > 0 {
			b.WriteRune(l.hexEscape(s[i+1:], width))
			i += 2 + width
		} else if c >= '0' && c <= '7' {
			digits := octal(s[i+1:])
			r, _ := strconv.ParseUint(digits, 8, 32)
			b.WriteRune(rune(r))
			i += 1 + len(digits)
		} else if c == 'N' {
			failAt(l.pos, "Unsupported", `\N{...} is not supported in a chat template; write the character itself`)
		} else { // Python keeps the backslash of an escape that it does not know
			b.WriteByte('\\')
			i++
		}
	}
	return b.String()
}

// hexEscape is the character of s, which is an escape letter and width digits.
func (l *lexer) hexEscape(s string, width int) rune {
	if len(s) <= width {
		l.fail(`truncated \%c escape`, s[0])
	}
	n, err := strconv.ParseUint(s[1:1+width], 16, 32)
	if err != nil || n > unicode.MaxRune {
		l.fail(`\%s is no character`, s[:1+width])
	}
	if utf16.IsSurrogate(rune(n)) {
		failAt(l.pos, "Unsupported", `\%s is half a character; write the whole one`, s[:1+width])
	}
	return rune(n)
}

// octal is up to three octal digits.
func octal(s string) string {
	n := 0
	for n < len(s) && n < 3 && s[n] >= '0' && s[n] <= '7' {
		n++
	}
	return s[:n]
}
