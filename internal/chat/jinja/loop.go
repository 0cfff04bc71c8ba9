package jinja

// loopState is the variable loop.
type loopState struct {
	x       *exec
	in      Value // what is looped over
	next    func() (Value, bool)
	index0  int
	n       int // length, -1 until it is known
	prev    Value
	cur     Value
	room    [1]Value
	ahead   []Value // items taken from next before their turn
	ended   bool    // next has no more
	changed Value   // what loop.changed was last called with
}

func (l *loopState) advance() (Value, bool) {
	v, ok := l.peek()
	if !ok {
		return nil, false
	}
	if l.ahead = l.ahead[1:]; len(l.ahead) == 0 {
		l.ahead = l.room[:0]
	}
	l.index0++
	l.prev, l.cur = l.cur, v
	return v, true
}

func (l *loopState) peek() (Value, bool) {
	if len(l.ahead) == 0 && !l.take() {
		return nil, false
	}
	return l.ahead[0], true
}

// take takes one more item ahead.
func (l *loopState) take() bool {
	if l.ended {
		return false
	}
	v, ok := l.next()
	if !ok {
		l.ended = true
		return false
	}
	if len(l.ahead) == 0 {
		l.ahead = l.room[:0]
	}
	l.ahead = append(l.ahead, v)
	return true
}

// length reads what has no length to its end.
func (l *loopState) length() int {
	if l.n >= 0 {
		return l.n
	}
	if n, ok := length(l.in); ok {
		l.n = n
		return n
	}
	for l.take() {
		l.x.charge(itemBytes)
	}
	l.n = l.index0 + 1 + len(l.ahead)
	return l.n
}

// attribute is loop.name.
func (l *loopState) attribute(name string) (Value, bool) {
	switch name {
	case "index":
		return int64(l.index0 + 1), true
	case "index0":
		return int64(l.index0), true
	case "first":
		return l.index0 == 0, true
	case "last":
		_, more := l.peek()
		return !more, true
	case "length":
		return int64(l.length()), true
	case "revindex":
		return int64(l.length() - l.index0), true
	case "revindex0":
		return int64(l.length() - l.index0 - 1), true
	case "depth":
		return int64(1), true
	case "depth0":
		return int64(0), true
	case "previtem":
		if l.index0 == 0 {
			return &undefined{what: noSuchValue, name: "there is no item before the first"}, true
		}
		return l.prev, true
	case "nextitem":
		if v, ok := l.peek(); ok {
			return v, true
		}
		return &undefined{what: noSuchValue, name: "there is no item behind the last"}, true
	case "cycle":
		return &callable{"cycle", l.cycle}, true
	case "changed":
		return &callable{"changed", l.hasChanged}, true
	}
	return nil, false
}

func (l *loopState) cycle(x *exec, a *args) Value {
	a.noNames("cycle")
	if len(a.pos) == 0 {
		fail("TypeError", "no items for cycling given")
	}
	return a.pos[l.index0%len(a.pos)]
}

func (l *loopState) hasChanged(x *exec, a *args) Value {
	a.noNames("changed")
	now := &tuple{items: a.pos}
	if l.changed != nil && x.equal(l.changed, now) {
		return false
	}
	l.changed = now
	return true
}

func (n *forStmt) exec(x *exec, e *env) flow {
	in := n.in.eval(x, e)
	x.at = n.at
	next := x.iterate(in)
	if n.cond != nil {
		next = n.filtered(x, e, next)
		in = nil // its length is not the loop's
	}
	if n.loopSlot >= 0 {
		l := &loopState{x: x, in: in, next: next, index0: -1, n: -1}
		next = func() (Value, bool) {
			v, ok := l.advance()
			e.vars[n.loopSlot] = l
			return v, ok
		}
	}
	full := false // an iteration reached the end of the body; jinja2 takes a loop without one for empty
	for item, ok := next(); ok; item, ok = next() {
		x.at = n.at
		x.step(1)
		x.assign(e, n.target, item)
		x.enter(e, &n.bodyFrame)
		traced := x.begin(item)
		f := x.run(n.body, e)
		if traced {
			x.end()
		}
		if f == flowBreak {
			break
		}
		full = full || f == flowNext
	}
	x.leave(e, &n.bodyFrame)
	if full || n.other == nil {
		return flowNext
	}
	x.enter(e, &n.elseFrame)
	f := x.run(n.other, e)
	x.leave(e, &n.elseFrame)
	return f
}

// filtered lets through the items for which the loop's condition holds, as the loop asks for them.
func (n *forStmt) filtered(x *exec, outer *env, next func() (Value, bool)) func() (Value, bool) {
	var e *env
	return func() (Value, bool) {
		if e == nil {
			e = x.newEnv(n.condFn, outer)
			x.enter(e, &n.condFrame)
		}
		for item, ok := next(); ok; item, ok = next() {
			x.assign(e, n.condTarget, item)
			if truth(n.cond.eval(x, e)) {
				return item, true
			}
		}
		return nil, false
	}
}
