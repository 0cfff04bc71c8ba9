package jinja

import (
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

var (
	floatText = regexp.MustCompile(`^[+-]?(?:(?:\d(?:_?\d)*\.?(?:\d(?:_?\d)*)?|\.\d(?:_?\d)*)(?:[eE][+-]?\d(?:_?\d)*)?|(?i:inf|infinity|nan))$`)
	digitText = regexp.MustCompile(`^[0-9a-z](?:_?[0-9a-z])*$`)
)

// maxNumberText is far beyond what anybody writes, and short enough to match quickly.
const maxNumberText = 2 * maxDigits

// asciiNumber is s without white space around it. Python reads digits of other scripts too.
func asciiNumber(s string) string {
	if len(s) > maxNumberText {
		unsupported("reading a number of more than %d bytes", maxNumberText)
	}
	if strings.ContainsFunc(s, func(r rune) bool { return r > unicode.MaxASCII && unicode.IsDigit(r) }) {
		unsupported("a number in other digits than 0 to 9")
	}
	return strings.TrimFunc(s, isSpace)
}

// parseInt is Python's int(s, base), base 2 to 36.
func parseInt(s string, base int) (Value, bool) {
	s = strings.ToLower(asciiNumber(s))
	digits := strings.TrimPrefix(s, "-")
	negative := digits != s
	if !negative {
		digits = strings.TrimPrefix(digits, "+")
	}
	if prefix := map[int]string{2: "0b", 8: "0o", 16: "0x"}[base]; prefix != "" && strings.HasPrefix(digits, prefix) {
		digits = strings.TrimPrefix(digits[len(prefix):], "_")
	}
	if len(digits) > maxDigits || !digitText.MatchString(digits) {
		return nil, false
	}
	n, ok := new(big.Int).SetString(strings.ReplaceAll(digits, "_", ""), base)
	if !ok {
		return nil, false
	}
	if negative {
		n.Neg(n)
	}
	return smallest(n), true
}

// parseFloat is Python's float(s).
func parseFloat(s string) (float64, bool) {
	s = asciiNumber(s)
	if !floatText.MatchString(s) {
		return 0, false
	}
	f, err := strconv.ParseFloat(strings.ReplaceAll(s, "_", ""), 64)
	return f, err == nil || math.IsInf(f, 0)
}

func intFilter(x *exec, v Value, p []Value) Value {
	mustBeDefined(v)
	def := or(p[0], int64(0))
	base := intArg("int", or(p[1], int64(10)))
	if base < 2 || base > 36 {
		unsupported("int of base %d", base)
	}
	if s, ok := text(v); ok {
		x.scan(s)
		if n, ok := parseInt(s, base); ok {
			return n
		}
		f, ok := parseFloat(s)
		if !ok || math.IsInf(f, 0) || math.IsNaN(f) {
			return def
		}
		return truncated(f)
	}
	if f, ok := v.(float64); ok {
		switch {
		case math.IsInf(f, 0):
			fail("OverflowError", "cannot convert float infinity to integer")
		case math.IsNaN(f):
			return def
		}
		return truncated(f)
	}
	if n, ok := asBig(v); ok {
		return smallest(n)
	}
	return def
}

func truncated(f float64) Value {
	n, _ := big.NewFloat(f).Int(nil)
	return smallest(n)
}

func floatFilter(x *exec, v Value, p []Value) Value {
	mustBeDefined(v)
	if f, ok := asFloat(v); ok {
		return f
	}
	if s, ok := text(v); ok {
		x.scan(s)
		if f, ok := parseFloat(s); ok {
			return f
		}
	}
	return or(p[0], 0.0)
}

func absFilter(_ *exec, v Value) Value {
	if f, ok := v.(float64); ok {
		return math.Abs(f)
	}
	n, ok := asBig(v)
	if !ok {
		fail("TypeError", "bad operand type for abs(): '%s'", typeName(v))
	}
	return smallest(new(big.Int).Abs(n))
}

func roundFilter(x *exec, v Value, p []Value) Value {
	how := x.str(or(p[1], "common"))
	if how != "common" && how != "ceil" && how != "floor" {
		fail("FilterArgumentError", "the method of round is common, ceil or floor")
	}
	digits := intArg("round", or(p[0], int64(0)))
	if digits < 0 || digits > 22 {
		unsupported("round to %d digits", digits)
	}
	f, ok := asFloat(v)
	if !ok {
		mustBeDefined(v)
		fail("TypeError", "type %s doesn't define __round__ method", typeName(v))
	}
	if math.IsNaN(f) || math.IsInf(f, 0) {
		unsupported("round of %s", floatRepr(f))
	}
	scale := math.Pow(10, float64(digits))
	switch {
	case how == "ceil":
		return math.Ceil(f*scale)/scale + 0 // Python goes through an integer, which has no -0
	case how == "floor":
		return math.Floor(f*scale)/scale + 0
	}
	if n, ok := asBig(v); ok {
		return smallest(n)
	}
	r, _ := strconv.ParseFloat(strconv.FormatFloat(f, 'f', digits, 64), 64)
	return r
}
