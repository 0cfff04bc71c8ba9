package kernel

import "math"

// NormEpsilon is added to the mean square before its root.
const NormEpsilon = 1e-5

// Norm sets y to x divided by its root mean square, times the gain g, and returns the factor 1/rms.
// Source: Zhang and Sennrich 2019 (arXiv 1910.07467), with an epsilon as Llama has it.
func Norm(y, x, g []float32) (r float32) {
	x, g = x[:len(y)], g[:len(y)]
	r = float32(1 / math.Sqrt(float64(Dot(x, x)/float32(len(x))+NormEpsilon)))
	i := 0
	if vectors() && len(y) >= 8 {
		i = len(y) &^ 7
		normAVX2(i, &y[0], &x[0], &g[0], r)
	}
	for ; i < len(y); i++ {
		y[i] = float32(x[i]*r) * g[i]
	}
	return r
}

// NormBack adds the derivative by x to dx and, where dg is not nil, the derivative by the gain to dg; dy is the derivative
// by the result of Norm, r what it returned.
func NormBack(dx, dg, dy, x, g []float32, r float32) {
	dy, x, g = dy[:len(dx)], x[:len(dx)], g[:len(dx)]
	s := float32(dot3(dy, g, x)*r) / float32(len(dx))
	i := 0
	if vectors() && len(dx) >= 8 {
		i = len(dx) &^ 7
		normBackAVX2(i, &dx[0], &dy[0], &x[0], &g[0], r, s)
	}
	for ; i < len(dx); i++ {
		dx[i] += float32(r * (float32(dy[i]*g[i]) - float32(float32(x[i]*r)*s)))
	}
	if dg == nil {
		return
	}
	dg = dg[:len(dx)]
	i = 0
	if vectors() && len(dx) >= 8 {
		i = len(dx) &^ 7
		gainBackAVX2(i, &dg[0], &dy[0], &x[0], r)
	}
	for ; i < len(dg); i++ {
		dg[i] += float32(dy[i] * float32(x[i]*r))
	}
}

// Rotate turns the pairs (a[i], b[i]) by the angles of cos and sin, backwards with sign -1.
func Rotate(a, b, cos, sin []float32, sign float32) {
	b, cos, sin = b[:len(a)], cos[:len(a)], sin[:len(a)]
	i := 0
	if vectors() && len(a) >= 8 {
		i = len(a) &^ 7
		rotateAVX2(i, &a[0], &b[0], &cos[0], &sin[0], sign)
	}
	for ; i < len(a); i++ {
		x, y, c, s := a[i], b[i], cos[i], sin[i]*sign
		a[i] = float32(x*c) - float32(y*s)
		b[i] = float32(y*c) + float32(x*s)
	}
}

// SwiGLU sets h to silu(g)·u. Source: Shazeer 2020 (arXiv 2002.05202).
func SwiGLU(h, g, u []float32) {
	g, u = g[:len(h)], u[:len(h)]
	i := 0
	if vectors() && len(h) >= 8 {
		i = len(h) &^ 7
		swigluAVX2(i, &h[0], &g[0], &u[0])
	}
	for ; i < len(h); i++ {
		h[i] = float32(g[i]/(1+Exp(-g[i]))) * u[i]
	}
}

// SwiGLUBack sets dg and du to the derivatives by g and u; dh is the derivative by the result of SwiGLU.
func SwiGLUBack(dg, du, dh, g, u []float32) {
	du, dh, g, u = du[:len(dg)], dh[:len(dg)], g[:len(dg)], u[:len(dg)]
	i := 0
	if vectors() && len(dg) >= 8 {
		i = len(dg) &^ 7
		swigluBackAVX2(i, &dg[0], &du[0], &dh[0], &g[0], &u[0])
	}
	for ; i < len(dg); i++ {
		sigmoid := 1 / (1 + Exp(-g[i]))
		silu := float32(g[i] * sigmoid)
		slope := sigmoid + float32(silu*(1-sigmoid))
		du[i] = float32(dh[i] * silu)
		dg[i] = float32(float32(dh[i]*u[i]) * slope)
	}
}

// Softmax replaces p, which is not empty, by the softmax of a·p, a > 0.
func Softmax(p []float32, a float32) {
	if vectors() {
		softmaxAVX2(len(p), &p[0], a)
		return
	}
	ExpScaled(p, p, a, float32(Max(p)*a))
	Scale(p, 1/Sum(p))
}

// SoftmaxBack replaces d, the derivative by p = Softmax(x, a), by the derivative by x.
func SoftmaxBack(d, p []float32, a float32) {
	p = p[:len(d)]
	s := Dot(p, d)
	i := 0
	if vectors() && len(d) >= 8 {
		i = len(d) &^ 7
		softBackAVX2(i, &d[0], &p[0], s, a)
	}
	for ; i < len(d); i++ {
		d[i] = float32(float32(p[i]*(d[i]-s)) * a)
	}
}

// LogSumExp returns the logarithm of the sum of exp(x[i]) and leaves scratch in x, which is not empty.
func LogSumExp(x []float32) float32 {
	m := Max(x)
	ExpScaled(x, x, 1, m)
	return m + float32(Log(float64(Sum(x))))
}

// AdamStep holds the numbers of one Adam step: those that the assembly reads, in this order.
type AdamStep struct {
	Clip          float32 // factor of the gradient
	Keep1, Take1  float32 // beta1, 1-beta1
	Keep2, Take2  float32 // beta2, 1-beta2
	Fix1, Fix2    float32 // 1/(1-beta1^t), 1/(1-beta2^t)
	Epsilon, Rate float32
	Decay         float32 // decoupled weight decay
}

// Adam moves the parameters p and the moments m and v by one step along the gradient g.
// Source: Kingma and Ba 2015 (arXiv 1412.6980), Loshchilov and Hutter 2019 (arXiv 1711.05101).
func Adam(p, m, v, g []float32, s AdamStep) {
	m, v, g = m[:len(p)], v[:len(p)], g[:len(p)]
	i := 0
	if vectors() && len(p) >= 8 {
		i = len(p) &^ 7
		adamAVX2(i, &p[0], &m[0], &v[0], &g[0], &s)
	}
	for ; i < len(p); i++ {
		x := float32(g[i] * s.Clip)
		m[i] = float32(m[i]*s.Keep1) + float32(x*s.Take1)
		v[i] = float32(v[i]*s.Keep2) + float32(float32(x*s.Take2)*x)
		root := float32(math.Sqrt(float64(float32(v[i]*s.Fix2)))) + s.Epsilon
		move := float32(float32(m[i]*s.Fix1)/root) + float32(p[i]*s.Decay)
		p[i] -= float32(move * s.Rate)
	}
}
