package jinja

import (
	"strings"
)

// onText is a filter that maps the text of any value; Markup stays Markup.
func onText(f func(string) string) *builtin {
	return takesNone(func(x *exec, v Value) Value {
		s := x.str(v)
		x.charge(2 * len(s))
		return like(v, f(s))
	})
}

func stringFilter(x *exec, v Value) Value { return like(v, x.str(v)) }

func safeFilter(x *exec, v Value) Value { return markup(x.str(v)) }

func escapeFilter(x *exec, v Value) Value {
	if m, ok := v.(markup); ok {
		return m
	}
	s := x.str(v)
	x.charge(5 * len(s))
	return markup(escapeHTML(s))
}

func trimFilter(x *exec, v Value, p []Value) Value {
	s := x.str(v)
	x.scan(s)
	return like(v, x.trim(s, p[0], "trim", true, true))
}

// replaceFilter is plain text also for Markup.
func replaceFilter(x *exec, v Value, p []Value) Value {
	n := -1
	if isSet(p[2]) {
		n = intArg("replace", p[2])
	}
	return x.replace(x.str(v), x.str(p[0]), x.str(p[1]), n)
}

func formatFilter(x *exec, v Value, a *args) Value {
	if _, ok := v.(markup); ok {
		unsupported("the filter 'format' of text marked as safe")
	}
	if len(a.names) == 0 {
		return x.percentFormat(x.str(v), &tuple{items: a.pos})
	}
	if len(a.pos) > 0 {
		fail("FilterArgumentError", "format takes positions or names, not both at once")
	}
	return x.percentFormat(x.str(v), newDict(x, a))
}

func indentFilter(x *exec, v Value, p []Value) Value {
	s, ok := text(v)
	if !ok {
		mustBeDefined(v)
		badOperands("+=", v, "")
	}
	pad, ok := text(or(p[0], int64(4)))
	if !ok {
		n := max(intArg("indent", or(p[0], int64(4))), 0)
		x.chargeTimes(1, n)
		pad = strings.Repeat(" ", n)
	}
	first, blank := isTrue(p[1]), isTrue(p[2])
	var b strings.Builder
	for i, line := range x.splitlines(s+"\n", false) {
		if i > 0 {
			b.WriteByte('\n')
		}
		if i == 0 && first || i > 0 && (line != "" || blank) {
			x.charge(len(pad))
			b.WriteString(pad)
		}
		x.charge(len(line) + 1)
		b.WriteString(line)
	}
	return like(v, b.String())
}

// titleFilter starts a word after white space, - and opening brackets, unlike the method title.
func titleFilter(x *exec, v Value) Value {
	s := x.str(v)
	x.charge(2 * len(s))
	gap := func(r rune) bool { return isSpace(r) || strings.ContainsRune("-({[<", r) }
	var b strings.Builder
	for s != "" {
		n := len(s) - len(strings.TrimLeftFunc(s, gap))
		b.WriteString(s[:n])
		s = s[n:]
		if n = strings.IndexFunc(s, gap); n < 0 {
			n = len(s)
		}
		first, rest := firstRune(s[:n])
		b.WriteString(upper(first))
		b.WriteString(lower(rest))
		s = s[n:]
	}
	return b.String()
}
