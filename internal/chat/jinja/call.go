package jinja

import "slices"

// args are the arguments of a call.
type args struct {
	pos   []Value
	names []string
	named []Value
}

func (x *exec) args(c *callArgs, e *env) *args {
	a := &args{}
	if len(c.pos) > 0 {
		a.pos = x.evalAll(c.pos, e)
	}
	if len(c.named) > 0 {
		a.names = slices.Clone(c.names)
		a.named = x.evalAll(c.named, e)
	}
	if c.star != nil {
		a.pos = append(a.pos, x.items(c.star.eval(x, e))...)
	}
	if c.double != nil {
		a.spread(x, c.double.eval(x, e))
	}
	return a
}

// spread adds **v.
func (a *args) spread(x *exec, v Value) {
	d, ok := v.(*Dict)
	if !ok {
		fail("TypeError", "the argument behind ** must be a mapping, not a '%s'", typeName(v))
	}
	x.charge(entryBytes * d.Len())
	for i, k := range d.keys {
		x.step(len(a.names)) // of the search
		name, ok := text(k)
		if !ok {
			fail("TypeError", "the keys of the argument behind ** must be strings")
		}
		if slices.Contains(a.names, name) {
			fail("TypeError", "the argument '%s' is given twice", name)
		}
		a.names = append(a.names, name)
		a.named = append(a.named, d.vals[i])
	}
}

// take removes the named argument.
func (a *args) take(name string) (Value, bool) {
	i := slices.Index(a.names, name)
	if i < 0 {
		return nil, false
	}
	v := a.named[i]
	a.names = slices.Delete(slices.Clone(a.names), i, i+1)
	a.named = slices.Delete(slices.Clone(a.named), i, i+1)
	return v, true
}

func (a *args) noNames(fn string) {
	if len(a.names) > 0 {
		fail("TypeError", "%s() takes no keyword arguments", fn)
	}
}

// call calls a value.
func (x *exec) call(fn Value, a *args) Value {
	x.step(1)
	switch f := fn.(type) {
	case *callable:
		return f.call(x, a)
	case *macro:
		s, _ := x.capture(func() flow {
			f.print(x, a)
			return flowNext
		})
		return s
	case *undefined:
		f.fail()
	case *loopState:
		unsupported("a recursive loop")
	}
	fail("TypeError", "'%s' object is not callable", typeName(fn))
	return nil
}

// macro is a macro with the variables around its definition.
type macro struct {
	def *macroDef
	env *env
}

// print runs the macro, which writes to where the render writes. a is used up.
func (m *macro) print(x *exec, a *args) {
	x.nest()
	x.step(1)
	at := x.at
	d, e := m.def, x.newEnv(m.def.fn, m.env)
	m.bind(x, e, a)
	x.enter(e, &d.frame)
	m.fillDefaults(x, e)
	x.run(d.body, e)
	x.at = at
	x.depth--
}

// bind gives the arguments to the parameters, in jinja2's order: a parameter may stay missing, caller is taken from the
// names before kwargs takes the rest.
func (m *macro) bind(x *exec, e *env, a *args) {
	d := m.def
	x.step(len(d.params) * (1 + len(a.names)))
	callerGiven := d.callerIsParam && len(a.pos) >= len(d.params)
	for i, p := range d.params {
		v := Value(missing)
		if i < len(a.pos) {
			v = a.pos[i]
		} else if named, ok := a.take(p.name); ok {
			v = named
		}
		callerGiven = callerGiven || i >= len(a.pos) && p.name == "caller"
		e.set(p.ref, v)
	}
	if d.readsCaller && !callerGiven && d.callerSlot >= 0 {
		v, ok := a.take("caller")
		if !ok || v == nil {
			v = &undefined{what: noSuchValue, name: "there is no caller: the macro is not called by {% call %}"}
		}
		e.vars[d.callerSlot] = v
	}
	m.bindRest(x, e, a)
}

// bindRest gives what is left to kwargs and varargs, or refuses it.
func (m *macro) bindRest(x *exec, e *env, a *args) {
	d := m.def
	if d.kwargsSlot >= 0 {
		rest := NewDict()
		x.charge(entryBytes * len(a.names))
		for i, name := range a.names {
			rest.Set(name, a.named[i])
		}
		e.vars[d.kwargsSlot] = rest
	} else if len(a.names) > 0 {
		fail("TypeError", "macro '%s' takes no argument named '%s'", d.name, a.names[0])
	}
	extra := a.pos[min(len(a.pos), len(d.params)):]
	if d.varargsSlot >= 0 {
		e.vars[d.varargsSlot] = &tuple{items: extra}
	} else if len(extra) > 0 {
		fail("TypeError", "macro '%s' takes at most %d arguments, not %d", d.name, len(d.params), len(a.pos))
	}
}

// fillDefaults gives what is missing its default, which may read the parameters before it.
func (m *macro) fillDefaults(x *exec, e *env) {
	d := m.def
	for i, p := range d.params {
		if e.get(p.ref) != missing {
			continue
		}
		var v Value = &undefined{what: notProvided, name: p.name}
		if j := i - (len(d.params) - len(d.defaults)); j >= 0 {
			v = d.defaults[j].eval(x, e)
		}
		e.set(p.ref, v)
	}
}
