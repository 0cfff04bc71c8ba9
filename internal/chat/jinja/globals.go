package jinja

// globals are the names that every template sees unless its caller gives others.
var globals = map[string]Value{
	"range":           builtinFunction("range", takes("start stop? step? /", newRange)),
	"dict":            &callable{"dict", func(x *exec, a *args) Value { return newDict(x, a) }},
	"namespace":       &callable{"namespace", newNamespace},
	"raise_exception": builtinFunction("raise_exception", takes("message", raise)),
	"strftime_now":    builtinFunction("strftime_now", takes("format", strftimeNow)),
	"joiner":          refused("joiner"),
	"cycler":          refused("cycler"),
	"lipsum":          refused("lipsum"),
}

func builtinFunction(name string, b *builtin) *callable {
	return &callable{name, func(x *exec, a *args) Value { return b.call(x, name, nil, a) }}
}

func refused(name string) *callable {
	return &callable{name, func(*exec, *args) Value {
		unsupported("%s()", name)
		return nil
	}}
}

func newRange(x *exec, _ Value, p []Value) Value {
	num := func(v Value) int64 {
		const far = 1 << 40 // beyond every range that is allowed
		return int64(max(min(intArg("range", v), far), -far))
	}
	r := &rangeValue{0, num(p[0]), 1}
	if p[1] != unset {
		r.start, r.stop = r.stop, num(p[1])
	}
	if p[2] != unset {
		r.step = num(p[2])
	}
	if r.step == 0 {
		fail("ValueError", "range() takes no step of zero")
	}
	if n := r.len(); n > maxRange {
		fail("OverflowError", "a range of %d items; a template may make %d", n, maxRange)
	}
	return r
}

// newDict is dict(mapping or pairs, **named).
func newDict(x *exec, a *args) *Dict {
	d := NewDict()
	if len(a.pos) > 1 {
		fail("TypeError", "dict() takes at most 1 argument, not %d", len(a.pos))
	}
	if len(a.pos) == 1 {
		mustBeDefined(a.pos[0])
		if src, ok := a.pos[0].(*Dict); ok {
			x.charge(entryBytes * src.Len())
			d = src.Clone()
		} else {
			x.addPairs(d, a.pos[0])
		}
	}
	x.charge(entryBytes * len(a.names))
	for i, n := range a.names {
		d.Set(n, a.named[i])
	}
	return d
}

func (x *exec) addPairs(d *Dict, v Value) {
	for _, item := range x.items(v) {
		pair := x.items(item)
		if len(pair) != 2 {
			fail("ValueError", "dict() takes pairs, not %d items", len(pair))
		}
		x.charge(entryBytes)
		x.scanKey(pair[0])
		d.Set(pair[0], pair[1])
	}
}

func newNamespace(x *exec, a *args) Value {
	d := newDict(x, a)
	for _, k := range d.keys {
		checkAttribute(k)
	}
	return &namespace{d}
}

// raise is how a template refuses a conversation.
func raise(x *exec, _ Value, p []Value) Value {
	fail("TemplateError", "%s", x.str(p[0]))
	return nil
}

func strftimeNow(x *exec, _ Value, p []Value) Value {
	format := stringArg("strftime_now", p[0])
	if x.now == nil {
		fail("LimitError", "the template asks for the time, and has no clock")
	}
	x.charge(16 * len(format))
	return strftime(x.now(), format)
}

// IsFunction tells whether every template sees a function of this name.
func IsFunction(name string) bool {
	_, ok := globals[name]
	return ok
}
