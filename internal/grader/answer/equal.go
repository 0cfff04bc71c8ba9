package answer

import (
	"errors"
	"maps"
	"math/big"
	"slices"
	"strings"
)

// points are what variables stand for when two expressions are compared: rationals of both signs that no usual expression
// treats in a special way.
var points = []*big.Rat{big.NewRat(37, 17), big.NewRat(-53, 29), big.NewRat(11, 13), big.NewRat(-7, 19), big.NewRat(101, 43)}

// places are the five assignments of a set of variables, or the only one of none. Variable j of the sorted names has at place k
// the value points[(k+3j) mod 5] + j/7 + kj/11.
func places(names map[string]bool) []map[string]value {
	if len(names) == 0 {
		return []map[string]value{nil}
	}
	sorted := slices.Sorted(maps.Keys(names))
	var all []map[string]value
	for k := range points {
		at := map[string]value{}
		for j, name := range sorted {
			x := new(big.Rat).Add(points[(k+3*j)%len(points)], big.NewRat(int64(j), 7))
			at[name] = exact(x.Add(x, big.NewRat(int64(k*j), 11)))
		}
		all = append(all, at)
	}
	return all
}

// comparison compares answers; digits is the number of significant digits from which on a decimal stands for what rounds to it,
// 0 for never. pairs bounds how many it compares.
type comparison struct {
	digits  int
	ordered bool
	pairs   int
}

// maxPairs of parts are compared: lists without order need the square of their length.
const maxPairs = 4096

// equal says whether an answer means what the target means. An error says that it can't be told.
func (c *comparison) equal(a, b meaning) (bool, error) {
	if c.pairs++; c.pairs > maxPairs {
		return false, errTooBig
	}
	switch {
	case a.kind == equationKind && b.kind != equationKind && a.simple:
		return c.equal(*a.right, b)
	case b.kind == equationKind && a.kind != equationKind && b.simple:
		return c.equal(a, *b.right)
	case a.kind == b.kind:
		return c.alike(a, b)
	}
	return c.unlike(a, b)
}

// alike compares two meanings of one kind.
func (c *comparison) alike(a, b meaning) (bool, error) {
	switch a.kind {
	case numberKind:
		return c.numbers(a.expr, b.expr)
	case wordsKind:
		return a.text == b.text, nil
	case matrixKind:
		return c.matrices(a, b)
	case ratioKind:
		return sameRatio(a.exprs, b.exprs)
	case equationKind:
		return c.equations(a, b)
	case tupleKind:
		return c.tuples(a, b)
	case setKind:
		return c.anyOrder(a.items, b.items)
	case listKind:
		if c.ordered {
			return c.inOrder(a.items, b.items)
		}
		return c.anyOrder(a.items, b.items)
	}
	return sameReals(a, b)
}

// unlike compares meanings of two kinds, which can still say the same.
func (c *comparison) unlike(a, b meaning) (bool, error) {
	has := func(x, y meaningKind) (meaning, meaning, bool) {
		if a.kind == x && b.kind == y {
			return a, b, true
		}
		return b, a, a.kind == y && b.kind == x
	}
	if r, n, ok := has(ratioKind, numberKind); ok {
		if len(r.exprs) != 2 {
			return false, nil
		}
		return c.numbers(op(opFraction, r.exprs...), n.expr)
	}
	if s, l, ok := has(setKind, listKind); ok {
		return c.anyOrder(s.items, l.items)
	}
	if t, l, ok := has(tupleKind, listKind); ok {
		if t.open != '(' || t.close != ')' {
			return false, nil
		}
		return c.inOrder(t.items, l.items)
	}
	for _, many := range []meaningKind{setKind, listKind} {
		if s, n, ok := has(many, numberKind); ok {
			one, err := c.distinct(s.items)
			if err != nil || len(one) != 1 {
				return false, err
			}
			return c.equal(one[0], n)
		}
	}
	if a.isReals() && b.isReals() && (a.kind != tupleKind || b.kind != setKind) && (a.kind != setKind || b.kind != tupleKind) {
		return sameReals(a, b)
	}
	return false, nil
}

// isReals says whether a meaning can be a set of reals.
func (m meaning) isReals() bool {
	return m.kind == realsKind || m.kind == pointsKind || m.kind == tupleKind || m.kind == setKind
}

func (c *comparison) tuples(a, b meaning) (bool, error) {
	if a.open == b.open && a.close == b.close {
		return c.inOrder(a.items, b.items)
	}
	if len(a.items) != 2 || len(b.items) != 2 {
		return false, nil
	}
	for _, m := range slices.Concat(a.items, b.items) {
		if m.kind == numberKind && m.expr.infinite() {
			return sameReals(a, b) // at an infinite end both brackets say the same
		}
	}
	return false, nil
}

func (c *comparison) inOrder(a, b []meaning) (bool, error) {
	if len(a) != len(b) {
		return false, nil
	}
	for i := range a {
		if ok, err := c.equal(a[i], b[i]); !ok || err != nil {
			return false, err
		}
	}
	return true, nil
}

// anyOrder compares without order or duplicates.
func (c *comparison) anyOrder(a, b []meaning) (bool, error) {
	a, err := c.distinct(a)
	if err != nil {
		return false, err
	}
	b, err = c.distinct(b)
	if err != nil || len(a) != len(b) {
		return false, err
	}
	used := make([]bool, len(b))
	for _, x := range a {
		found := false
		for j, y := range b {
			if used[j] {
				continue
			}
			if found, err = c.equal(x, y); err != nil {
				return false, err
			}
			if found {
				used[j] = true
				break
			}
		}
		if !found {
			return false, nil
		}
	}
	return true, nil
}

func (c *comparison) distinct(all []meaning) (out []meaning, err error) {
	for _, x := range all {
		found := false
		for _, y := range out {
			if found, err = c.equal(x, y); err != nil {
				return nil, err
			}
			if found {
				break
			}
		}
		if !found {
			out = append(out, x)
		}
	}
	return out, nil
}

func (c *comparison) matrices(a, b meaning) (bool, error) {
	if len(a.rows) != len(b.rows) {
		return false, nil
	}
	for i := range a.rows {
		if len(a.rows[i]) != len(b.rows[i]) {
			return false, nil
		}
		for j := range a.rows[i] {
			if c.pairs++; c.pairs > maxPairs {
				return false, errTooBig
			}
			if ok, err := c.numbers(a.rows[i][j], b.rows[i][j]); !ok || err != nil {
				return false, err
			}
		}
	}
	return true, nil
}

// sameRatio compares up to a factor; ratios are of rationals.
func sameRatio(a, b []*node) (bool, error) {
	if len(a) != len(b) {
		return false, nil
	}
	x, y := make([]*big.Rat, len(a)), make([]*big.Rat, len(b))
	zeros := false
	for i := range a {
		p, err := compute(a[i], nil)
		if err != nil {
			return false, err
		}
		q, err := compute(b[i], nil)
		if err != nil || p.rat == nil || q.rat == nil {
			return false, err
		}
		x[i], y[i] = p.rat, q.rat
		zeros = zeros || x[i].Sign() == 0 || y[i].Sign() == 0
	}
	for i := range x {
		left, right := x[i], y[i]
		if !zeros {
			left, right = new(big.Rat).Mul(x[i], y[0]), new(big.Rat).Mul(y[i], x[0])
		}
		if left.Cmp(right) != 0 {
			return false, nil
		}
	}
	return true, nil
}

// equations are the same where left − right of one is a multiple of the other's.
func (c *comparison) equations(a, b meaning) (bool, error) {
	if strings.ReplaceAll(a.left, " ", "") == strings.ReplaceAll(b.left, " ", "") {
		return c.equal(*a.right, *b.right)
	}
	x, err := a.difference()
	if err != nil {
		return false, err
	}
	y, err := b.difference()
	if err != nil {
		return false, err
	}
	var factor *value
	for _, at := range places(names(x, y)) {
		p, err := compute(x, at)
		if err != nil {
			return false, err
		}
		q, err := compute(y, at)
		if err != nil {
			return false, err
		}
		pZero, qZero := same(p, whole(0)), same(q, whole(0))
		if pZero || qZero {
			if pZero != qZero {
				return false, nil
			}
			continue
		}
		f, err := arithmetic(opDivide, p, q)
		if err != nil {
			return false, err
		}
		if factor == nil {
			factor = &f
		} else if !same(*factor, f) {
			return false, nil
		}
	}
	return factor != nil, nil
}

// difference is left − right of an equation.
func (m meaning) difference() (*node, error) {
	left, err := expression(m.left)
	if err != nil {
		return nil, err
	}
	right, err := expression(m.rightText)
	return op(opSubtract, left, right), err
}

func names(all ...*node) map[string]bool {
	out := map[string]bool{}
	for _, n := range all {
		n.variables(out)
	}
	return out
}

// numbers compares two expressions: exactly, to 40 digits, or at the places of their variables; then as decimals.
func (c *comparison) numbers(a, b *node) (bool, error) {
	all := names(a, b)
	if ok, err := sameEverywhere(a, b, all); ok || err != nil {
		return ok, err
	}
	if c.digits == 0 || len(all) > 0 {
		return false, nil
	}
	if ok, err := c.roundsTo(a, b); ok || err != nil {
		return ok, err
	}
	return c.roundsTo(b, a)
}

// sameEverywhere: where neither side exists a place is left out, where one does they differ.
func sameEverywhere(a, b *node, variables map[string]bool) (bool, error) {
	seen := 0
	for _, at := range places(variables) {
		x, errX := compute(a, at)
		y, errY := compute(b, at)
		switch {
		case errors.Is(errX, errTooBig) || errors.Is(errY, errTooBig):
			return false, errTooBig
		case errX != nil && errY != nil:
			continue
		case errX != nil || errY != nil || !same(x, y):
			return false, nil
		}
		seen++
	}
	if seen == 0 {
		return false, errUnread
	}
	return true, nil
}
