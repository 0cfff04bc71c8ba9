package loss

import "math"

// exp returns e to the power x, correct to about 1e-15 relative, 0 and +Inf beyond the doubles. It is not the standard
// library's, whose last bits differ between processors: the sandbox's weights are the same on all of them.
// Source: x = n ln 2 + r, |r| <= ln 2 / 2, and the Taylor series of e^r.
func exp(x float64) float64 {
	const (
		high = 6.93147180369123816490e-01 // ln 2 with 32 trailing zero bits, so that n*high is exact
		low  = 1.90821492927058770002e-10 // the rest of it
	)
	switch {
	case math.IsNaN(x):
		return x
	case x > 710:
		return math.Inf(1)
	case x < -746:
		return 0
	}
	n := math.Floor(float64(x*math.Log2E) + 0.5)
	r := x - float64(n*high)
	r -= float64(n * low)
	p := 1.0
	for k := 14; k >= 1; k-- {
		p = float64(p*r)/float64(k) + 1
	}
	return math.Ldexp(p, int(n))
}

// k3 is the estimator e^x − x − 1 >= 0 of a KL divergence from the log-ratio x of one sample.
// Source: Schulman 2020, Approximating KL divergence.
func k3(x float64) float64 { return exp(x) - x - 1 }

// sigmoid is 1 / (1 + e^−x), without overflow on either side.
func sigmoid(x float64) float64 {
	if x >= 0 {
		return 1 / (1 + exp(-x))
	}
	e := exp(x)
	return e / (1 + e)
}

// logSigmoid is log sigmoid(x), without the cancellation of log(1 / (1 + …)) on either side.
func logSigmoid(x float64) float64 {
	if x >= 0 {
		return -math.Log1p(exp(-x))
	}
	return x - math.Log1p(exp(x))
}

func clamp(x, low, high float64) float64 { return max(low, min(x, high)) }
