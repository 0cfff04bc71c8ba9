package answer

import (
	"math"
	"math/big"
	"sync"
)

// The elementary functions of a real to the precision of the package, less a few bits. Each reduces its argument and sums a
// series; the bounds of eval keep the arguments small.

// pi by Machin's formula, 16·atan(1/5) − 4·atan(1/239).
var pi = sync.OnceValue(func() *big.Float {
	a := newFloat().Mul(floatOf(16), inverseTangentOfInverse(5))
	return a.Sub(a, newFloat().Mul(floatOf(4), inverseTangentOfInverse(239)))
})

// ln2 is 2·atanh(1/3).
var ln2 = sync.OnceValue(func() *big.Float {
	sum, term := newFloat(), newFloat().Quo(floatOf(2), floatOf(3))
	for k := int64(1); term.Sign() != 0 && term.MantExp(nil) > -precision-8; k += 2 {
		sum.Add(sum, newFloat().Quo(term, floatOf(float64(k))))
		term = newFloat().Quo(term, floatOf(9))
	}
	return sum
})

func inverseTangentOfInverse(n int64) *big.Float {
	sum, square := newFloat(), floatOf(float64(n*n))
	term := newFloat().Quo(floatOf(1), floatOf(float64(n)))
	for k := int64(1); term.MantExp(nil) > -precision-8; k += 2 {
		part := newFloat().Quo(term, floatOf(float64(k)))
		if k%4 == 1 {
			sum.Add(sum, part)
		} else {
			sum.Sub(sum, part)
		}
		term = newFloat().Quo(term, square)
	}
	return sum
}

// nearest is x rounded to a whole number.
func nearest(x *big.Float) *big.Int {
	half := floatOf(0.5)
	if x.Sign() < 0 {
		half.Neg(half)
	}
	n, _ := newFloat().Add(x, half).Int(nil)
	return n
}

// exponential: |x| is at most maxExponent.
func exponential(x *big.Float) *big.Float {
	k := nearest(newFloat().Quo(x, ln2()))
	r := newFloat().Sub(x, newFloat().Mul(newFloat().SetInt(k), ln2()))
	const halvings = 16
	r.SetMantExp(r, -halvings)
	// e^r − 1 keeps its digits while it is squared: (1+y)² − 1 = y² + 2y.
	y, term := newFloat(), floatOf(1)
	for n := 1; n == 1 || term.Sign() != 0 && term.MantExp(nil) > -precision-halvings-8; n++ {
		term = newFloat().Quo(newFloat().Mul(term, r), floatOf(float64(n)))
		y.Add(y, term)
	}
	for range halvings {
		y = newFloat().Add(newFloat().Mul(y, y), newFloat().Mul(floatOf(2), y))
	}
	y.Add(y, floatOf(1))
	return y.SetMantExp(y, int(k.Int64()))
}

// logarithm: x is above 0. Halley's steps treble the digits of the float64.
func logarithm(x *big.Float) *big.Float {
	mant := newFloat()
	exp := x.MantExp(mant)
	m, _ := mant.Float64()
	y := floatOf(math.Log(m))
	for range 3 {
		e := exponential(y)
		step := newFloat().Quo(newFloat().Sub(mant, e), newFloat().Add(mant, e))
		y = y.Add(y, step.Mul(step, floatOf(2)))
	}
	return y.Add(y, newFloat().Mul(floatOf(float64(exp)), ln2()))
}

// sineCosine: |x| is at most maxAngle.
func sineCosine(x *big.Float) (sin, cos *big.Float) {
	quarter := newFloat().Quo(pi(), floatOf(2))
	k := nearest(newFloat().Quo(x, quarter))
	r := newFloat().Sub(x, newFloat().Mul(newFloat().SetInt(k), quarter))
	sin, cos = series(r, 1), series(r, 0)
	switch new(big.Int).And(k, big.NewInt(3)).Int64() {
	case 1:
		sin, cos = cos, sin.Neg(sin)
	case 2:
		sin.Neg(sin)
		cos.Neg(cos)
	case 3:
		sin, cos = cos.Neg(cos), sin
	}
	return sin, cos
}

// series is Σ (−1)^k r^n/n! over n = from, from + 2, …
func series(r *big.Float, from int) *big.Float {
	term := floatOf(1)
	if from == 1 {
		term = newFloat().Set(r)
	}
	sum, square := newFloat(), newFloat().Mul(r, r)
	for n := from; term.Sign() != 0 && term.MantExp(nil) > -precision-8; n += 2 {
		sum.Add(sum, term)
		term = newFloat().Quo(newFloat().Mul(term, square), floatOf(float64(-(n+1)*(n+2))))
	}
	return sum
}

// inverseTangent by halving the angle, atan x = 2·atan(x/(1 + √(1+x²))), and the series.
func inverseTangent(x *big.Float) *big.Float {
	one := floatOf(1)
	if x.Sign() != 0 && newFloat().Abs(x).Cmp(one) > 0 {
		rest := inverseTangent(newFloat().Quo(one, x))
		quarter := newFloat().Quo(pi(), floatOf(2))
		if x.Sign() < 0 {
			quarter.Neg(quarter)
		}
		return quarter.Sub(quarter, rest)
	}
	const halvings = 8
	r := newFloat().Set(x)
	for range halvings {
		root := newFloat().Sqrt(newFloat().Add(one, newFloat().Mul(r, r)))
		r = newFloat().Quo(r, root.Add(root, one))
	}
	sum, term, square := newFloat(), newFloat().Set(r), newFloat().Mul(r, r)
	for n := 1; term.Sign() != 0 && term.MantExp(nil) > -precision-8; n += 2 {
		sum.Add(sum, newFloat().Quo(term, floatOf(float64(n))))
		term = term.Neg(newFloat().Mul(term, square))
	}
	return sum.SetMantExp(sum, halvings)
}

// angle is the argument of a complex number other than 0, in (−π, π].
func angle(z value) *big.Float {
	re, im := z.re, z.im
	switch {
	case im.Sign() == 0 && re.Sign() < 0:
		return newFloat().Set(pi())
	case im.Sign() == 0:
		return newFloat()
	case re.Sign() == 0:
		half := newFloat().Quo(pi(), floatOf(2))
		if im.Sign() < 0 {
			half.Neg(half)
		}
		return half
	}
	a := inverseTangent(newFloat().Quo(im, re))
	switch {
	case re.Sign() > 0:
	case im.Sign() > 0:
		a.Add(a, pi())
	default:
		a.Sub(a, pi())
	}
	return a
}
