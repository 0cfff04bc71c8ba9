package jinja

import (
	"math/big"
	"strings"
)

// equal is Python's ==.
func (x *exec) equal(a, b Value) bool { return x.equalAt(a, b, 0) }

func (x *exec) equalAt(a, b Value, depth int) bool {
	x.step(1)
	tooDeep(depth, "compare")
	if s, ok := text(a); ok {
		t, ok := text(b)
		if !ok || len(s) != len(t) {
			return false
		}
		x.scan(s)
		return s == t
	}
	if isNumber(a) && isNumber(b) {
		return compareNumbers(a, b) == same
	}
	switch s := a.(type) {
	case nil:
		return b == nil
	case *List:
		t, ok := b.(*List)
		return ok && (s == t || x.equalItems(s.Items, t.Items, depth))
	case *tuple:
		t, ok := b.(*tuple)
		return ok && (s == t || x.equalItems(s.items, t.items, depth))
	case *Dict:
		t, ok := b.(*Dict)
		return ok && (s == t || x.equalDicts(s, t, depth))
	case *rangeValue:
		t, ok := b.(*rangeValue)
		return ok && *s == *t
	case *undefined:
		_, ok := b.(*undefined)
		return ok
	case *view:
		t, ok := b.(*view)
		if !ok || s.part != t.part || s.part == "values" {
			return a == b
		}
		return x.equalViews(s, t, depth)
	}
	return a == b
}

func (x *exec) equalItems(a, b []Value, depth int) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !x.equalAt(a[i], b[i], depth+1) {
			return false
		}
	}
	return true
}

func (x *exec) equalDicts(a, b *Dict, depth int) bool {
	if a.Len() != b.Len() {
		return false
	}
	for i, k := range a.keys {
		x.scanKey(k)
		if v, ok := b.Get(k); !ok || !x.equalAt(a.vals[i], v, depth+1) {
			return false
		}
	}
	return true
}

func (x *exec) equalViews(a, b *view, depth int) bool {
	if a.part == "items" {
		return x.equalDicts(a.dict, b.dict, depth+1)
	}
	for _, k := range a.dict.keys {
		x.step(1)
		if _, ok := b.dict.Get(k); !ok {
			return false
		}
	}
	return a.dict.Len() == b.dict.Len()
}

// order is how two values stand to each other.
type order int

const (
	less      order = -1
	same      order = 0
	greater   order = 1
	unordered order = 2 // a NaN is one of them
)

// holds tells whether a op b for values in this order.
func (o order) holds(op string) bool {
	switch op {
	case "<":
		return o == less
	case "<=":
		return o == less || o == same
	case ">":
		return o == greater
	}
	return o == greater || o == same
}

// compare is Python's ordering, for a op b.
func (x *exec) compare(op string, a, b Value) order { return x.compareAt(op, a, b, 0) }

func (x *exec) compareAt(op string, a, b Value, depth int) order {
	x.step(1)
	tooDeep(depth, "compare")
	mustBeDefined(a)
	mustBeDefined(b)
	if s, ok := text(a); ok {
		if t, ok := text(b); ok {
			x.scan(s)
			return order(strings.Compare(s, t)) // the order of UTF-8 is that of the characters
		}
	}
	if isNumber(a) && isNumber(b) {
		return compareNumbers(a, b)
	}
	s, t, ok := bothItems(a, b)
	if !ok {
		if v, ok := a.(*view); ok && v.part != "values" {
			unsupported("the order of sets")
		}
		fail("TypeError", "'%s' not supported between instances of '%s' and '%s'", op, typeName(a), typeName(b))
	}
	for i := 0; i < len(s) && i < len(t); i++ {
		if !x.equalAt(s[i], t[i], depth+1) {
			return x.compareAt(op, s[i], t[i], depth+1)
		}
	}
	return compareNumbers(int64(len(s)), int64(len(t)))
}

// bothItems are the items of two lists or of two tuples.
func bothItems(a, b Value) (s, t []Value, ok bool) {
	switch l := a.(type) {
	case *List:
		if m, ok := b.(*List); ok {
			return l.Items, m.Items, true
		}
	case *tuple:
		if m, ok := b.(*tuple); ok {
			return l.items, m.items, true
		}
	}
	return nil, nil, false
}

// compareOp evaluates a op b for every comparing operator.
func (x *exec) compareOp(op string, a, b Value) bool {
	switch op {
	case "==":
		return x.equal(a, b)
	case "!=":
		return !x.equal(a, b)
	case "in":
		return x.contains(b, a)
	case "not in":
		return !x.contains(b, a)
	}
	return x.compare(op, a, b).holds(op)
}

// contains is Python's `item in box`.
func (x *exec) contains(box, item Value) bool {
	switch t := box.(type) {
	case string, markup:
		s, _ := text(box)
		sub, ok := text(item)
		if !ok {
			fail("TypeError", "'in <string>' requires string as left operand, not %s", typeName(item))
		}
		x.scan(s)
		return strings.Contains(s, sub)
	case *Dict:
		x.scanKey(item)
		_, ok := t.Get(item)
		return ok
	case *view:
		if t.part == "keys" {
			x.scanKey(item)
			_, ok := t.dict.Get(item)
			return ok
		}
	case nil, bool, int64, *big.Int, float64, *callable, *macro, *namespace:
		fail("TypeError", "argument of type '%s' is not iterable", typeName(box))
	}
	next := x.iterate(box)
	for v, ok := next(); ok; v, ok = next() {
		if x.equal(v, item) {
			return true
		}
	}
	return false
}
