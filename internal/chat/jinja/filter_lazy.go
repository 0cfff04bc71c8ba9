package jinja

import "slices"

// map, select and their like are generators in jinja2: they start when the first item is asked for, and a false value
// such as None then has no items, whatever the arguments are.

// rest drops the first n positions.
func (a *args) rest(n int) *args {
	return &args{pos: a.pos[min(n, len(a.pos)):], names: a.names, named: a.named}
}

func mapFilter(x *exec, v Value, a *args) Value {
	return x.lazy(v, func() func() (Value, bool) {
		if !truth(v) {
			return nothing
		}
		f := x.mapping(a)
		next := x.iterate(v)
		return func() (Value, bool) {
			item, ok := next()
			if !ok {
				return nil, false
			}
			return f(item), true
		}
	})
}

var mapAttribute = takes("attribute default?", nil)

// mapping is what map does to an item: look an attribute up, or filter.
func (x *exec) mapping(a *args) func(Value) Value {
	if len(a.pos) == 0 && slices.Contains(a.names, "attribute") {
		p := mapAttribute.bind("map", a)
		return x.getter(p[0], p[1], nil)
	}
	if len(a.pos) == 0 {
		fail("FilterArgumentError", "map takes a filter or an attribute")
	}
	name, rest := x.str(a.pos[0]), a.rest(1)
	fn := x.lib.filters[name]
	if fn == nil {
		x.lib.noFilter(name, x.at)
	}
	return func(v Value) Value { return fn.call(x, name, v, rest) }
}

// choose is select and reject, of an attribute for selectattr and rejectattr.
func choose(want, attr bool) func(x *exec, v Value, a *args) Value {
	return func(x *exec, v Value, a *args) Value {
		return x.lazy(v, func() func() (Value, bool) {
			if !truth(v) {
				return nothing
			}
			ok := x.condition(a, attr)
			next := x.iterate(v)
			return func() (Value, bool) {
				for item, more := next(); more; item, more = next() {
					if ok(item) == want {
						return item, true
					}
				}
				return nil, false
			}
		})
	}
}

// condition is what select asks of an item: a test, or its truth.
func (x *exec) condition(a *args, attr bool) func(Value) bool {
	get := func(v Value) Value { return v }
	if attr {
		if len(a.pos) == 0 {
			fail("FilterArgumentError", "the name of an attribute is due")
		}
		get, a = x.getter(a.pos[0], unset, nil), a.rest(1)
	}
	if len(a.pos) == 0 {
		return func(v Value) bool { return truth(get(v)) }
	}
	name, rest := x.str(a.pos[0]), a.rest(1)
	fn := x.lib.tests[name]
	if fn == nil {
		x.lib.noTest(name, x.at)
	}
	return func(v Value) bool { return truth(fn.call(x, name, get(v), rest)) }
}
