package engine

import (
	"math"

	"trainer/internal/sandbox/engine/kernel"
)

// Muon holds the numbers of one step of Muon. It moves the matrices of the layers: projections in full training, both halves
// of their pairs in LoRA. Tables, gains and the pairs of the head go to Adam, whose ClipNorm is not used.
//
// Momentum is Nesterov's; the update is orthogonalised by Steps rounds of the quintic Newton-Schulz iteration with the
// coefficients 3.4445, -4.7750, 2.0315. Source: Jordan et al. 2024, "Muon: An optimizer for hidden layers in neural
// networks". A model keeps the momentum where Adam has its first moment, so a session uses one of the two for its life.
type Muon struct {
	Rate, Momentum float64
	Steps          int
	WeightDecay    float64 // decoupled: the weights shrink by Rate·WeightDecay
	ClipNorm       float64 // the whole gradient, Adam's part too, is scaled down to this norm; 0 leaves it as it is
	Original       bool    // the update's size: see scale
	Adam           Adam
}

// scale is the factor of an orthogonal update of a matrix [in][out]. Original is sqrt(max(1, out/in)), as Jordan et al. have
// it; else it is 0.2·sqrt(max(in, out)), which gives it the root mean square of Adam's. Source of the second: Liu et al.
// 2025 (arXiv 2502.16982), equation 4.
func (mu *Muon) scale(in, out int) float64 {
	if mu.Original {
		return math.Sqrt(max(1, float64(out)/float64(in)))
	}
	return float64(0.2 * math.Sqrt(float64(max(in, out))))
}

// muonOwns says which tensors Muon moves: the matrices of layers are those that files hold the other way round, and the
// head's pairs are no layer's.
func (m *Model) muonOwns(s span) bool {
	if !s.swap {
		return false
	}
	for _, p := range m.headPairs() {
		if s.off == p.a.off || s.off == p.b.off {
			return false
		}
	}
	return true
}

func (m *Model) headPairs() []pair {
	if m.adapter == nil {
		return nil
	}
	return m.adapter.heads
}

// StepMuon is Step with Muon.
func (m *Model) StepMuon(mu Muon) (gradNorm float64) {
	gradNorm = m.gradNorm()
	clip := clipTo(mu.ClipNorm, gradNorm)
	m.steps++
	adam := m.adamStep(mu.Adam, clip)
	spread(len(m.spans), func(from, to int) {
		for _, s := range m.spans[from:to] {
			end := s.off + s.size()
			if m.muonOwns(s) {
				mu.move(m.params[s.off:end], m.m[s.off:end], m.grad[s.off:end], s, float32(clip))
			} else {
				kernel.Adam(m.params[s.off:end], m.m[s.off:end], m.v[s.off:end], m.grad[s.off:end], adam)
			}
		}
	})
	m.ClearGradient()
	m.refresh()
	return gradNorm
}

// move takes one step with the matrix p [rows][cols] and its momentum along the gradient g.
func (mu *Muon) move(p, momentum, g []float32, s span, clip float32) {
	keep := float32(mu.Momentum)
	update := make([]float32, len(p))
	for i, x := range g {
		x = float32(x * clip)
		momentum[i] = float32(momentum[i]*keep) + x
		update[i] = x + float32(momentum[i]*keep)
	}
	rows, cols := s.rows, s.cols
	tall := rows > cols
	if tall { // the iteration multiplies from the side that is shorter
		wide := make([]float32, len(p))
		kernel.Transpose(wide, update, rows, cols)
		update, rows, cols = wide, cols, rows
	}
	orthogonalise(update, rows, cols, mu.Steps)
	if tall {
		back := make([]float32, len(p))
		kernel.Transpose(back, update, rows, cols)
		update = back
	}
	rate, decay := float32(mu.Rate*mu.scale(s.keepRows, s.keepCols)), float32(mu.Rate*mu.WeightDecay)
	for i := range p {
		p[i] -= float32(p[i]*decay) + float32(update[i]*rate)
	}
}

// orthogonalise replaces x [rows][cols] by about the nearest matrix whose singular values are 1. Rows and columns of zeros
// stay.
func orthogonalise(x []float32, rows, cols, steps int) {
	const a, b, c = 3.4445, -4.7750, 2.0315
	kernel.Scale(x, float32(1/(frobenius(x)+1e-7)))
	xt, y := make([]float32, len(x)), make([]float32, len(x))
	gram, poly := make([]float32, rows*rows), make([]float32, rows*rows)
	wide, square := kernel.Rows(x, cols), kernel.Rows(gram, rows)
	for range steps {
		kernel.Transpose(xt, x, rows, cols)
		kernel.Mul(square, wide, kernel.Rows(xt, rows), rows, rows, cols, false)
		kernel.Mul(kernel.Rows(poly, rows), square, square, rows, rows, rows, false)
		for i, g := range gram {
			poly[i] = float32(b*g) + float32(c*poly[i])
		}
		kernel.Mul(kernel.Rows(y, cols), kernel.Rows(poly, rows), wide, rows, cols, rows, false)
		for i := range x {
			x[i] = float32(a*x[i]) + y[i]
		}
	}
}

// frobenius adds float32 sums of fixed blocks in float64.
func frobenius(x []float32) float64 {
	sum := 0.0
	for len(x) > 0 {
		n := min(4096, len(x))
		sum += float64(kernel.Dot(x[:n], x[:n]))
		x = x[n:]
	}
	return math.Sqrt(sum)
}
