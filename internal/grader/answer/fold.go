// Package answer finds the answer in a text, reads it as mathematics and compares it with a target: boxes, markers, phrases,
// LaTeX, units, intervals, sets. It has no computer algebra: rationals are exact, what is not rational is compared to 60 digits
// and what has variables at fixed points. Every bound is a count of characters, depth, bits or steps, never a clock, so that a
// text has one verdict on every machine. All functions are pure and safe for concurrent use.
package answer

import (
	"regexp"
	"strings"
	"unicode"
)

// folds are the characters with one meaning in LaTeX or ASCII; "" is a character without any width.
var folds = map[rune]string{
	'−': "-", '﹣': "-", '‐': "-", '‑': "-", '‒': "-", '–': "-", '×': `\times `, '·': `\cdot `, '⋅': `\cdot `, '∗': "*",
	'÷': "/", '∕': "/", '⁄': "/", 'π': `\pi `, '∞': `\infty `, '≤': `\le `, '≥': `\ge `, '≠': `\ne `, '≈': `\approx `,
	'∪': `\cup `, '∩': `\cap `, '∅': `\emptyset `, '∈': `\in `, 'ℝ': `\mathbb{R}`, '°': `^\circ `, '±': `\pm `, '′': "'",
	'’': "'", '‘': "'", '“': `"`, '”': `"`, '٫': ".", '٬': ",", '٪': "%", '、': ",", '。': ".",
	'\u200b': "", '\u200c': "", '\u200d': "", '\u2060': "", '\ufeff': "", '\u200e': "", '\u200f': "", '\u2061': "", '\u2062': "", '\u2063': "",
	'½': `\frac{1}{2}`, '⅓': `\frac{1}{3}`, '⅔': `\frac{2}{3}`, '¼': `\frac{1}{4}`, '¾': `\frac{3}{4}`, '⅕': `\frac{1}{5}`,
	'⅖': `\frac{2}{5}`, '⅗': `\frac{3}{5}`, '⅘': `\frac{4}{5}`, '⅙': `\frac{1}{6}`, '⅚': `\frac{5}{6}`,
	'⅛': `\frac{1}{8}`, '⅜': `\frac{3}{8}`, '⅝': `\frac{5}{8}`, '⅞': `\frac{7}{8}`,
}

var raised = map[rune]byte{'⁰': '0', '¹': '1', '²': '2', '³': '3', '⁴': '4', '⁵': '5', '⁶': '6', '⁷': '7', '⁸': '8', '⁹': '9', '⁻': '-'}

var lowered = map[rune]byte{'₀': '0', '₁': '1', '₂': '2', '₃': '3', '₄': '4', '₅': '5', '₆': '6', '₇': '7', '₈': '8', '₉': '9'}

var (
	rootOfGroup = regexp.MustCompile(`√\s*\(`)
	rootOfOne   = regexp.MustCompile(`√\s*([0-9]+|[A-Za-z])`)
)

// Fold writes full-width characters and digits of any script as ASCII, mathematical signs as LaTeX, and every blank but a line
// break as a space. Letters keep their composed or decomposed form. Linear in s.
func Fold(s string) string {
	if isASCII(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	runes := []rune(s)
	for i := 0; i < len(runes); i++ {
		r := runes[i]
		if r >= '！' && r <= '～' {
			r -= '！' - '!'
		}
		switch text, ok := folds[r]; {
		case r < 0x80:
			b.WriteRune(r)
		case ok:
			b.WriteString(text)
		case raised[r] != 0:
			i += script(&b, "^{", runes[i:], raised)
		case lowered[r] != 0:
			i += script(&b, "_{", runes[i:], lowered)
		case unicode.Is(unicode.Nd, r):
			b.WriteByte(digit(r))
		case unicode.IsSpace(r):
			b.WriteByte(' ')
		default:
			b.WriteRune(r)
		}
	}
	s = rootOfGroup.ReplaceAllString(b.String(), `\sqrt(`)
	return rootOfOne.ReplaceAllString(s, `\sqrt{$1}`)
}

// script writes a run of raised or lowered characters as one group, and returns how many follow the first.
func script(b *strings.Builder, open string, runes []rune, table map[rune]byte) int {
	b.WriteString(open)
	n := 0
	for n < len(runes) && table[runes[n]] != 0 {
		b.WriteByte(table[runes[n]])
		n++
	}
	b.WriteByte('}')
	return n - 1
}

// digit is the decimal value of a digit as a character: the blocks of decimal digits begin with their zero.
func digit(r rune) byte {
	for _, x := range unicode.Nd.R16 {
		if r >= rune(x.Lo) && r <= rune(x.Hi) {
			return byte('0' + (r-rune(x.Lo))%10)
		}
	}
	for _, x := range unicode.Nd.R32 {
		if r >= rune(x.Lo) && r <= rune(x.Hi) {
			return byte('0' + (r-rune(x.Lo))%10)
		}
	}
	return '0'
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isBlank(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }
