package answer

import "slices"

// interval is a set of reals between two expressions.
type interval struct {
	low      *node
	lowOpen  bool
	high     *node
	highOpen bool
}

// segment is an interval whose ends are computed.
type segment struct {
	low      value
	lowOpen  bool
	high     value
	highOpen bool
}

var (
	infinity      = op(opInfinity)
	minusInfinity = op(opNegate, op(opInfinity))
)

func allReals() meaning {
	return meaning{kind: realsKind, ranges: []interval{{minusInfinity, true, infinity, true}}}
}

// reals are the intervals of a meaning that is a set of reals.
func (m meaning) reals() ([]interval, error) {
	isNumber := func(x meaning) bool { return x.kind == numberKind }
	switch {
	case m.kind == realsKind:
		return m.ranges, nil
	case m.kind == tupleKind && len(m.items) == 2 && isNumber(m.items[0]) && isNumber(m.items[1]):
		return []interval{{m.items[0].expr, m.open == '(', m.items[1].expr, m.close == ')'}}, nil
	case m.kind == setKind && !slices.ContainsFunc(m.items, func(x meaning) bool { return !isNumber(x) }):
		var all []interval
		for _, x := range m.items {
			all = append(all, interval{x.expr, false, x.expr, false})
		}
		return all, nil
	}
	return nil, errUnread
}

// segments are the disjoint pieces of a set of reals, in order: the normal form that two sets are compared in.
func (m meaning) segments() ([]segment, error) {
	if m.kind == pointsKind {
		return slices.DeleteFunc(slices.Clone(m.points), func(s segment) bool {
			return same(s.low, s.high) && (s.lowOpen || s.highOpen)
		}), nil
	}
	ranges, err := m.reals()
	if err != nil {
		return nil, err
	}
	var all []segment
	for _, r := range ranges {
		s, empty, err := r.compute()
		if err != nil {
			return nil, err
		}
		if !empty {
			all = append(all, s)
		}
	}
	return merged(all), nil
}

func (r interval) compute() (s segment, empty bool, err error) {
	if !r.low.closed() || !r.high.closed() {
		return s, false, errUnread
	}
	if s.low, err = compute(r.low, nil); err != nil {
		return s, false, err
	}
	if s.high, err = compute(r.high, nil); err != nil {
		return s, false, err
	}
	if !s.low.isReal() || !s.high.isReal() || s.low.isInfinite() && s.low.sign() > 0 {
		return s, false, errUnread
	}
	s.lowOpen = r.lowOpen || s.low.isInfinite()
	s.highOpen = r.highOpen || s.high.isInfinite()
	atOnce := same(s.low, s.high)
	return s, !atOnce && !less(s.low, s.high) || atOnce && (s.lowOpen || s.highOpen), nil
}

// less compares reals; equal ones, by same, are not less.
func less(x, y value) bool {
	if x.rat != nil && y.rat != nil {
		return x.rat.Cmp(y.rat) < 0
	}
	a, _ := x.floats()
	b, _ := y.floats()
	return a.Cmp(b) < 0 && !same(x, y)
}

// merged joins segments that overlap, or that touch where one of them has the point.
func merged(all []segment) (out []segment) {
	slices.SortStableFunc(all, func(a, b segment) int {
		switch {
		case less(a.low, b.low):
			return -1
		case less(b.low, a.low):
			return 1
		case a.lowOpen == b.lowOpen:
			return 0
		case a.lowOpen:
			return 1
		}
		return -1
	})
	for _, s := range all {
		if len(out) == 0 {
			out = append(out, s)
			continue
		}
		last := &out[len(out)-1]
		touches := same(s.low, last.high)
		switch {
		case touches && s.lowOpen && last.highOpen, !touches && less(last.high, s.low):
			out = append(out, s)
		case same(s.high, last.high):
			last.highOpen = last.highOpen && s.highOpen
		case less(last.high, s.high):
			last.high, last.highOpen = s.high, s.highOpen
		}
	}
	return out
}

// readDifference reads a ∖ b.
func readDifference(a, b string, depth int) (meaning, error) {
	from, err := read(a, true, depth+1)
	if err != nil {
		return meaning{}, err
	}
	points, err := read(b, true, depth+1)
	if err != nil {
		return meaning{}, err
	}
	return difference(from, points)
}

// difference takes the points of a set out of a set of reals.
func difference(from, points meaning) (meaning, error) {
	all, err := from.segments()
	if err != nil {
		return meaning{}, err
	}
	if points.kind != setKind {
		return meaning{}, errUnread
	}
	var cuts []value
	for _, p := range points.items {
		if p.kind != numberKind {
			return meaning{}, errUnread
		}
		v, err := compute(p.expr, nil)
		if err != nil {
			return meaning{}, err
		}
		if !v.isReal() {
			return meaning{}, errUnread
		}
		cuts = append(cuts, v)
	}
	slices.SortStableFunc(cuts, func(a, b value) int {
		switch {
		case less(a, b):
			return -1
		case less(b, a):
			return 1
		}
		return 0
	})
	m := meaning{kind: pointsKind}
	for _, s := range all {
		for _, p := range cuts {
			if less(p, s.low) || less(s.high, p) {
				continue
			}
			m.points = append(m.points, segment{s.low, s.lowOpen, p, true})
			s.low, s.lowOpen = p, true
		}
		m.points = append(m.points, s)
	}
	return m, nil
}

func sameReals(a, b meaning) (bool, error) {
	x, err := a.segments()
	if err != nil {
		return false, err
	}
	y, err := b.segments()
	if err != nil {
		return false, err
	}
	return slices.EqualFunc(x, y, func(p, q segment) bool {
		return same(p.low, q.low) && same(p.high, q.high) && p.lowOpen == q.lowOpen && p.highOpen == q.highOpen
	}), nil
}
