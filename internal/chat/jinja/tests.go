package jinja

import (
	"slices"
	"strings"
	"unicode"
)

// tests are what may stand behind `is`.
var tests = map[string]*builtin{
	"defined":   check(func(v Value) bool { return !is[*undefined](v) }),
	"undefined": check(is[*undefined]),
	"none":      check(func(v Value) bool { return v == nil }),
	"boolean":   check(is[bool]),
	"true":      check(func(v Value) bool { return v == true }),
	"false":     check(func(v Value) bool { return v == false }),
	"string":    check(isText),
	"number":    check(isNumber),
	"integer":   check(func(v Value) bool { return typeName(v) == "int" }),
	"float":     check(is[float64]),
	"mapping":   check(is[*Dict]),
	"iterable":  check(func(v Value) bool { return isIterable(v) || is[*loopState](v) }),
	"sequence":  check(isSequence),
	"callable":  check(isCallable),
	"escaped":   check(is[markup]),
	"odd":       remainder(1),
	"even":      remainder(0),
	"divisibleby": takes("num", func(x *exec, v Value, p []Value) Value {
		return x.equal(x.arith("%", v, p[0]), int64(0))
	}),
	"lower":  cased(unicode.IsLower, isUpperOrTitle),
	"upper":  cased(unicode.IsUpper, isLowerOrTitle),
	"sameas": takes("other", func(x *exec, v Value, p []Value) Value { return identical(v, p[0]) }),
	"filter": takesNone(func(x *exec, v Value) Value { return known(x, v, x.lib.filters, otherFilters) }),
	"test":   takesNone(func(x *exec, v Value) Value { return known(x, v, x.lib.tests, nil) }),
	"in":     compares("in"),
	"==":     compares("=="), "eq": compares("=="), "equalto": compares("=="),
	"!=": compares("!="), "ne": compares("!="),
	"<": compares("<"), "lt": compares("<"), "lessthan": compares("<"),
	"<=": compares("<="), "le": compares("<="),
	">": compares(">"), "gt": compares(">"), "greaterthan": compares(">"),
	">=": compares(">="), "ge": compares(">="),
}

func check(f func(Value) bool) *builtin {
	return takesNone(func(_ *exec, v Value) Value { return f(v) })
}

func is[T any](v Value) bool {
	_, ok := v.(T)
	return ok
}

func isText(v Value) bool {
	_, ok := text(v)
	return ok
}

func compares(op string) *builtin {
	return takes("other /", func(x *exec, v Value, p []Value) Value { return x.compareOp(op, v, p[0]) })
}

// remainder tests v % 2.
func remainder(want int64) *builtin {
	return takesNone(func(x *exec, v Value) Value { return x.equal(x.arith("%", v, int64(2)), want) })
}

// cased tests the text of any value: some character as wanted, none the other way.
func cased(want, other func(rune) bool) *builtin {
	return takesNone(func(x *exec, v Value) Value {
		s := x.str(v)
		x.scan(s)
		return strings.IndexFunc(s, want) >= 0 && strings.IndexFunc(s, other) < 0
	})
}

func isUpperOrTitle(r rune) bool { return unicode.IsUpper(r) || unicode.IsTitle(r) }
func isLowerOrTitle(r rune) bool { return unicode.IsLower(r) || unicode.IsTitle(r) }

// identical is Python's `is`, where that does not hang on what Python happens to share.
func identical(a, b Value) bool {
	if typeName(a) != typeName(b) {
		return false
	}
	switch t := a.(type) {
	case nil, bool:
	case int64:
		if t < -5 || t > 256 { // Python shares the small ones
			unsupported("sameas of numbers")
		}
	default:
		if isNumber(a) || isText(a) {
			unsupported("sameas of text or of numbers that are not small")
		}
	}
	return a == b
}

func known(x *exec, v Value, table map[string]*builtin, others []string) bool {
	if !hashable(v) {
		fail("TypeError", "unhashable type: '%s'", typeName(v))
	}
	s, ok := text(v)
	if !ok {
		return false
	}
	if slices.Contains(others, s) {
		unsupported("the filter '%s'", s)
	}
	return table[s] != nil
}
