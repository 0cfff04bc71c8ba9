package jinja

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"
)

// spec is how a value is to be formatted, by % or by str.format.
type spec struct {
	fill  rune
	align byte // < > ^ = or 0
	sign  byte // + or space, else 0
	alt   bool
	width int
	comma string // between groups of three digits, "" for none
	prec  int    // -1 for none
	verb  byte   // 0 for none
}

const maxPrecision = 1000

// pad fills s to the width; prefix is a sign, behind which = fills.
func (x *exec) pad(sp spec, prefix, s string) string {
	gap := sp.width - utf8.RuneCountInString(s) - len(prefix)
	if gap <= 0 {
		return prefix + s
	}
	x.charge(len(s))
	x.chargeTimes(utf8.RuneLen(sp.fill), gap)
	fill := func(n int) string { return strings.Repeat(string(sp.fill), n) }
	switch sp.align {
	case '<':
		return prefix + s + fill(gap)
	case '^':
		return fill(gap/2) + prefix + s + fill(gap-gap/2)
	case '=':
		return prefix + fill(gap) + s
	}
	return fill(gap) + prefix + s
}

// padText formats text: cut to the precision, filled to the width.
func (x *exec) padText(sp spec, s string) string {
	x.scan(s)
	if n := utf8.RuneCountInString(s); sp.prec >= 0 && sp.prec < n {
		s = substring(s, n, 0, sp.prec)
	}
	return x.pad(sp, "", s)
}

// formatNumber formats a number by a verb of Python.
func (x *exec) formatNumber(sp spec, v Value) string {
	if sp.prec > maxPrecision {
		fail("LimitError", "a precision of more than %d digits", maxPrecision)
	}
	var s string
	if n, ok := asBig(v); ok && strings.IndexByte("dnxXob\x00", sp.verb) >= 0 {
		s = formatInt(sp, n)
	} else {
		f, _ := asFloat(v)
		s = formatFloat(sp, f)
	}
	sign := ""
	if rest, ok := strings.CutPrefix(s, "-"); ok {
		sign, s = "-", rest
	} else if sp.sign != 0 {
		sign = string(sp.sign)
	}
	if sp.comma != "" {
		if sp.align == '=' && sp.fill == '0' {
			unsupported("zeros with separators between them")
		}
		s = group(s, sp.comma)
	}
	return x.pad(sp, sign, s)
}

func formatInt(sp spec, n *big.Int) string {
	base := map[byte]int{'x': 16, 'X': 16, 'o': 8, 'b': 2}[sp.verb]
	if base == 0 {
		return bigString(n)
	}
	if sp.alt || sp.comma != "" {
		unsupported("a format of this kind")
	}
	s := n.Text(base)
	if sp.verb == 'X' {
		s = strings.ToUpper(s)
	}
	return s
}

func formatFloat(sp spec, f float64) string {
	if sp.alt {
		unsupported("a format with #")
	}
	prec := sp.prec
	if prec < 0 {
		prec = 6
	}
	var s string
	switch sp.verb {
	case 0:
		if sp.prec < 0 {
			return floatRepr(f)
		}
		unsupported("a precision without a letter behind it")
	case 'f', 'F', 'e', 'E':
		s = strconv.FormatFloat(f, sp.verb|0x20, prec, 64)
	case 'g', 'G', 'n':
		s = formatG(f, max(prec, 1))
	case '%':
		s = strconv.FormatFloat(f*100, 'f', prec, 64) + "%"
	default:
		fail("ValueError", "unknown format code '%c' for object of type 'float'", sp.verb)
	}
	s = pythonInf(s)
	if sp.verb >= 'E' && sp.verb <= 'G' {
		return strings.ToUpper(s)
	}
	return s
}

// pythonInf spells what Go writes as +Inf and NaN.
func pythonInf(s string) string {
	return strings.NewReplacer("+Inf", "inf", "Inf", "inf", "NaN", "nan").Replace(s)
}

// formatG is C's %g: no zeros at the end, an exponent only where it is short.
func formatG(f float64, prec int) string {
	e := strconv.FormatFloat(f, 'e', prec-1, 64)
	digits, exponent, ok := strings.Cut(e, "e")
	if !ok {
		return e
	}
	bare := func(s string) string {
		if strings.Contains(s, ".") {
			s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
		}
		return s
	}
	if n, _ := strconv.Atoi(exponent); n >= -4 && n < prec {
		return bare(strconv.FormatFloat(f, 'f', prec-1-n, 64))
	}
	return bare(digits) + "e" + exponent
}

// group puts a separator between every three digits.
func group(s, sep string) string {
	end := len(s)
	if i := strings.IndexAny(s, ".e%"); i >= 0 {
		end = i
	}
	if strings.ContainsAny(s, "in") { // inf, nan
		return s
	}
	for i := end - 3; i > 0; i -= 3 {
		s = s[:i] + sep + s[i:]
	}
	return s
}

// formatSpec is Python's format(v, s).
func (x *exec) formatSpec(v Value, s string) string {
	if s == "" {
		return x.str(v)
	}
	mustBeDefined(v)
	sp := parseSpec(s)
	if str, ok := text(v); ok {
		if sp.align == '=' || sp.sign != 0 || sp.comma != "" || sp.alt || sp.verb != 0 && sp.verb != 's' {
			fail("ValueError", "the format '%s' is not for a str", s)
		}
		if sp.align == 0 {
			sp.align = '<'
		}
		return x.padText(sp, str)
	}
	if !isNumber(v) {
		fail("TypeError", "unsupported format string passed to %s.__format__", typeName(v))
	}
	return x.formatNumber(x.numberSpec(sp, v, s), v)
}

// numberSpec checks a specification for a number.
func (x *exec) numberSpec(sp spec, v Value, s string) spec {
	if b, ok := v.(bool); ok && sp.verb == 0 {
		unsupported("a format of %s", scalar(b))
	}
	_, isInt := asBig(v)
	switch {
	case sp.verb == 'c' || sp.verb == 's' || strings.IndexByte("dnxXobeEfFgG%\x00", sp.verb) < 0:
		if sp.verb == 'c' && isInt {
			unsupported("a format of a character")
		}
		fail("ValueError", "unknown format code '%c' for object of type '%s'", sp.verb, typeName(v))
	case isInt && sp.prec >= 0 && strings.IndexByte("dnxXob\x00", sp.verb) >= 0:
		fail("ValueError", "precision not allowed in integer format specifier")
	case !isInt && strings.IndexByte("dxXob", sp.verb) >= 0 && sp.verb != 0:
		fail("ValueError", "unknown format code '%c' for object of type 'float'", sp.verb)
	case sp.verb == 'n' && sp.comma != "":
		fail("ValueError", "the format '%s' has a separator and n", s)
	}
	if sp.align == 0 {
		sp.align = '>'
	}
	return sp
}

// parseSpec reads [[fill]align][sign][#][0][width][,][.precision][verb].
func parseSpec(s string) spec {
	sp := spec{fill: ' ', prec: -1}
	r := []rune(s)
	at := func(set string) bool { return len(r) > 0 && strings.ContainsRune(set, r[0]) }
	take := func() byte {
		c := byte(r[0])
		r = r[1:]
		return c
	}
	if len(r) > 1 && strings.ContainsRune("<>^=", r[1]) {
		sp.fill, r = r[0], r[1:]
	}
	if at("<>^=") {
		sp.align = take()
	}
	if at("+- ") {
		if sp.sign = take(); sp.sign == '-' {
			sp.sign = 0
		}
	}
	if at("#") {
		sp.alt = take() != 0
	}
	if at("0") && sp.align == 0 {
		sp.fill, sp.align = '0', '='
	}
	number := func() int {
		n := 0
		for at("0123456789") {
			if n = n*10 + int(take()-'0'); n > 1<<31 {
				fail("ValueError", "too many decimal digits in format string")
			}
		}
		return n
	}
	sp.width = number()
	if at(",_") {
		sp.comma = string(rune(take()))
	}
	if at(".") {
		take()
		if !at("0123456789") {
			fail("ValueError", "format specifier missing precision")
		}
		sp.prec = number()
	}
	if len(r) > 0 && r[0] < utf8.RuneSelf {
		sp.verb = take()
	}
	if len(r) > 0 {
		fail("ValueError", "invalid format specifier '%s'", fmt.Sprintf("%.40s", s))
	}
	return sp
}
