package jinja

import (
	"slices"
	"strings"
)

// builtin is a filter, a test, a method or a function of the language.
type builtin struct {
	params     []string // in order
	required   int      // how many must be given
	positional int      // how many cannot be named
	run        func(x *exec, v Value, p []Value) Value
	raw        func(x *exec, v Value, a *args) Value // instead of run, for arguments of any kind
}

// takes describes a builtin by its parameters: "old new count?" has an optional third; those before a / cannot be named.
// run is given one value for each, unset where an optional one is left out.
func takes(spec string, run func(x *exec, v Value, p []Value) Value) *builtin {
	b := &builtin{run: run}
	for name := range strings.FieldsSeq(spec) {
		switch short, optional := strings.CutSuffix(name, "?"); {
		case name == "/":
			b.positional = len(b.params)
		case optional:
			b.params = append(b.params, short)
		default:
			b.params = append(b.params, name)
			b.required++
		}
	}
	return b
}

// takesNone describes a builtin without parameters.
func takesNone(run func(x *exec, v Value) Value) *builtin {
	return takes("", func(x *exec, v Value, _ []Value) Value { return run(x, v) })
}

// takesAny describes a builtin that looks at its arguments itself.
func takesAny(run func(x *exec, v Value, a *args) Value) *builtin { return &builtin{raw: run} }

// call runs the builtin named name on v.
func (b *builtin) call(x *exec, name string, v Value, a *args) Value {
	x.step(1)
	if b.raw != nil {
		return b.raw(x, v, a)
	}
	return b.run(x, v, b.bind(name, a))
}

// bind matches arguments to parameters as Python does.
func (b *builtin) bind(name string, a *args) []Value {
	if len(a.pos) > len(b.params) {
		fail("TypeError", "%s() takes at most %d arguments, not %d", name, len(b.params), len(a.pos))
	}
	if len(b.params) == 0 && len(a.names) == 0 {
		return nil
	}
	p := make([]Value, len(b.params))
	for i := range p {
		p[i] = unset
	}
	copy(p, a.pos)
	for i, n := range a.names {
		at := slices.Index(b.params, n)
		if at < b.positional {
			fail("TypeError", "%s() takes no argument named '%s'", name, n)
		}
		if p[at] != unset {
			fail("TypeError", "%s() is given the argument '%s' twice", name, n)
		}
		p[at] = a.named[i]
	}
	for i, v := range p[:b.required] {
		if v == unset {
			fail("TypeError", "%s() lacks the argument '%s'", name, b.params[i])
		}
	}
	return p
}

// or is v, or d where v was left out.
func or(v, d Value) Value {
	if v == unset {
		return d
	}
	return v
}

// isSet tells whether an optional argument is given and not None.
func isSet(v Value) bool { return v != unset && v != nil }

// isTrue tells whether an optional flag is given and true.
func isTrue(v Value) bool { return v != unset && truth(v) }

// stringArg is an argument that must be a str.
func stringArg(fn string, v Value) string {
	s, ok := text(v)
	if !ok {
		mustBeDefined(v)
		fail("TypeError", "%s() takes a str here, not '%s'", fn, typeName(v))
	}
	return s
}

// intArg is an argument that must be an integer.
func intArg(fn string, v Value) int {
	n, ok := asInt(v)
	if !ok {
		mustBeDefined(v)
		fail("TypeError", "%s() takes an integer here, not '%s'", fn, typeName(v))
	}
	return n
}
