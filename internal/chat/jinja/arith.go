package jinja

import (
	"math"
	"math/big"
	"strings"
)

// arith evaluates a binary operator.
func (x *exec) arith(op string, a, b Value) Value {
	if i, ok := a.(int64); ok {
		if j, ok := b.(int64); ok {
			if v, ok := smallArith(op, i, j); ok {
				return v
			}
		}
	}
	if s, ok := text(a); ok && op == "%" {
		if _, ok := a.(markup); ok {
			unsupported("the operator %% of text marked as safe")
		}
		return x.percentFormat(s, b)
	}
	mustBeDefined(a)
	mustBeDefined(b)
	if isNumber(a) && isNumber(b) {
		x.chargeBig(op, a)
		x.chargeBig(op, b)
		return numbers(op, a, b)
	}
	switch op {
	case "+":
		return x.add(a, b)
	case "*":
		if n, ok := asInt(b); ok {
			return x.repeat(a, n)
		}
		if n, ok := asInt(a); ok {
			return x.repeat(b, n)
		}
	}
	badOperands(op, a, b)
	return nil
}

func badOperands(op string, a, b Value) {
	fail("TypeError", "unsupported operand types for %s: '%s' and '%s'", op, typeName(a), typeName(b))
}

// add is + of what are not two numbers.
func (x *exec) add(a, b Value) Value {
	s, sok := text(a)
	t, tok := text(b)
	if sok && tok {
		return x.addText(a, b, s, t)
	}
	switch l := a.(type) {
	case *List:
		if m, ok := b.(*List); ok {
			return &List{x.join(l.Items, m.Items)}
		}
	case *tuple:
		if m, ok := b.(*tuple); ok {
			return &tuple{items: x.join(l.items, m.items)}
		}
	}
	badOperands("+", a, b)
	return nil
}

func (x *exec) join(a, b []Value) []Value {
	x.charge(itemBytes * (len(a) + len(b)))
	return append(append(make([]Value, 0, len(a)+len(b)), a...), b...)
}

// addText is a + b, whose characters are s and t: Markup escapes its other side.
func (x *exec) addText(a, b Value, s, t string) Value {
	_, am := a.(markup)
	_, bm := b.(markup)
	switch {
	case am && !bm:
		t = escapeHTML(t)
	case bm && !am:
		s = escapeHTML(s)
	}
	x.charge(len(s) + len(t))
	if am || bm {
		return markup(s + t)
	}
	return s + t
}

// repeat is v * n for a sequence v.
func (x *exec) repeat(v Value, n int) Value {
	switch v.(type) {
	case string, markup, *List, *tuple:
	default:
		badOperands("*", v, int64(n))
	}
	if n == math.MaxInt || n == math.MinInt {
		fail("OverflowError", "cannot repeat a sequence so often")
	}
	n = max(n, 0)
	switch t := v.(type) {
	case *List:
		return &List{x.repeatItems(t.Items, n)}
	case *tuple:
		return &tuple{items: x.repeatItems(t.items, n)}
	}
	s, _ := text(v)
	if s == "" {
		return v
	}
	x.chargeTimes(len(s), n)
	return like(v, strings.Repeat(s, n))
}

func (x *exec) repeatItems(items []Value, n int) []Value {
	if len(items) == 0 {
		return nil
	}
	x.chargeTimes(itemBytes*len(items), n)
	out := make([]Value, 0, len(items)*n)
	for range n {
		out = append(out, items...)
	}
	return out
}

// sign is -v or +v.
func sign(op string, v Value) Value {
	mustBeDefined(v)
	if f, ok := v.(float64); ok {
		if op == "-" {
			return -f
		}
		return f
	}
	n, ok := asBig(v)
	if !ok {
		fail("TypeError", "bad operand type for unary %s: '%s'", op, typeName(v))
	}
	if op == "-" {
		return smallest(new(big.Int).Neg(n))
	}
	return smallest(n)
}

var htmlEscaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "'", "&#39;", "\"", "&#34;")

func escapeHTML(s string) string { return htmlEscaper.Replace(s) }
