package kernel

import "math"

// Every function here works on slices of one length, that of its first argument, does its vector part in the current mode
// and the rest in Go. All are safe for concurrent use on different outputs.

// expMost bounds the argument of Exp on both sides: enough for a softmax and a sigmoid in float32, and far enough from the
// smallest normal numbers that products of the results with gradients do not become subnormal, which processors are a
// hundred times slower with.
const expMost = 40

// Exp returns e to the power x with a relative error below 3e-7: zero for x below -40, e^40 for x above 40.
// Source: Cephes expf, with a Taylor polynomial of degree 6.
func Exp(x float32) float32 {
	if x < -expMost {
		return 0
	}
	if x > expMost {
		x = expMost
	}
	const round = 12582912 // adding it leaves the nearest integer in the low bits
	biased := float32(x*math.Log2E) + round
	n := biased - round
	r := x - float32(n*0.693359375)
	r += float32(n * 2.12194440e-4)
	p := float32(r*(1.0/720)) + 1.0/120
	p = float32(p*r) + 1.0/24
	p = float32(p*r) + 1.0/6
	p = float32(p*r) + 0.5
	p = float32(p*r) + 1
	p = float32(p*r) + 1
	return math.Float32frombits(math.Float32bits(p) + math.Float32bits(biased)<<23)
}

// ExpScaled sets y[i] to Exp(x[i]*a - m); y may be x.
func ExpScaled(y, x []float32, a, m float32) {
	x = x[:len(y)]
	i := 0
	if vectors() && len(y) >= 8 {
		i = len(y) &^ 7
		expAVX2(i, &y[0], &x[0], a, m)
	}
	for ; i < len(y); i++ {
		y[i] = Exp(float32(x[i]*a) - m)
	}
}

// Add adds x to y.
func Add(y, x []float32) {
	x = x[:len(y)]
	i := 0
	if vectors() && len(y) >= 8 {
		i = len(y) &^ 7
		addAVX2(i, &y[0], &x[0])
	}
	for ; i < len(y); i++ {
		y[i] += x[i]
	}
}

// Scale multiplies y by a.
func Scale(y []float32, a float32) {
	i := 0
	if vectors() && len(y) >= 8 {
		i = len(y) &^ 7
		scaleAVX2(i, &y[0], a)
	}
	for ; i < len(y); i++ {
		y[i] *= a
	}
}

// Max returns the largest element of x, which is not empty and holds no NaN.
func Max(x []float32) float32 {
	i, m := 0, x[0]
	if vectors() && len(x) >= 16 {
		var lanes [16]float32
		i = len(x) &^ 15
		highestAVX2(i, &lanes[0], &x[0])
		for _, l := range lanes {
			m = max(m, l)
		}
	}
	for ; i < len(x); i++ {
		m = max(m, x[i])
	}
	return m
}

// fold adds sixteen partial sums in the one fixed order.
func fold(l *[16]float32) float32 {
	for w := 8; w > 0; w /= 2 {
		for i := range w {
			l[i] += l[i+w]
		}
	}
	return l[0]
}

// Sum returns the sum of x: sixteen interleaved partial sums, folded.
func Sum(x []float32) float32 {
	var lanes [16]float32
	i := 0
	if vectors() && len(x) >= 16 {
		i = len(x) &^ 15
		sumAVX2(i, &lanes[0], &x[0])
	}
	for ; i < len(x); i++ {
		lanes[i&15] += x[i]
	}
	return fold(&lanes)
}

// Dot returns the sum of x[i]*y[i] in the order of Sum.
func Dot(x, y []float32) float32 {
	y = y[:len(x)]
	var lanes [16]float32
	i := 0
	if vectors() && len(x) >= 16 {
		i = len(x) &^ 15
		dotAVX2(i, &lanes[0], &x[0], &y[0])
	}
	for ; i < len(x); i++ {
		lanes[i&15] += float32(x[i] * y[i])
	}
	return fold(&lanes)
}

// dot3 returns the sum of (x[i]*y[i])*z[i] in the order of Sum.
func dot3(x, y, z []float32) float32 {
	y, z = y[:len(x)], z[:len(x)]
	var lanes [16]float32
	i := 0
	if vectors() && len(x) >= 16 {
		i = len(x) &^ 15
		dot3AVX2(i, &lanes[0], &x[0], &y[0], &z[0])
	}
	for ; i < len(x); i++ {
		lanes[i&15] += float32(float32(x[i]*y[i]) * z[i])
	}
	return fold(&lanes)
}
