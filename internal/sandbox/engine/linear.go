package engine

import (
	"trainer/internal/sandbox/engine/kernel"
)

// linear is y = x·W + scale (x·A)·B. W is [in][out], wT its transpose; A·B is absent where rank is 0.
type linear struct {
	in, out int
	w, wT   []float32
	off     int  // of W's gradient
	trained bool // W has a gradient
	tied    bool // the gradient is of wT: the head shares its rows with the input table
	pair
	scale  float32
	module uint64 // which of the model's linear maps this is
}

func (l *linear) adapt(p pair, lora *LoRA) {
	l.pair, l.scale = p, float32(lora.Alpha/float64(lora.Rank))
}

// forward sets y [n][out] and returns scale·x·A for backward; nil without an adapter. The pair's input is what d leaves of x.
func (l *linear) forward(y, x []float32, n int, d dropping, mem *arena) (z []float32) {
	kernel.Mul(kernel.Rows(y, l.out), kernel.Rows(x, l.in), kernel.Rows(l.w, l.out), n, l.out, l.in, false)
	if l.rank == 0 {
		return nil
	}
	z = mem.take(n * l.rank)
	mark := mem.mark()
	x = d.thinned(x, n, l.in, mem)
	kernel.Mul(kernel.Rows(z, l.rank), kernel.Rows(x, l.in), kernel.Rows(l.a.w, l.rank), n, l.rank, l.in, false)
	mem.release(mark)
	kernel.Scale(z, l.scale)
	kernel.Mul(kernel.Rows(y, l.out), kernel.Rows(z, l.rank), kernel.Rows(l.b.w, l.out), n, l.out, l.rank, true)
	return z
}

// backward sets dx [n][in], or adds to it, and adds the gradient of the weights to g; dx is nil where nobody needs it. z is
// what forward returned, d what it was given.
func (l *linear) backward(dx, dy, x, z []float32, n int, d dropping, g []float32, add bool, mem *arena) {
	dyv, xv := kernel.Rows(dy, l.out), kernel.Rows(x, l.in)
	if dx != nil {
		kernel.Mul(kernel.Rows(dx, l.in), dyv, kernel.Rows(l.wT, l.in), n, l.in, l.out, add)
	}
	switch {
	case l.trained && l.tied:
		kernel.Mul(kernel.Rows(g[l.off:], l.in), dyv.T(), xv, l.out, l.in, n, true)
	case l.trained:
		kernel.Mul(kernel.Rows(g[l.off:], l.out), xv.T(), dyv, l.in, l.out, n, true)
	}
	if l.rank == 0 {
		return
	}
	kernel.Mul(kernel.Rows(g[l.b.off:], l.out), kernel.Rows(z, l.rank).T(), dyv, l.rank, l.out, n, true)
	dz := mem.take(n * l.rank)
	dzv := kernel.Rows(dz, l.rank)
	kernel.Mul(dzv, dyv, kernel.Rows(l.b.wT, l.rank), n, l.rank, l.out, false)
	kernel.Scale(dz, l.scale)
	kept := d.thinned(x, n, l.in, mem)
	kernel.Mul(kernel.Rows(g[l.a.off:], l.rank), kernel.Rows(kept, l.in).T(), dzv, l.in, l.rank, n, true)
	if dx != nil {
		d.addThinned(dx, dz, l.a.wT, n, l.in, l.rank, mem)
	}
}
