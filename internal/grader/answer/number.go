package answer

import "math/big"

// precision of what is not rational, in bits: 60 decimal digits and as many again for what cancels.
const precision = 400

// value is a number: exact where rat is not nil, else re + im·i. Infinities have an infinite re and an im of 0.
type value struct {
	rat    *big.Rat
	re, im *big.Float
}

func newFloat() *big.Float { return new(big.Float).SetPrec(precision) }

func floatOf(x float64) *big.Float { return newFloat().SetFloat64(x) }

func exact(x *big.Rat) value { return value{rat: x} }

func whole(n int64) value { return exact(big.NewRat(n, 1)) }

func real(x *big.Float) value { return value{re: x, im: newFloat()} }

// floats is v as two floats.
func (v value) floats() (re, im *big.Float) {
	if v.rat != nil {
		return newFloat().SetRat(v.rat), newFloat()
	}
	return v.re, v.im
}

func (v value) complex() value {
	re, im := v.floats()
	return value{re: re, im: im}
}

func (v value) sign() int {
	if v.rat != nil {
		return v.rat.Sign()
	}
	return v.re.Sign()
}

func (v value) isZero() bool {
	if v.rat != nil {
		return v.rat.Sign() == 0
	}
	return v.re.Sign() == 0 && v.im.Sign() == 0
}

func (v value) isReal() bool { return v.rat != nil || v.im.Sign() == 0 }

func (v value) isInfinite() bool { return v.rat == nil && v.re.IsInf() }

// integer is v where it is a whole number.
func (v value) integer() (*big.Int, bool) {
	if v.rat == nil || !v.rat.IsInt() {
		return nil, false
	}
	return v.rat.Num(), true
}

func bits(x *big.Rat) int { return max(x.Num().BitLen(), x.Denom().BitLen()) }

func (v value) negated() value {
	if v.rat != nil {
		return exact(new(big.Rat).Neg(v.rat))
	}
	return value{re: newFloat().Neg(v.re), im: newFloat().Neg(v.im)}
}

// arithmetic of floats; x and y are complex.
func plus(x, y value) value {
	return value{re: newFloat().Add(x.re, y.re), im: newFloat().Add(x.im, y.im)}
}

func minusValue(x, y value) value {
	return value{re: newFloat().Sub(x.re, y.re), im: newFloat().Sub(x.im, y.im)}
}

func times(x, y value) value {
	if x.im.Sign() == 0 && y.im.Sign() == 0 {
		return real(newFloat().Mul(x.re, y.re))
	}
	return value{
		re: newFloat().Sub(newFloat().Mul(x.re, y.re), newFloat().Mul(x.im, y.im)),
		im: newFloat().Add(newFloat().Mul(x.re, y.im), newFloat().Mul(x.im, y.re)),
	}
}

func over(x, y value) value {
	if x.im.Sign() == 0 && y.im.Sign() == 0 {
		return real(newFloat().Quo(x.re, y.re))
	}
	d := newFloat().Add(newFloat().Mul(y.re, y.re), newFloat().Mul(y.im, y.im))
	n := times(x, value{re: y.re, im: newFloat().Neg(y.im)})
	return value{re: newFloat().Quo(n.re, d), im: newFloat().Quo(n.im, d)}
}

// size is the absolute value of a complex number.
func size(x value) *big.Float {
	if x.im.Sign() == 0 {
		return newFloat().Abs(x.re)
	}
	return newFloat().Sqrt(newFloat().Add(newFloat().Mul(x.re, x.re), newFloat().Mul(x.im, x.im)))
}

// tolerance is 1e-40.
var tolerance = newFloat().Quo(floatOf(1), newFloat().SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(40), nil)))

// same compares exactly where both are exact, else to 40 digits of the larger, and of 1e-40 near 0.
func same(x, y value) bool {
	if x.rat != nil && y.rat != nil {
		return x.rat.Cmp(y.rat) == 0
	}
	x, y = x.complex(), y.complex()
	if x.isInfinite() || y.isInfinite() {
		return x.isInfinite() && y.isInfinite() && x.sign() == y.sign()
	}
	largest := tolerance
	for _, s := range []*big.Float{size(x), size(y)} {
		if s.Cmp(largest) > 0 {
			largest = s
		}
	}
	return size(minusValue(x, y)).Cmp(newFloat().Mul(tolerance, largest)) <= 0
}
