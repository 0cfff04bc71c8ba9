package answer

import "math/big"

// Bounds of arguments, so that no function takes long or loses all of its digits.
const (
	maxExponent  = 1e6
	maxAngleBits = 64
)

var imaginary = value{re: newFloat(), im: floatOf(1)}

// expOf is e^z.
func expOf(z value) (value, error) {
	if newFloat().Abs(z.re).Cmp(floatOf(maxExponent)) > 0 {
		return value{}, errTooBig
	}
	r := exponential(z.re)
	if z.im.Sign() == 0 {
		return real(r), nil
	}
	if z.im.MantExp(nil) > maxAngleBits {
		return value{}, errTooBig
	}
	sin, cos := sineCosine(z.im)
	return value{re: newFloat().Mul(r, cos), im: newFloat().Mul(r, sin)}, nil
}

// logOf is the principal logarithm.
func logOf(z value) (value, error) {
	if z.isZero() || z.isInfinite() {
		return value{}, errUnread
	}
	return value{re: logarithm(size(z)), im: angle(z)}, nil
}

// powerOf is the principal value of x^y.
func powerOf(x, y value) (value, error) {
	switch {
	case x.isInfinite() || y.isInfinite():
		return value{}, errUnread
	case x.isZero() && y.sign() > 0 && y.isReal():
		return whole(0).complex(), nil
	case y.isZero():
		return whole(1).complex(), nil
	}
	l, err := logOf(x)
	if err != nil {
		return value{}, err
	}
	return expOf(times(y, l))
}

func rootOf(z value) (value, error) {
	if z.isInfinite() {
		return value{}, errUnread
	}
	if z.im.Sign() == 0 {
		r := newFloat().Sqrt(newFloat().Abs(z.re))
		if z.re.Sign() < 0 {
			return value{re: newFloat(), im: r}, nil
		}
		return real(r), nil
	}
	return powerOf(z, value{re: floatOf(0.5), im: newFloat()})
}

// trigonometry is sin z and cos z, for complex z by their exponentials.
func trigonometry(z value) (sin, cos value, err error) {
	if z.im.Sign() == 0 {
		if z.isInfinite() || z.re.MantExp(nil) > maxAngleBits {
			return value{}, value{}, errTooBig
		}
		s, c := sineCosine(z.re)
		return real(s), real(c), nil
	}
	up, err := expOf(times(imaginary, z))
	if err != nil {
		return value{}, value{}, err
	}
	down, err := expOf(times(imaginary, z).negated())
	two := value{re: floatOf(2), im: newFloat()}
	return over(minusValue(up, down), times(two, imaginary)), over(plus(up, down), two), err
}

// hyperbolic is sinh z and cosh z.
func hyperbolic(z value) (sinh, cosh value, err error) {
	up, err := expOf(z)
	if err != nil {
		return value{}, value{}, err
	}
	down, err := expOf(z.negated())
	two := value{re: floatOf(2), im: newFloat()}
	return over(minusValue(up, down), two), over(plus(up, down), two), err
}

// arcsinOf is asin z: atan(z/√(1−z²)) for reals within ±1, else −i·ln(iz + √(1−z²)).
func arcsinOf(z value) (value, error) {
	one := value{re: floatOf(1), im: newFloat()}
	rest := minusValue(one, times(z, z))
	if z.isReal() && rest.re.Sign() == 0 {
		half := newFloat().Quo(pi(), floatOf(float64(2*z.re.Sign())))
		return real(half), nil
	}
	root, err := rootOf(rest)
	if err != nil {
		return value{}, err
	}
	if z.isReal() && rest.re.Sign() > 0 {
		return real(inverseTangent(newFloat().Quo(z.re, root.re))), nil
	}
	l, err := logOf(plus(times(imaginary, z), root))
	return times(imaginary, l).negated(), err
}

func arccosOf(z value) (value, error) {
	a, err := arcsinOf(z)
	if err != nil {
		return value{}, err
	}
	return minusValue(real(newFloat().Quo(pi(), floatOf(2))), a), nil
}

// arctanOf is atan z, for complex z (i/2)·(ln(1−iz) − ln(1+iz)).
func arctanOf(z value) (value, error) {
	if z.isInfinite() {
		return value{}, errUnread
	}
	if z.isReal() {
		return real(inverseTangent(z.re)), nil
	}
	one := value{re: floatOf(1), im: newFloat()}
	a, err := logOf(minusValue(one, times(imaginary, z)))
	if err != nil {
		return value{}, err
	}
	b, err := logOf(plus(one, times(imaginary, z)))
	return times(value{re: newFloat(), im: floatOf(0.5)}, minusValue(a, b)), err
}

// quotient is x/y, unreadable for a y of 0.
func quotient(x, y value, err error) (value, error) {
	if err != nil {
		return value{}, err
	}
	if y.isZero() {
		return value{}, errUnread
	}
	return over(x, y), nil
}

// exactRoot is the n-th root of k where it comes out.
func exactRoot(k *big.Int, n int) (*big.Int, bool) {
	if k.Sign() < 0 || n < 1 {
		return nil, false
	}
	if k.BitLen() <= 1 || n == 1 {
		return k, true
	}
	if n >= k.BitLen() {
		return nil, false // 2^n is above k
	}
	r := integerRoot(k, n)
	return r, new(big.Int).Exp(r, big.NewInt(int64(n)), nil).Cmp(k) == 0
}

// integerRoot is the whole part of the n-th root, by Newton's steps from above.
func integerRoot(k *big.Int, n int) *big.Int {
	if n == 2 {
		return new(big.Int).Sqrt(k)
	}
	m := big.NewInt(int64(n))
	less := big.NewInt(int64(n - 1))
	x := new(big.Int).Lsh(big.NewInt(1), uint((k.BitLen()+n-1)/n))
	for {
		y := new(big.Int).Quo(k, new(big.Int).Exp(x, less, nil))
		y.Add(y, new(big.Int).Mul(less, x))
		y.Quo(y, m)
		if y.Cmp(x) >= 0 {
			return x
		}
		x = y
	}
}

// exactRootOf is the n-th root of x >= 0 where numerator and denominator have one.
func exactRootOf(x *big.Rat, n int) (*big.Rat, bool) {
	p, ok := exactRoot(x.Num(), n)
	if !ok {
		return nil, false
	}
	q, ok := exactRoot(x.Denom(), n)
	if !ok {
		return nil, false
	}
	return new(big.Rat).SetFrac(p, q), true
}
