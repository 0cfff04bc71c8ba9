package jinja

import (
	"math"
	"slices"
	"unicode/utf8"
)

// bounds is what a slice with these parts takes of n items: from, from+step, ... before to. A part is nil or None where
// it is left out.
func bounds(part [3]Value, n int) (from, to, step int) {
	step = 1
	if part[2] != nil {
		step = sliceIndex(part[2])
	}
	if step == 0 {
		fail("ValueError", "slice step cannot be zero")
	}
	low, high := 0, n
	from, to = 0, n
	if step < 0 {
		low, high = -1, n-1
		from, to = n-1, -1
	}
	clamp := func(v Value) int {
		i := sliceIndex(v)
		if i < 0 {
			return max(i+n, low)
		}
		return min(i, high)
	}
	if part[0] != nil {
		from = clamp(part[0])
	}
	if part[1] != nil {
		to = clamp(part[1])
	}
	return from, to, step
}

func sliceIndex(v Value) int {
	i, ok := asInt(v)
	if !ok {
		fail("TypeError", "slice indices must be integers or None, not '%s'", typeName(v))
	}
	return max(min(i, math.MaxInt32), -math.MaxInt32)
}

// foldsToNothing tells whether jinja2, which evaluates a slice of constants ahead of time and as a subscript, takes it for
// an undefined value and not for an error.
func (n *sliceExpr) foldsToNothing(obj Value, part [3]Value) bool {
	if !isConstant(n.obj) || !isConstant(n.part[0]) || !isConstant(n.part[1]) || !isConstant(n.part[2]) {
		return false
	}
	_, sliceable := obj.(*List)
	sliceable = sliceable || is[*tuple](obj) || isText(obj)
	return !sliceable || slices.ContainsFunc(part[:], func(v Value) bool {
		_, ok := asInt(v)
		return v != nil && !ok
	})
}

func isConstant(e expr) bool {
	switch e.(type) {
	case *nameExpr, *callExpr, *filterExpr, *testExpr:
		return false
	}
	constant := true
	children(e, func(c expr) { constant = constant && isConstant(c) })
	return constant
}

// slice is obj[from:to:step].
func (x *exec) slice(obj Value, part [3]Value) Value {
	switch t := obj.(type) {
	case *undefined:
		t.fail()
	case *List:
		return &List{pick(x, t.Items, part)}
	case *tuple:
		return &tuple{items: pick(x, t.items, part)}
	case *rangeValue:
		from, to, step := bounds(part, t.len())
		return &rangeValue{t.start + int64(from)*t.step, t.start + int64(to)*t.step, t.step * int64(step)}
	case string, markup:
		s, _ := text(obj)
		x.scan(s)
		n := utf8.RuneCountInString(s)
		if from, to, step := bounds(part, n); step == 1 {
			return like(obj, substring(s, n, from, to))
		}
		x.charge(4 * n)
		return like(obj, string(pick(x, []rune(s), part)))
	case *Dict:
		fail("TypeError", "unhashable type: 'slice'")
	}
	fail("TypeError", "'%s' object is not subscriptable", typeName(obj))
	return nil
}

// pick is the items of a slice; they share memory where step is 1.
func pick[T any](x *exec, items []T, part [3]Value) []T {
	from, to, step := bounds(part, len(items))
	if step == 1 {
		to = max(from, to)
		return items[from:to:to]
	}
	var out []T
	for i := from; step > 0 && i < to || step < 0 && i > to; i += step {
		x.charge(itemBytes)
		out = append(out, items[i])
	}
	return out
}
