package recipe

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// What may stand where a number is due. YAML's older spellings (octal 010, 1:30 in base 60, 1_000, .inf) are no numbers
// here: they mean different things to different readers.
var (
	wholeForm   = regexp.MustCompile(`^[-+]?[0-9]+$`)
	numberForm  = regexp.MustCompile(`^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`)
	leadingZero = regexp.MustCompile(`^[-+]?0[0-9]`)
	periodForm  = regexp.MustCompile(`^([0-9]+h)?([0-9]+m)?([0-9]+s)?$`)
)

// whole reads an integer; msg says why there is none.
func whole(n *node) (v int64, msg string) {
	if msg := notNumber(n, "a whole number", wholeForm); msg != "" {
		if f, bad := number(n); bad == "" && !n.quoted && f == math.Trunc(f) && math.Abs(f) < 1e15 {
			return 0, fmt.Sprintf("%s is not written as a whole number; write %d", n.text, int64(f))
		}
		return 0, msg
	}
	v, err := strconv.ParseInt(n.text, 10, 64)
	if err != nil {
		return 0, n.show() + " is too large"
	}
	return v, ""
}

// number reads a finite float64; msg says why there is none.
func number(n *node) (v float64, msg string) {
	if msg := notNumber(n, "a number", numberForm); msg != "" {
		return 0, msg
	}
	v, err := strconv.ParseFloat(n.text, 64)
	if err != nil || math.IsInf(v, 0) {
		return 0, n.show() + " is too large"
	}
	if v == 0 {
		if strings.ContainsAny(strings.FieldsFunc(n.text, func(r rune) bool { return r == 'e' || r == 'E' })[0], "123456789") {
			return 0, n.show() + " is too small to be told from 0"
		}
		v = 0 // not -0
	}
	return v, ""
}

func notNumber(n *node, due string, form *regexp.Regexp) string {
	switch {
	case n.shape != scalar:
		return fmt.Sprintf("must be %s, not %s", due, n.show())
	case n.quoted && numberForm.MatchString(n.text):
		return fmt.Sprintf("%q is text, because of its quotes; write %s", n.text, n.text)
	case leadingZero.MatchString(n.text) && wholeForm.MatchString(n.text):
		return fmt.Sprintf("%s has a leading zero, which some readers take for octal; write %s", n.text, strings.TrimLeft(n.text, "+-0"))
	case leadingZero.MatchString(n.text) && numberForm.MatchString(n.text):
		return fmt.Sprintf("%s has a leading zero; leave it out", n.text)
	case strings.Contains(strings.ToLower(n.text), ".inf") || strings.EqualFold(n.text, ".nan"):
		return fmt.Sprintf("%s is not finite", n.text)
	case !form.MatchString(n.text):
		return fmt.Sprintf("%s is not %s", n.show(), due)
	}
	return ""
}

// truth reads true or false, the only two words for them.
func truth(n *node) (v bool, msg string) {
	switch {
	case n.shape != scalar:
		return false, "must be true or false, not " + n.show()
	case n.text == "true" && !n.quoted:
		return true, ""
	case n.text == "false" && !n.quoted:
		return false, ""
	case n.quoted:
		return false, fmt.Sprintf("%q is text, because of its quotes; write true or false", n.text)
	}
	return false, fmt.Sprintf("%s is not true or false; only those two words are", n.show())
}

// period reads 90s, 15m, 4h or 1h30m.
func period(n *node) (v time.Duration, msg string) {
	switch {
	case n.shape != scalar:
		return 0, "must be a duration as 90s, 15m or 4h, not " + n.show()
	case wholeForm.MatchString(n.text):
		return 0, fmt.Sprintf("%s needs a unit: %ss, %sm or %sh", n.text, n.text, n.text, n.text)
	case n.text == "" || !periodForm.MatchString(n.text):
		return 0, n.show() + " is not a duration; write it as 90s, 15m, 4h or 1h30m"
	}
	v, err := time.ParseDuration(n.text)
	if err != nil {
		return 0, n.show() + " is too long"
	}
	return v, ""
}

// textOf takes any plain word as it stands: no, 012, 1:30 and 2024-01-01 are text where text is due.
func textOf(n *node) (v, msg string) {
	if n.shape != scalar {
		return "", "must be text, not " + n.show()
	}
	return n.text, ""
}

// article names a kind in a sentence.
func article(k KeyKind) string {
	switch k {
	case Integer:
		return "a whole number"
	case Number:
		return "a number"
	case Duration:
		return "a duration"
	case ListOf:
		return "a list"
	case Mapping, DictOf, Params, Asserts:
		return "a mapping"
	}
	return string(k)
}
