package jinja

import "maps"

// Jinja is compiled to Python, and its rules for names are those of the code that it is compiled to. Each name of a scope
// becomes a Python variable that carries the scope's level and the name; a scope that is entered first gives its variables
// a value: none yet, the caller's variable of that name, or the outer scope's. Macros, call blocks and loop conditions are
// Python functions, which see the variables around them as they are when the function runs. So a name whose first mention
// in a scope assigns it is undefined there until then, and what a loop sets is gone after it. This file is that analysis;
// bind.go applies it, and slots in an env stand for the variables.

// ident is a variable of the compiled code.
type ident struct {
	level int
	name  string
}

// function is what one Python function is: the template itself, a macro, the body of a call, the condition of a loop.
type function struct {
	parent *function
	level  int // of its outermost scope; variables of a lower level belong to a function around it
	slots  map[ident]int32
}

func (f *function) slot(id ident) int32 {
	s, ok := f.slots[id]
	if !ok {
		s = int32(len(f.slots))
		f.slots[id] = s
	}
	return s
}

// slotRef is a variable as a function sees it: up functions outwards.
type slotRef struct{ up, slot int32 }

// ref finds the variable from inside f.
func (f *function) ref(id ident) slotRef {
	var up int32
	for ; id.level < f.level; f = f.parent {
		up++
	}
	return slotRef{up, f.slot(id)}
}

type loadKind uint8

const (
	loadParam     loadKind = iota // set by whoever enters the scope
	loadUndefined                 // no value yet
	loadCaller                    // the variable that the render was given
	loadOuter                     // the value of a variable around
)

type load struct {
	kind  loadKind
	outer ident
}

// scope is the names of one scope, in the order in which they are mentioned.
type scope struct {
	parent *scope
	fn     *function
	level  int
	refs   map[string]ident
	loads  map[ident]load
	stores map[string]bool
	left   *int // of maxBranchNames, for all scopes of a template
}

// newScope opens a scope within parent, nil for the template's own; own makes it a function of its own.
func newScope(parent *scope, own bool) *scope {
	s := &scope{parent: parent, refs: map[string]ident{}, loads: map[ident]load{}, stores: map[string]bool{}}
	var around *function
	if parent != nil {
		s.level, around, s.left = parent.level+1, parent.fn, parent.left
	} else {
		left := maxBranchNames
		s.left = &left
	}
	s.fn = around
	if own {
		s.fn = &function{parent: around, level: s.level, slots: map[ident]int32{}}
	}
	return s
}

func (s *scope) define(name string, l load) {
	id := ident{s.level, name}
	s.refs[name] = id
	s.loads[id] = l
}

// find is the variable that a name means here.
func (s *scope) find(name string) (ident, bool) {
	for ; s != nil; s = s.parent {
		if id, ok := s.refs[name]; ok {
			return id, true
		}
	}
	return ident{}, false
}

// outer is the variable that a name means around s.
func (s *scope) outer(name string) (ident, bool) { return s.parent.find(name) }

func (s *scope) load(name string) {
	if _, ok := s.find(name); !ok {
		s.define(name, load{kind: loadCaller})
	}
}

func (s *scope) store(name string) {
	s.stores[name] = true
	if _, ok := s.refs[name]; ok {
		return
	}
	if id, ok := s.outer(name); ok {
		s.define(name, load{loadOuter, id})
	} else {
		s.define(name, load{kind: loadUndefined})
	}
}

func (s *scope) param(name string) {
	s.stores[name] = true
	s.define(name, load{kind: loadParam})
}

func (s *scope) clone() *scope {
	if *s.left -= len(s.refs) + len(s.loads) + len(s.stores); *s.left < 0 {
		fail("LimitError", "the template has too many names in too many branches")
	}
	c := *s
	c.refs, c.loads, c.stores = maps.Clone(s.refs), maps.Clone(s.loads), maps.Clone(s.stores)
	return &c
}

// merge takes in the branches of an if, clones of s that were analyzed apart: what only some of them set has the value
// from outside in the others.
func (s *scope) merge(branches ...*scope) {
	set := map[string]bool{}
	for _, b := range branches {
		for name := range b.stores {
			if !s.stores[name] {
				set[name] = true
			}
		}
	}
	for _, b := range branches {
		maps.Copy(s.refs, b.refs)
		maps.Copy(s.loads, b.loads)
		maps.Copy(s.stores, b.stores)
	}
	for name := range set {
		id, _ := s.find(name)
		if outer, ok := s.outer(name); ok {
			s.loads[id] = load{loadOuter, outer}
		} else {
			s.loads[id] = load{kind: loadCaller}
		}
	}
}

// loadAll loads every name of an expression, which may be nil.
func (s *scope) loadAll(list ...expr) {
	for _, e := range list {
		eachName(e, func(n *nameExpr) { s.load(n.name) })
	}
}

func (s *scope) storeTarget(t *target) {
	switch {
	case t.items != nil:
		for _, item := range t.items {
			s.storeTarget(item)
		}
	case t.attr != "":
		s.load(t.name.name)
	default:
		s.store(t.name.name)
	}
}

func (s *scope) paramTarget(t *target) {
	if t.items == nil {
		s.param(t.name.name)
	}
	for _, item := range t.items {
		s.paramTarget(item)
	}
}

// analyze notes the names that statements mention in this scope; it stops where another scope begins.
func (s *scope) analyze(body []stmt) {
	for _, st := range body {
		switch n := st.(type) {
		case *printStmt:
			s.loadAll(n.e)
		case *ifStmt:
			s.analyzeIf(n.conds, n.bodies, n.other)
		case *forStmt:
			s.loadAll(n.in)
		case *setStmt:
			s.loadAll(n.e)
			s.storeTarget(n.target)
		case *setBlockStmt:
			s.storeTarget(n.target)
		case *withStmt:
			s.loadAll(n.vals...)
		case *filterStmt:
			s.loadAll(n.filter)
		case *macroStmt:
			s.store(n.name.name)
		case *callStmt:
			s.loadAll(n.call)
		}
	}
}

// analyzeIf takes the first condition and its body, then the rest as one branch, each elif an if within it.
func (s *scope) analyzeIf(conds []expr, bodies [][]stmt, other []stmt) {
	s.loadAll(conds[0])
	yes, rest, no := s.clone(), s.clone(), s.clone()
	yes.analyze(bodies[0])
	for i := 1; i < len(conds); i++ {
		rest.analyzeIf(conds[i:i+1], bodies[i:i+1], nil)
	}
	no.analyze(other)
	s.merge(yes, rest, no)
}
