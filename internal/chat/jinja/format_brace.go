package jinja

import (
	"strconv"
	"strings"
)

func formatMethod(x *exec, v Value, a *args) Value {
	if is[markup](v) {
		unsupported("format of text marked as safe")
	}
	s, _ := text(v)
	f := &braces{x: x, a: a}
	return f.format(s, 0)
}

// braces is a run of str.format.
type braces struct {
	x     *exec
	a     *args
	next  int  // the position of the next {}
	byPos bool // a field named its position
	auto  bool // a field did not
}

func (f *braces) format(s string, depth int) string {
	if depth > 1 {
		fail("ValueError", "max string recursion exceeded")
	}
	var b strings.Builder
	put := func(s string) {
		f.x.charge(len(s))
		b.WriteString(s)
	}
	for s != "" {
		i := strings.IndexAny(s, "{}")
		if i < 0 {
			put(s)
			break
		}
		put(s[:i])
		c := s[i]
		switch s = s[i:]; {
		case len(s) > 1 && s[1] == c && (c == '}' || depth == 0):
			put(s[:1])
			s = s[2:]
		case c == '}':
			fail("ValueError", "single '}' encountered in format string")
		default:
			n := fieldEnd(s)
			put(f.field(s[1:n], depth))
			s = s[n+1:]
		}
	}
	return b.String()
}

// fieldEnd is where the field ends that s starts with.
func fieldEnd(s string) int {
	open := 0
	for i := range len(s) {
		switch s[i] {
		case '{':
			open++
		case '}':
			if open--; open == 0 {
				return i
			}
		}
	}
	fail("ValueError", "expected '}' before end of string")
	return 0
}

func (f *braces) field(field string, depth int) string {
	name, sp, _ := strings.Cut(field, ":")
	name, conversion, converts := strings.Cut(name, "!")
	v := f.value(name)
	switch {
	case !converts:
	case conversion == "r":
		v = f.x.repr(v)
	case conversion == "s":
		v = f.x.str(v)
	default:
		fail("ValueError", "unknown conversion specifier '%s'", conversion)
	}
	return f.x.formatSpec(v, f.format(sp, depth+1))
}

// value is what a field names: nothing for the next position, a position or a name, and attributes and items of it.
func (f *braces) value(name string) Value {
	first := name
	if i := strings.IndexAny(name, ".["); i >= 0 {
		first = name[:i]
	}
	v := f.first(first)
	for rest := name[len(first):]; rest != ""; {
		if rest[0] == '.' {
			end := strings.IndexAny(rest[1:], ".[")
			if end < 0 {
				end = len(rest) - 1
			}
			v = f.x.getattr(v, rest[1:1+end])
			rest = rest[1+end:]
			continue
		}
		inner, after, ok := strings.Cut(rest[1:], "]")
		if !ok || rest[0] != '[' {
			fail("ValueError", "missing ']' in format string")
		}
		var key Value = inner
		if n, err := strconv.ParseUint(inner, 10, 31); err == nil {
			key = int64(n)
		}
		v = f.x.getitem(v, key)
		rest = after
	}
	return v
}

func (f *braces) first(name string) Value {
	n, err := strconv.ParseUint(name, 10, 31)
	switch {
	case name == "":
		n, f.auto = uint64(f.next), true
		f.next++
	case err == nil:
		f.byPos = true
	default:
		for i, given := range f.a.names {
			if given == name {
				return f.a.named[i]
			}
		}
		fail("KeyError", "'%s'", name)
	}
	if f.auto && f.byPos {
		fail("ValueError", "fields with and without their position in one format string")
	}
	if int(n) >= len(f.a.pos) {
		fail("IndexError", "replacement index %d out of range for positional arguments", n)
	}
	return f.a.pos[n]
}
