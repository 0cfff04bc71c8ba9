package jinja

// frame is what entering and leaving a scope does to the variables.
type frame struct {
	enter []entry
	leave []int32 // slots that have no value afterwards
}

// entry gives the variable at slot its first value.
type entry struct {
	slot  int32
	kind  loadKind // loadUndefined, loadCaller or loadOuter
	outer slotRef
	given int32 // index into the names that the template takes from its caller
}

// binder ties every name of a template to its variable.
type binder struct {
	given map[string]int32
	names []string // of given, by index
}

func (b *binder) frame(s *scope) frame {
	var f frame
	for id, l := range s.loads {
		slot := s.fn.slot(id)
		f.leave = append(f.leave, slot)
		en := entry{slot: slot, kind: l.kind}
		switch l.kind {
		case loadParam:
			continue
		case loadOuter:
			en.outer = s.fn.ref(l.outer)
		case loadCaller:
			en.given = b.givenName(id.name)
		}
		f.enter = append(f.enter, en)
	}
	return f
}

func (b *binder) givenName(name string) int32 {
	i, ok := b.given[name]
	if !ok {
		i = int32(len(b.names))
		b.given[name] = i
		b.names = append(b.names, name)
	}
	return i
}

func (b *binder) name(s *scope, n *nameExpr) {
	id, ok := s.find(n.name)
	if !ok { // the filter of a set block, whose names jinja2 forgets to analyze
		failAt(n.at, "AssertionError", "'%s' is known nowhere else in the template, so jinja2 cannot compile it here", n.name)
	}
	n.ref = s.fn.ref(id)
}

func (b *binder) exprs(s *scope, list ...expr) {
	for _, e := range list {
		eachName(e, func(n *nameExpr) { b.name(s, n) })
	}
}

func (b *binder) target(s *scope, t *target) {
	if t.items == nil {
		b.name(s, t.name)
	}
	for _, item := range t.items {
		b.target(s, item)
	}
}

// body binds statements that stand in scope s.
func (b *binder) body(s *scope, body []stmt) {
	for _, st := range body {
		switch n := st.(type) {
		case *printStmt:
			b.exprs(s, n.e)
		case *ifStmt:
			b.exprs(s, n.conds...)
			for _, inner := range n.bodies {
				b.body(s, inner)
			}
			b.body(s, n.other)
		case *forStmt:
			b.loop(s, n)
		case *setStmt:
			b.exprs(s, n.e)
			b.target(s, n.target)
		case *setBlockStmt:
			n.frame = b.block(s, n.body, n.filter, false)
			b.target(s, n.target)
		case *filterStmt:
			n.frame = b.block(s, n.body, n.filter, true)
		case *withStmt:
			b.with(s, n)
		case *macroStmt:
			b.macro(s, n.def)
			b.name(s, n.name)
		case *callStmt:
			b.macro(s, n.def)
			b.exprs(s, n.call)
		case *generationStmt:
			b.macro(s, n.def)
		}
	}
}

// block binds a body in a scope of its own, and the filter that its text goes through.
func (b *binder) block(s *scope, body []stmt, filter expr, analyzed bool) frame {
	inner := newScope(s, false)
	inner.analyze(body)
	if analyzed {
		inner.loadAll(filter)
	}
	b.body(inner, body)
	b.exprs(inner, filter)
	return b.frame(inner)
}

func (b *binder) with(s *scope, n *withStmt) {
	inner := newScope(s, false)
	for _, name := range n.names {
		inner.param(name.name)
	}
	inner.analyze(n.body)
	b.exprs(s, n.vals...)
	for _, name := range n.names {
		b.name(inner, name)
	}
	b.body(inner, n.body)
	n.frame = b.frame(inner)
}

func (b *binder) loop(s *scope, n *forStmt) {
	b.exprs(s, n.in)
	inner := newScope(s, false)
	reads := readsFirst(n.body, "loop")["loop"]
	if reads {
		inner.param("loop")
	}
	inner.paramTarget(n.target)
	inner.analyze(n.body)
	if n.cond != nil {
		b.condition(s, n)
	}
	b.target(inner, n.target)
	if reads {
		n.loopSlot = inner.fn.slot(ident{inner.level, "loop"})
	}
	b.body(inner, n.body)
	n.bodyFrame = b.frame(inner)
	other := newScope(s, false)
	other.analyze(n.other)
	b.body(other, n.other)
	n.elseFrame = b.frame(other)
}

// condition binds the condition of a loop, which assigns the loop's names in a function of its own.
func (b *binder) condition(s *scope, n *forStmt) {
	inner := newScope(s, true)
	inner.paramTarget(n.target)
	inner.loadAll(n.cond)
	n.condTarget = n.target.clone()
	b.target(inner, n.condTarget)
	b.exprs(inner, n.cond)
	n.condFrame, n.condFn = b.frame(inner), inner.fn
}

func (t *target) clone() *target {
	c := *t
	if t.name != nil {
		name := *t.name
		c.name = &name
	}
	c.items = nil
	for _, item := range t.items {
		c.items = append(c.items, item.clone())
	}
	return &c
}

// macro binds a macro or the body of a call.
func (b *binder) macro(s *scope, def *macroDef) {
	inner := newScope(s, true)
	analyze := func() {
		for _, p := range def.params {
			inner.param(p.name)
		}
		inner.loadAll(def.defaults...)
		inner.analyze(def.body)
	}
	analyze()
	b.specials(inner, def)
	analyze()
	for _, p := range def.params {
		b.name(inner, p)
	}
	b.exprs(inner, def.defaults...)
	b.body(inner, def.body)
	def.fn, def.frame = inner.fn, b.frame(inner)
}

// specials declares caller, kwargs and varargs where the body reads them.
func (b *binder) specials(s *scope, def *macroDef) {
	reads := readsFirst(def.body, "caller", "kwargs", "varargs")
	param := func(name string) int {
		for i, p := range def.params {
			if p.name == name {
				return i
			}
		}
		return -1
	}
	declare := func(name string) int32 {
		if !reads[name] || param(name) >= 0 {
			return -1
		}
		s.param(name)
		return s.fn.slot(ident{s.level, name})
	}
	def.callerSlot, def.kwargsSlot, def.varargsSlot = declare("caller"), declare("kwargs"), declare("varargs")
	if def.readsCaller = reads["caller"]; !def.readsCaller {
		return
	}
	if i := param("caller"); i >= 0 {
		def.callerIsParam = true
		if i < len(def.params)-len(def.defaults) {
			failAt(def.at, "TemplateAssertionError", "the parameter 'caller' needs a default, or must be left out")
		}
	}
}
