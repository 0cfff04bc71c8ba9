package kernel

import "math"

// Log returns the natural logarithm of a positive finite x, correct to about 1e-15 relative to max(1, |log x|).
// Source: log x = e ln 2 + 2 artanh((f-1)/(f+1)) for x = f 2^e, f in [1/√2, √2).
func Log(x float64) float64 {
	f, e := math.Frexp(x)
	if f < math.Sqrt2/2 {
		f *= 2
		e--
	}
	s := (f - 1) / (f + 1)
	z := float64(s * s)
	p := 0.0
	for k := 25; k >= 1; k -= 2 {
		p = float64(p*z) + 1/float64(k)
	}
	return float64(float64(2*s)*p) + float64(float64(e)*math.Ln2)
}

// Exp64 returns e to the power x for |x| <= 700, correct to about 1e-15 relative.
// Source: x = n ln 2 + r, |r| <= ln 2 / 2, and the Taylor series of e^r.
func Exp64(x float64) float64 {
	const (
		high = 6.93147180369123816490e-01 // ln 2 with 32 trailing zero bits, so that n*high is exact
		low  = 1.90821492927058770002e-10 // the rest of it
	)
	n := math.Floor(float64(x*math.Log2E) + 0.5)
	r := x - float64(n*high)
	r -= float64(n * low)
	p := 1.0
	for k := 14; k >= 1; k-- {
		p = float64(p*r)/float64(k) + 1
	}
	return math.Ldexp(p, int(n))
}

// SinCos returns sine and cosine of 2π·turns, correct to about 1e-15. The angle is a share of the circle because its whole
// turns and quadrants then come off without rounding. Source: Taylor series within an eighth of a turn.
func SinCos(turns float64) (sin, cos float64) {
	turns -= math.Floor(turns)
	q := math.Floor(float64(turns*4) + 0.5)
	x := float64((turns - q/4) * (2 * math.Pi))
	z := float64(x * x)
	s, c := 1.0, 1.0
	for k := 18; k >= 2; k -= 2 {
		s = 1 - float64(s*z)/float64(k*(k+1))
		c = 1 - float64(c*z)/float64(k*(k-1))
	}
	s = float64(s * x)
	switch int(q) & 3 {
	case 1:
		return c, -s
	case 2:
		return -s, -c
	case 3:
		return -c, s
	}
	return s, c
}

// Power returns b to the power n, n >= 0, by repeated squaring.
func Power(b float64, n int64) float64 {
	p := 1.0
	for ; n > 0; n >>= 1 {
		if n&1 == 1 {
			p = float64(p * b)
		}
		b = float64(b * b)
	}
	return p
}
