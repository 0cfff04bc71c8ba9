package jinja

// readsFirst tells which of the names a body reads before it assigns them, scopes within it included, in the order of the
// source.
func readsFirst(body []stmt, names ...string) map[string]bool {
	r := &reader{open: map[string]bool{}, read: map[string]bool{}}
	for _, n := range names {
		r.open[n] = true
	}
	r.body(body)
	return r.read
}

type reader struct{ open, read map[string]bool }

func (r *reader) exprs(list ...expr) {
	for _, e := range list {
		eachName(e, func(n *nameExpr) {
			if r.open[n.name] {
				r.read[n.name] = true
			}
		})
	}
}

func (r *reader) assign(t *target) {
	if t.items == nil && t.attr == "" {
		delete(r.open, t.name.name)
	}
	for _, item := range t.items {
		r.assign(item)
	}
}

func (r *reader) macro(def *macroDef) {
	for _, p := range def.params {
		delete(r.open, p.name)
	}
	r.exprs(def.defaults...)
	r.body(def.body)
}

func (r *reader) body(body []stmt) {
	for _, st := range body {
		switch n := st.(type) {
		case *printStmt:
			r.exprs(n.e)
		case *ifStmt:
			for i, c := range n.conds {
				r.exprs(c)
				r.body(n.bodies[i])
			}
			r.body(n.other)
		case *forStmt:
			r.assign(n.target)
			r.exprs(n.in)
			r.body(n.body)
			r.body(n.other)
			r.exprs(n.cond)
		case *setStmt:
			r.assign(n.target)
			r.exprs(n.e)
		case *setBlockStmt:
			r.assign(n.target)
			r.exprs(n.filter)
			r.body(n.body)
		case *withStmt:
			for _, name := range n.names {
				delete(r.open, name.name)
			}
			r.exprs(n.vals...)
			r.body(n.body)
		case *filterStmt:
			r.body(n.body)
			r.exprs(n.filter)
		case *macroStmt:
			r.macro(n.def)
		case *callStmt:
			r.exprs(n.call)
			r.macro(n.def)
		case *generationStmt:
			r.macro(n.def)
		}
	}
}
