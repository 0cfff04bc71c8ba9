package jinja

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// strMethods are those of str and of Markup.
var strMethods = map[string]*builtin{
	"capitalize":   mapsText(capitalize),
	"count":        takes("sub start? end? /", countMethod),
	"endswith":     takes("suffix start? end? /", affixMethod("endswith", strings.HasSuffix)),
	"find":         takes("sub start? end? /", findMethod("find", strings.Index, false)),
	"format":       takesAny(formatMethod),
	"index":        takes("sub start? end? /", findMethod("index", strings.Index, true)),
	"isalnum":      testsText(func(r rune) bool { return unicode.IsLetter(r) || isNumeric(r) }),
	"isalpha":      testsText(unicode.IsLetter),
	"isascii":      takesNone(func(x *exec, v Value) Value { s := chars(x, v); return isASCII(s) }),
	"isdecimal":    testsText(unicode.IsDigit),
	"isdigit":      testsText(isDigit),
	"islower":      cased(isLowercase, isUpperOrTitle),
	"isnumeric":    testsText(isNumeric),
	"isspace":      testsText(isSpace),
	"isupper":      cased(isUppercase, isLowerOrTitle),
	"join":         takes("iterable /", joinMethod),
	"ljust":        takes("width fillchar? /", padMethod("ljust", false)),
	"lower":        mapsText(lower),
	"lstrip":       takes("chars? /", stripMethod("lstrip", true, false)),
	"partition":    takes("sep /", partitionMethod("partition", strings.Index, false)),
	"removeprefix": takes("prefix /", cutMethod("removeprefix", strings.TrimPrefix)),
	"removesuffix": takes("suffix /", cutMethod("removesuffix", strings.TrimSuffix)),
	"replace":      takes("old new count? /", replaceMethod),
	"rfind":        takes("sub start? end? /", findMethod("rfind", strings.LastIndex, false)),
	"rindex":       takes("sub start? end? /", findMethod("rindex", strings.LastIndex, true)),
	"rjust":        takes("width fillchar? /", padMethod("rjust", true)),
	"rpartition":   takes("sep /", partitionMethod("rpartition", strings.LastIndex, true)),
	"rsplit":       takes("sep? maxsplit?", splitMethod("rsplit", true)),
	"rstrip":       takes("chars? /", stripMethod("rstrip", false, true)),
	"split":        takes("sep? maxsplit?", splitMethod("split", false)),
	"splitlines":   takes("keepends?", splitlinesMethod),
	"startswith":   takes("prefix start? end? /", affixMethod("startswith", strings.HasPrefix)),
	"strip":        takes("chars? /", stripMethod("strip", true, true)),
	"title":        mapsText(title),
	"upper":        mapsText(upper),
	"zfill":        takes("width /", zfillMethod),
}

// chars are those of a str or Markup that is read from end to end.
func chars(x *exec, v Value) string {
	s, _ := text(v)
	x.scan(s)
	return s
}

func mapsText(f func(string) string) *builtin {
	return takesNone(func(x *exec, v Value) Value {
		s, _ := text(v)
		x.charge(2 * len(s))
		return like(v, f(s))
	})
}

// testsText asks for one character at least, and for all to pass.
func testsText(ok func(rune) bool) *builtin {
	return takesNone(func(x *exec, v Value) Value {
		s := chars(x, v)
		return s != "" && strings.IndexFunc(s, func(r rune) bool { return !ok(r) }) < 0
	})
}

func isLowercase(r rune) bool { return unicode.IsLower(r) || unicode.Is(unicode.Other_Lowercase, r) }
func isUppercase(r rune) bool { return unicode.IsUpper(r) || unicode.Is(unicode.Other_Uppercase, r) }

// isDigit and isNumeric are decided by Unicode's numeric types, which Go's tables lack beyond decimal digits.
func isDigit(r rune) bool {
	if unicode.IsNumber(r) && !unicode.IsDigit(r) && !strings.ContainsRune("²³¹⁰⁴⁵⁶⁷⁸⁹₀₁₂₃₄₅₆₇₈₉", r) {
		unsupported("isdigit of %q", r)
	}
	return unicode.IsNumber(r)
}

func isNumeric(r rune) bool {
	if unicode.Is(unicode.Han, r) && strings.ContainsRune("一二三四五六七八九十百千万億兆零〇壱弐参拾廿卅卌亿", r) {
		return true
	}
	return unicode.IsNumber(r)
}

func stripMethod(name string, left, right bool) func(x *exec, v Value, p []Value) Value {
	return func(x *exec, v Value, p []Value) Value {
		return like(v, x.trim(chars(x, v), p[0], name, left, right))
	}
}

func replaceMethod(x *exec, v Value, p []Value) Value {
	s, _ := text(v)
	old, repl := stringArg("replace", p[0]), stringArg("replace", p[1])
	if is[markup](v) && !is[markup](p[1]) {
		repl = escapeHTML(repl)
	}
	return like(v, x.replace(s, old, repl, intArg("replace", or(p[2], int64(-1)))))
}

// texts makes a list of parts of v.
func (x *exec) texts(v Value, parts []string) *List {
	x.charge(itemBytes * len(parts))
	out := make([]Value, len(parts))
	for i, p := range parts {
		out[i] = like(v, p)
	}
	return &List{out}
}

func splitMethod(name string, right bool) func(x *exec, v Value, p []Value) Value {
	return func(x *exec, v Value, p []Value) Value {
		n := intArg(name, or(p[1], int64(-1)))
		s := chars(x, v)
		if !isSet(p[0]) {
			if right {
				return x.texts(v, x.fieldsRight(s, n))
			}
			return x.texts(v, x.fields(s, n))
		}
		sep := stringArg(name, p[0])
		switch {
		case sep == "":
			fail("ValueError", "empty separator")
		case right:
			return x.texts(v, x.splitRight(s, sep, n))
		}
		return x.texts(v, x.split(s, sep, n))
	}
}

func splitlinesMethod(x *exec, v Value, p []Value) Value {
	return x.texts(v, x.splitlines(chars(x, v), isTrue(p[0])))
}

func joinMethod(x *exec, v Value, p []Value) Value {
	sep, _ := text(v)
	safe := is[markup](v)
	var b strings.Builder
	for i, item := range x.items(p[0]) {
		s, ok := text(item)
		if !ok && !safe {
			fail("TypeError", "sequence item %d: expected str instance, %s found", i, typeName(item))
		}
		if safe && !is[markup](item) {
			s = escapeHTML(x.str(item))
		}
		if i > 0 {
			s = sep + s
		}
		x.charge(2 * len(s))
		b.WriteString(s)
	}
	return like(v, b.String())
}

// window is the part of s between the optional start and end, and the number of characters before it; ok is false where
// start lies behind the end of s, so that not even the empty text is found.
func window(s string, start, end Value) (part string, before int, ok bool) {
	if !isSet(start) && !isSet(end) {
		return s, 0, true
	}
	n := utf8.RuneCountInString(s)
	if i, is := asInt(start); is && i > n {
		return "", 0, false
	}
	from, to, _ := bounds([3]Value{or(start, nil), or(end, nil)}, n)
	if from > to {
		return "", 0, false
	}
	return substring(s, n, from, to), from, true
}

func affixMethod(name string, has func(s, affix string) bool) func(x *exec, v Value, p []Value) Value {
	return func(x *exec, v Value, p []Value) Value {
		s, _ := text(v)
		if isSet(p[1]) || isSet(p[2]) {
			x.scan(s)
		}
		s, _, ok := window(s, p[1], p[2])
		t, several := p[0].(*tuple)
		if !several {
			return has(s, stringArg(name, p[0])) && ok
		}
		for _, item := range t.items {
			if has(s, stringArg(name, item)) && ok {
				return true
			}
		}
		return false
	}
}

func findMethod(name string, find func(s, sub string) int, must bool) func(x *exec, v Value, p []Value) Value {
	return func(x *exec, v Value, p []Value) Value {
		sub := stringArg(name, p[0])
		if s, before, ok := window(chars(x, v), p[1], p[2]); ok {
			if i := find(s, sub); i >= 0 {
				return int64(before + utf8.RuneCountInString(s[:i]))
			}
		}
		if must {
			fail("ValueError", "substring not found")
		}
		return int64(-1)
	}
}

func countMethod(x *exec, v Value, p []Value) Value {
	sub := stringArg("count", p[0])
	s, _, ok := window(chars(x, v), p[1], p[2])
	if !ok {
		return int64(0)
	}
	return int64(strings.Count(s, sub))
}

func partitionMethod(name string, find func(s, sub string) int, right bool) func(x *exec, v Value, p []Value) Value {
	return func(x *exec, v Value, p []Value) Value {
		s, sep := chars(x, v), stringArg(name, p[0])
		if sep == "" {
			fail("ValueError", "empty separator")
		}
		parts := [3]string{s, "", ""}
		if i := find(s, sep); i >= 0 {
			parts = [3]string{s[:i], sep, s[i+len(sep):]}
		} else if right {
			parts = [3]string{"", "", s}
		}
		return &tuple{items: x.texts(v, parts[:]).Items}
	}
}

func cutMethod(name string, cut func(s, affix string) string) func(x *exec, v Value, p []Value) Value {
	return func(x *exec, v Value, p []Value) Value {
		s, _ := text(v)
		return like(v, cut(s, stringArg(name, p[0])))
	}
}

func padMethod(name string, left bool) func(x *exec, v Value, p []Value) Value {
	return func(x *exec, v Value, p []Value) Value {
		s, _ := text(v)
		fill := stringArg(name, or(p[1], " "))
		if utf8.RuneCountInString(fill) != 1 {
			fail("TypeError", "%s() fills with one character", name)
		}
		n := intArg(name, p[0]) - utf8.RuneCountInString(s)
		if n <= 0 {
			return v
		}
		x.chargeTimes(len(fill), n)
		x.charge(len(s))
		pad := strings.Repeat(fill, n)
		if left {
			return like(v, pad+s)
		}
		return like(v, s+pad)
	}
}

func zfillMethod(x *exec, v Value, p []Value) Value {
	s, _ := text(v)
	n := intArg("zfill", p[0]) - utf8.RuneCountInString(s)
	if n <= 0 {
		return v
	}
	x.charge(len(s))
	x.chargeTimes(1, n)
	sign := ""
	if s != "" && (s[0] == '-' || s[0] == '+') {
		sign, s = s[:1], s[1:]
	}
	return like(v, sign+strings.Repeat("0", n)+s)
}
