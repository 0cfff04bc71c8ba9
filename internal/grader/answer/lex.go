package answer

import (
	"regexp"
	"unicode/utf8"
)

// tokenKind says what a token of an expression is.
type tokenKind byte

const (
	endToken tokenKind = iota
	numberToken
	nameToken // one letter, a variable
	commandToken
	signToken
)

type token struct {
	kind tokenKind
	text string // of a command: with its backslash
}

var wordInWrapper = regexp.MustCompile(`\\(?:text|mathrm|mbox|textrm|operatorname|mathit|mathbf)\s*\{\s*([A-Za-z]+)\s*\}`)

// namedConstants are the words that are one symbol where they stand alone.
var namedConstants = map[string]bool{"pi": true, "infinity": true, "inf": true, "theta": true}

// tokens splits an expression. A word that is no function is one variable a letter.
func tokens(s string) (all []token) {
	s = wordInWrapper.ReplaceAllStringFunc(s, func(m string) string {
		word := wordInWrapper.FindStringSubmatch(m)[1]
		if functions[word] {
			return ` \` + word + " "
		}
		return " " + word + " "
	})
	for i := 0; i < len(s); {
		switch c := s[i]; {
		case isBlank(c):
			i++
		case isDigit(c), c == '.' && i+1 < len(s) && isDigit(s[i+1]):
			n := numberLength(s[i:])
			all = append(all, token{numberToken, s[i : i+n]})
			i += n
		case c == '\\' && i+1 < len(s) && (isLetter(s[i+1]) || s[i+1] == '{' || s[i+1] == '}' || s[i+1] == '|'):
			n := 2
			for isLetter(s[i+1]) && i+n < len(s) && isLetter(s[i+n]) {
				n++
			}
			all = append(all, token{commandToken, s[i : i+n]})
			i += n
		case isLetter(c):
			n := 1
			for i+n < len(s) && isLetter(s[i+n]) {
				n++
			}
			all = word(all, s[i:i+n])
			i += n
		default:
			_, n := utf8.DecodeRuneInString(s[i:])
			all = append(all, token{signToken, s[i : i+n]})
			i += n
		}
	}
	return all
}

// word adds the variables of a word, up to where its rest is a name.
func word(all []token, w string) []token {
	for ; w != ""; w = w[1:] {
		if functions[w] || namedConstants[w] {
			return append(all, token{commandToken, `\` + w})
		}
		all = append(all, token{nameToken, w[:1]})
	}
	return all
}

// numberLength is that of the number that s begins with: digits, a fraction, an exponent that no letter follows.
func numberLength(s string) int {
	n := digits(s)
	if n < len(s) && s[n] == '.' && digits(s[n+1:]) > 0 {
		n += 1 + digits(s[n+1:])
	}
	if s[0] == '.' || n >= len(s) || s[n] != 'e' && s[n] != 'E' {
		return n
	}
	at := n + 1
	if at < len(s) && (s[at] == '+' || s[at] == '-') {
		at++
	}
	d := digits(s[at:])
	if d == 0 || at+d < len(s) && isLetter(s[at+d]) {
		return n
	}
	return at + d
}

func digits(s string) (n int) {
	for n < len(s) && isDigit(s[n]) {
		n++
	}
	return n
}
