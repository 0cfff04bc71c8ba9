package jinja

import (
	"math"
	"math/big"
)

func isNumber(v Value) bool {
	switch v.(type) {
	case bool, int64, *big.Int, float64:
		return true
	}
	return false
}

// asBig is the integer in v; a bool is one.
func asBig(v Value) (n *big.Int, ok bool) {
	switch t := v.(type) {
	case bool:
		if t {
			return big.NewInt(1), true
		}
		return new(big.Int), true
	case int64:
		return big.NewInt(t), true
	case *big.Int:
		return t, true
	}
	return nil, false
}

// asInt is the integer in v as an index; what is beyond int becomes the nearest.
func asInt(v Value) (n int, ok bool) {
	switch t := v.(type) {
	case bool:
		if t {
			return 1, true
		}
		return 0, true
	case int64:
		return int(t), true
	case *big.Int:
		if t.Sign() < 0 {
			return math.MinInt, true
		}
		return math.MaxInt, true
	}
	return 0, false
}

// asFloat is the number in v as a float.
func asFloat(v Value) (f float64, ok bool) {
	switch t := v.(type) {
	case bool:
		if t {
			return 1, true
		}
		return 0, true
	case int64:
		return float64(t), true
	case float64:
		return t, true
	case *big.Int:
		f, _ := new(big.Float).SetInt(t).Float64()
		if math.IsInf(f, 0) {
			fail("OverflowError", "int too large to convert to float")
		}
		return f, true
	}
	return 0, false
}

// smallest stores an integer in its smallest type.
func smallest(n *big.Int) Value {
	if n.IsInt64() {
		return n.Int64()
	}
	if n.BitLen() > maxIntBits {
		fail("LimitError", "an integer of more than %d bits", maxIntBits)
	}
	return n
}

// compareNumbers orders two numbers exactly.
func compareNumbers(a, b Value) order {
	if i, ok := a.(int64); ok {
		if j, ok := b.(int64); ok {
			switch {
			case i < j:
				return less
			case i > j:
				return greater
			}
			return same
		}
	}
	for _, v := range []Value{a, b} {
		if f, ok := v.(float64); ok && math.IsNaN(f) {
			return unordered
		}
	}
	return order(exact(a).Cmp(exact(b)))
}

func exact(v Value) *big.Float {
	if f, ok := v.(float64); ok {
		return new(big.Float).SetFloat64(f)
	}
	n, _ := asBig(v)
	return new(big.Float).SetInt(n)
}

// smallArith is a op b where neither reaches 2^31; ok is false elsewhere, and for what only numbers can do.
func smallArith(op string, a, b int64) (v int64, ok bool) {
	const bound = 1 << 31
	if a <= -bound || a >= bound || b <= -bound || b >= bound {
		return 0, false
	}
	switch op {
	case "+":
		return a + b, true
	case "-":
		return a - b, true
	case "*":
		return a * b, true
	case "//", "%":
		if b == 0 {
			return 0, false
		}
		q, r := a/b, a%b
		if r != 0 && (r < 0) != (b < 0) {
			q, r = q-1, r+b
		}
		if op == "%" {
			return r, true
		}
		return q, true
	}
	return 0, false
}

// numbers evaluates a op b for two numbers.
func numbers(op string, a, b Value) Value {
	i, ints := asBig(a)
	j, ok := asBig(b)
	if !ints || !ok || op == "**" && j.Sign() < 0 {
		f, _ := asFloat(a)
		g, _ := asFloat(b)
		return floats(op, f, g)
	}
	switch op {
	case "+":
		return smallest(new(big.Int).Add(i, j))
	case "-":
		return smallest(new(big.Int).Sub(i, j))
	case "*":
		return smallest(new(big.Int).Mul(i, j))
	case "**":
		return power(i, j)
	}
	if j.Sign() == 0 {
		fail("ZeroDivisionError", "division by zero")
	}
	return divide(op, i, j)
}

func power(i, j *big.Int) Value {
	if i.BitLen() > 1 && (!j.IsInt64() || j.Int64() > maxIntBits || int64(i.BitLen())*j.Int64() > 2*maxIntBits) {
		fail("LimitError", "an integer of more than %d bits", maxIntBits)
	}
	if i.BitLen() <= 1 { // 0, 1 or -1: only whether j is zero or odd matters
		j = big.NewInt(int64(min(j.Sign(), 1)*2) - int64(j.Bit(0)))
	}
	return smallest(new(big.Int).Exp(i, j, nil))
}

// divide is /, // or % of integers, j not zero.
func divide(op string, i, j *big.Int) Value {
	if op == "/" {
		if i.Sign() == 0 && j.Sign() < 0 {
			return math.Copysign(0, -1)
		}
		f, _ := new(big.Rat).SetFrac(i, j).Float64()
		if math.IsInf(f, 0) {
			fail("OverflowError", "integer division result too large for a float")
		}
		return f
	}
	q, r := new(big.Int).QuoRem(i, j, new(big.Int))
	if r.Sign() != 0 && (r.Sign() < 0) != (j.Sign() < 0) { // Python rounds down
		q.Sub(q, big.NewInt(1))
		r.Add(r, j)
	}
	if op == "%" {
		return smallest(r)
	}
	return smallest(q)
}

func floats(op string, f, g float64) Value {
	switch op {
	case "+":
		return f + g
	case "-":
		return f - g
	case "*":
		return f * g
	case "**":
		return floatPower(f, g)
	}
	if g == 0 {
		fail("ZeroDivisionError", "float division by zero")
	}
	if op == "/" {
		return f / g
	}
	m := math.Mod(f, g)
	if m != 0 && (m < 0) != (g < 0) {
		m += g
	}
	if op == "%" {
		if m == 0 {
			return math.Copysign(0, g)
		}
		return m
	}
	q := (f - m) / g
	down := math.Floor(q)
	if q-down > 0.5 {
		down++
	}
	if down == 0 {
		return math.Copysign(0, f/g)
	}
	return down
}

func floatPower(f, g float64) Value {
	switch {
	case f == 0 && g < 0:
		fail("ZeroDivisionError", "0.0 cannot be raised to a negative power")
	case f < 0 && g != math.Trunc(g):
		unsupported("a complex number")
	}
	r := math.Pow(f, g)
	if math.IsInf(r, 0) && !math.IsInf(f, 0) && !math.IsInf(g, 0) {
		fail("OverflowError", "the power is too large for a float")
	}
	return r
}
