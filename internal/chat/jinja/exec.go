package jinja

import (
	"sync"
	"time"
)

// exec is the state of one render.
type exec struct {
	lib           *library
	limits        Limits
	steps, memory int // what is left
	depth         int
	at            int     // the byte of the source that an error points at
	given         []Value // of Template.given; missing for none
	now           func() time.Time
	out           []byte // of the innermost capture
	captures      int    // 0: out is the text itself
	body          Value  // what the filter of a block applies to
	generation    []Span
	trace         tracer
}

func newExec(t *Template, o Options) *exec {
	l := o.Limits.orDefault()
	x := &exec{lib: t.lib, limits: l, steps: l.Steps, memory: l.Memory, at: -1, now: o.Now, given: make([]Value, len(t.given))}
	x.trace.objects = o.Traced
	x.out = (*rooms.Get().(*[]byte))[:0]
	return x
}

// rooms are for what a render writes, from one to the next.
var rooms = sync.Pool{New: func() any { return new([]byte) }}

// keepRoom bounds the bytes that one of them keeps.
const keepRoom = 1 << 20

func (x *exec) output() *Output {
	out := &Output{Text: string(x.out), Generation: x.generation, Traced: x.trace.spans}
	if cap(x.out) <= keepRoom {
		room := x.out
		rooms.Put(&room)
	}
	return out
}

// env is the variables of one call of a function, by slot.
type env struct {
	vars   []Value
	parent *env
}

func (x *exec) newEnv(f *function, parent *env) *env {
	x.charge(itemBytes * len(f.slots))
	return &env{make([]Value, len(f.slots)), parent}
}

func (e *env) up(n int32) *env {
	for ; n > 0; n-- {
		e = e.parent
	}
	return e
}

func (e *env) get(r slotRef) Value    { return e.up(r.up).vars[r.slot] }
func (e *env) set(r slotRef, v Value) { e.up(r.up).vars[r.slot] = v }

func (x *exec) enter(e *env, f *frame) {
	x.step(len(f.enter))
	for i := range f.enter {
		en := &f.enter[i]
		switch en.kind {
		case loadUndefined:
			e.vars[en.slot] = missing
		case loadCaller:
			e.vars[en.slot] = x.given[en.given]
		case loadOuter:
			e.vars[en.slot] = e.get(en.outer)
		}
	}
}

func (x *exec) leave(e *env, f *frame) {
	for _, slot := range f.leave {
		e.vars[slot] = missing
	}
}

func (x *exec) write(s string) {
	x.charge(len(s))
	if len(x.out)+len(s) > x.limits.Output {
		fail("LimitError", "the template writes more than %d bytes", x.limits.Output)
	}
	x.out = append(x.out, s...)
}

// capture runs f and returns what it wrote, which no span is about.
func (x *exec) capture(f func() flow) (string, flow) {
	outer := x.out
	x.out = nil
	x.captures++
	ended := f()
	s := string(x.out)
	x.captures--
	x.out = outer
	return s, ended
}

// direct tells whether what is written now lands in the text as it is.
func (x *exec) direct() bool { return x.captures == 0 }

func (x *exec) run(body []stmt, e *env) flow {
	for _, st := range body {
		x.step(1)
		if f := st.exec(x, e); f != flowNext {
			return f
		}
	}
	return flowNext
}

func (n *textStmt) exec(x *exec, e *env) flow {
	x.write(n.s)
	return flowNext
}

func (n *printStmt) exec(x *exec, e *env) flow {
	if c, ok := n.e.(*callExpr); ok { // a macro writes where it is printed, so that its spans are where its text is
		if name, ok := c.fn.(*nameExpr); ok {
			if m, ok := name.eval(x, e).(*macro); ok {
				a := x.args(&c.args, e)
				x.at = c.at
				m.print(x, a)
				return flowNext
			}
		}
	}
	if s, ok := n.e.(*sumExpr); ok {
		s.print(x, e)
		return flowNext
	}
	v := n.e.eval(x, e)
	x.at = n.at
	x.write(x.str(v))
	return flowNext
}

func (n *ifStmt) exec(x *exec, e *env) flow {
	for i, c := range n.conds {
		if truth(c.eval(x, e)) {
			return x.run(n.bodies[i], e)
		}
	}
	return x.run(n.other, e)
}

func (n *setStmt) exec(x *exec, e *env) flow {
	v := n.e.eval(x, e)
	x.at = n.at
	x.assign(e, n.target, v)
	return flowNext
}

func (x *exec) assign(e *env, t *target, v Value) {
	switch {
	case t.items != nil:
		x.unpack(e, t.items, v)
	case t.attr != "":
		ns, ok := t.name.value(e).(*namespace)
		if !ok {
			fail("TemplateRuntimeError", "cannot assign an attribute of '%s', which is no namespace", t.name.name)
		}
		checkAttribute(t.attr)
		x.charge(itemBytes)
		ns.attrs.Set(t.attr, v)
	default:
		e.set(t.name.ref, v)
	}
}

func (x *exec) unpack(e *env, targets []*target, v Value) {
	if !isIterable(v) {
		fail("TypeError", "cannot unpack a '%s' object", typeName(v))
	}
	items := x.items(v)
	if len(items) != len(targets) {
		fail("ValueError", "%d values to unpack, %d are due", len(items), len(targets))
	}
	for i, t := range targets {
		x.assign(e, t, items[i])
	}
}

// checkAttribute refuses the names that a namespace must not have.
func checkAttribute(name Value) {
	if s, ok := text(name); ok && len(s) > 0 && s[0] == '_' {
		fail("SecurityError", "a namespace has no attribute that starts with an underscore, such as '%s'", s)
	}
}

func (n *setBlockStmt) exec(x *exec, e *env) flow {
	v, f := x.block(n.body, n.filter, &n.frame, e)
	if f == flowNext {
		x.at = n.at
		x.assign(e, n.target, v)
		x.leave(e, &n.frame)
	}
	return f
}

func (n *filterStmt) exec(x *exec, e *env) flow {
	v, f := x.block(n.body, n.filter, &n.frame, e)
	if f == flowNext {
		x.write(x.str(v))
		x.leave(e, &n.frame)
	}
	return f
}

// block runs a body and passes its text through a filter, nil for none.
func (x *exec) block(body []stmt, filter expr, f *frame, e *env) (Value, flow) {
	x.enter(e, f)
	s, ended := x.capture(func() flow { return x.run(body, e) })
	if ended != flowNext || filter == nil {
		return s, ended
	}
	outer := x.body
	x.body = s
	v := filter.eval(x, e)
	x.body = outer
	return v, flowNext
}

func (n *withStmt) exec(x *exec, e *env) flow {
	x.enter(e, &n.frame)
	for i, name := range n.names {
		e.set(name.ref, n.vals[i].eval(x, e))
	}
	f := x.run(n.body, e)
	x.leave(e, &n.frame)
	return f
}

func (n *macroStmt) exec(x *exec, e *env) flow {
	e.set(n.name.ref, &macro{n.def, e})
	return flowNext
}

func (n *callStmt) exec(x *exec, e *env) flow {
	fn := n.call.fn.eval(x, e)
	a := x.args(&n.call.args, e)
	a.names = append(a.names, "caller")
	a.named = append(a.named, &macro{n.def, e})
	x.at = n.call.at
	if m, ok := fn.(*macro); ok {
		m.print(x, a)
	} else {
		x.write(x.str(x.call(fn, a)))
	}
	return flowNext
}

func (n *generationStmt) exec(x *exec, e *env) flow {
	start := len(x.out)
	(&macro{n.def, e}).print(x, &args{})
	if x.direct() {
		x.generation = append(x.generation, Span{start, len(x.out)})
	}
	return flowNext
}

func (n *flowStmt) exec(x *exec, e *env) flow { return n.f }
