package main

import "fmt"

// steps writes the element-wise functions; vector.go and layer.go have the same arithmetic in Go.
func (f *file) steps() {
	f.exponential()
	f.simple()
	f.sums()
	f.softmax()
	f.norms()
	f.gates()
	f.adam()
}

func (f *file) exponential() {
	l := f.each("expAVX2", "y x", "a m")
	t1, t2 := l.fresh(), l.fresh()
	l.start()
	x := l.load("x", 0)
	l.op("mul", x, x, l.scalars["a"])
	l.op("sub", x, x, l.scalars["m"])
	l.exp(x, t1, t2)
	l.store("y", 0, x)
	l.end(8)
}

func (f *file) simple() {
	turn := f.each("rotateAVX2", "a b cos sin", "sign")
	turn.start()
	p, q, cos, sin := turn.load("a", 0), turn.load("b", 0), turn.load("cos", 0), turn.load("sin", 0)
	turn.op("mul", sin, sin, turn.scalars["sign"])
	r, s := turn.op("mul", "", p, cos), turn.op("mul", "", q, sin)
	turn.store("a", 0, turn.op("sub", r, r, s))
	turn.op("mul", q, q, cos)
	turn.op("mul", p, p, sin)
	turn.store("b", 0, turn.op("add", q, q, p))
	turn.end(8)

	l := f.each("addAVX2", "y x", "")
	l.start()
	y, x := l.load("y", 0), l.load("x", 0)
	l.op("add", y, y, x)
	l.store("y", 0, y)
	l.end(8)

	l = f.each("scaleAVX2", "y", "a")
	l.start()
	y = l.load("y", 0)
	l.op("mul", y, y, l.scalars["a"])
	l.store("y", 0, y)
	l.end(8)

	l = f.each("softBackAVX2", "d p", "s a")
	l.start()
	d, p := l.load("d", 0), l.load("p", 0)
	l.op("sub", d, d, l.scalars["s"])
	l.op("mul", d, p, d)
	l.op("mul", d, d, l.scalars["a"])
	l.store("d", 0, d)
	l.end(8)
}

// sums writes what reduces: two registers hold sixteen lanes, stored at the end for the caller to fold.
func (f *file) sums() {
	for _, s := range []struct{ name, pointers, op string }{
		{"highestAVX2", "lanes x", "max"}, {"sumAVX2", "lanes x", "add"},
		{"dotAVX2", "lanes x y", "add"}, {"dot3AVX2", "lanes x y z", "add"},
	} {
		l := f.each(s.name, s.pointers, "")
		acc := []string{l.fresh(), l.fresh()}
		for i, a := range acc {
			if s.op == "max" {
				f.line("VMOVUPS %s, %s", l.at("x", i*32), a)
			} else {
				f.line("VXORPS %s, %s, %s", a, a, a)
			}
		}
		l.start()
		for i, a := range acc {
			x := l.load("x", i*32)
			for _, p := range l.pointers[2:] {
				l.op("mul", x, x, l.load(p, i*32))
			}
			l.op(s.op, a, a, x)
		}
		l.again(16, "lanes")
		for i, a := range acc {
			l.store("lanes", i*32, a)
		}
		f.end()
	}
}

// softmax goes three times over the row: for the maximum, the exponentials with their sum, the division. The last vector is
// masked, so that no row has a rest to be done in Go.
func (f *file) softmax() {
	f.begin("softmaxAVX2", "n int, p *float32, a float32", 20)
	l := &loop{f: f, pointers: []string{"p"}}
	a, highest, mask, even, odd := l.fresh(), l.fresh(), l.fresh(), l.fresh(), l.fresh()
	t1, t2, x := l.fresh(), l.fresh(), l.fresh()
	first := x
	f.line("MOVQ p+8(FP), DI")
	f.line("VBROADCASTSS a+16(FP), %s", a)
	f.line("VBROADCASTSS (DI), %s", first)
	f.line("VMOVAPS %s, %s", first, highest)
	f.overRow("max", mask, func() {
		l.op("max", highest, highest, l.at("p", 0))
	}, func() {
		f.line("VMASKMOVPS %s, %s, %s", l.at("p", 0), mask, t1)
		f.line("VBLENDVPS %s, %s, %s, %s", mask, t1, first, t1)
		l.op("max", highest, highest, t1)
	})
	for _, swap := range []string{"VPERM2F128 $1, %[1]s, %[1]s, %[2]s", "VPERMILPS $0x4e, %[1]s, %[2]s", "VPERMILPS $0xb1, %[1]s, %[2]s"} {
		f.line(swap, highest, t1)
		l.op("max", highest, highest, t1)
	}
	l.op("mul", highest, highest, a)
	for _, sum := range []string{even, odd} {
		f.line("VXORPS %s, %s, %s", sum, sum, sum)
	}
	next := func() { // the vector after this one adds to the other sum
		f.line("VMOVAPS %s, %s", even, t1)
		f.line("VMOVAPS %s, %s", odd, even)
		f.line("VMOVAPS %s, %s", t1, odd)
	}
	exp := func() {
		l.op("mul", x, x, a)
		l.op("sub", x, x, highest)
		l.exp(x, t1, t2)
	}
	f.overRow("exp", mask, func() {
		f.line("VMOVUPS %s, %s", l.at("p", 0), x)
		exp()
		l.store("p", 0, x)
		l.op("add", even, even, x)
		next()
	}, func() {
		f.line("VMASKMOVPS %s, %s, %s", l.at("p", 0), mask, x)
		exp()
		f.line("VANDPS %s, %s, %s", mask, x, x)
		f.line("VMASKMOVPS %s, %s, %s", x, mask, l.at("p", 0))
		l.op("add", even, even, x)
	})
	l.op("add", even, even, odd) // in either order: the same sums
	f.fold(even, t1)
	one := t2
	f.line("VMOVUPS %s, %s", f.constant(1), one)
	l.op("div", even, one, even)
	f.line("VBROADCASTSS X%s, %s", even[1:], even)
	f.overRow("scale", mask, func() {
		l.op("mul", x, even, l.at("p", 0))
		l.store("p", 0, x)
	}, func() {
		f.line("VMASKMOVPS %s, %s, %s", l.at("p", 0), mask, x)
		l.op("mul", x, even, x)
		f.line("VMASKMOVPS %s, %s, %s", x, mask, l.at("p", 0))
	})
	f.end()
}

// overRow runs whole on every full vector of the row at p, then rest on what is left of it, under the mask.
func (f *file) overRow(name, mask string, whole, rest func()) {
	f.line("MOVQ n+0(FP), CX")
	f.line("MOVQ p+8(FP), DI")
	f.line("SUBQ $8, CX")
	f.line("JLT %sRest", name)
	f.text.WriteString(name + ":\n")
	whole()
	f.line("ADDQ $32, DI")
	f.line("SUBQ $8, CX")
	f.line("JGE %s", name)
	f.text.WriteString(name + "Rest:\n")
	f.line("ADDQ $8, CX")
	f.line("JZ %sDone", name)
	f.line("LEAQ ·masks+32(SB), BX")
	f.line("SHLQ $2, CX")
	f.line("SUBQ CX, BX")
	f.line("VMOVUPS (BX), %s", mask)
	rest()
	f.text.WriteString(name + "Done:\n")
}

// fold adds the lanes of sum in the order of the Go function fold, whose first round is done.
func (f *file) fold(sum, t string) {
	x, y := "X"+sum[1:], "X"+t[1:]
	f.line("VEXTRACTF128 $1, %s, %s", sum, y)
	f.line("VADDPS %s, %s, %s", y, x, x)
	f.line("VPERMILPS $0x4e, %s, %s", x, y)
	f.line("VADDPS %s, %s, %s", y, x, x)
	f.line("VPERMILPS $0xb1, %s, %s", x, y)
	f.line("VADDPS %s, %s, %s", y, x, x)
}

func (f *file) norms() {
	l := f.each("normAVX2", "y x gain", "r")
	l.start()
	x := l.load("x", 0)
	l.op("mul", x, x, l.scalars["r"])
	l.op("mul", x, x, l.load("gain", 0))
	l.store("y", 0, x)
	l.end(8)

	l = f.each("normBackAVX2", "dx dy x gain", "r s")
	l.start()
	dy, x := l.load("dy", 0), l.load("x", 0)
	l.op("mul", dy, dy, l.load("gain", 0))
	l.op("mul", x, x, l.scalars["r"])
	l.op("mul", x, x, l.scalars["s"])
	l.op("sub", dy, dy, x)
	l.op("mul", dy, dy, l.scalars["r"])
	dx := l.load("dx", 0)
	l.op("add", dx, dx, dy)
	l.store("dx", 0, dx)
	l.end(8)

	l = f.each("gainBackAVX2", "dg dy x", "r")
	l.start()
	x = l.load("x", 0)
	l.op("mul", x, x, l.scalars["r"])
	l.op("mul", x, x, l.load("dy", 0))
	dg := l.load("dg", 0)
	l.op("add", dg, dg, x)
	l.store("dg", 0, dg)
	l.end(8)
}

func (f *file) gates() {
	l := f.each("swigluAVX2", "h gate up", "")
	e, t1, t2 := l.fresh(), l.fresh(), l.fresh()
	l.start()
	g := l.load("gate", 0)
	l.negate(e, g)
	l.exp(e, t1, t2)
	l.op("add", e, e, f.constant(1))
	l.op("div", g, g, e)
	l.op("mul", g, g, l.load("up", 0))
	l.store("h", 0, g)
	l.end(8)

	l = f.each("swigluBackAVX2", "dg du dh gate up", "")
	e, t1, t2 = l.fresh(), l.fresh(), l.fresh()
	one := l.fresh()
	f.line("VMOVUPS %s, %s", f.constant(1), one)
	l.start()
	g = l.load("gate", 0)
	l.negate(e, g)
	l.exp(e, t1, t2)
	l.op("add", e, e, one)
	sigmoid := l.op("div", e, one, e)
	silu := l.op("mul", g, g, sigmoid)
	slope := l.op("sub", t1, one, sigmoid)
	l.op("mul", slope, silu, slope)
	l.op("add", slope, sigmoid, slope)
	dh := l.load("dh", 0)
	l.op("mul", silu, dh, silu)
	l.store("du", 0, silu)
	l.op("mul", dh, dh, l.load("up", 0))
	l.op("mul", dh, dh, slope)
	l.store("dg", 0, dh)
	l.end(8)
}

// negate sets dst to -x; the sign of a zero makes no difference to what follows.
func (l *loop) negate(dst, x string) {
	l.f.line("VXORPS %s, %s, %s", dst, dst, dst)
	l.op("sub", dst, dst, x)
}

// adam reads its ten scalars from an AdamStep, whose fields follow each other.
func (f *file) adam() {
	f.begin("adamAVX2", "n int, p, m, v, grad *float32, s *AdamStep", 48)
	l := &loop{f: f, pointers: []string{"p", "m", "v", "grad"}}
	l.open()
	f.line("MOVQ s+40(FP), AX")
	var s []string
	for i := range 10 {
		s = append(s, l.fresh())
		f.line("VBROADCASTSS %s, %s", fmt.Sprintf("%d(AX)", i*4), s[i])
	}
	clip, keep1, take1, keep2, take2, fix1, fix2, epsilon, rate, decay := s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7], s[8], s[9]
	l.start()
	x := l.load("grad", 0)
	l.op("mul", x, x, clip)
	m := l.load("m", 0)
	l.op("mul", m, m, keep1)
	t := l.op("mul", "", x, take1)
	l.op("add", m, m, t)
	l.store("m", 0, m)
	v := l.load("v", 0)
	l.op("mul", v, v, keep2)
	l.op("mul", t, x, take2)
	l.op("mul", t, t, x)
	l.op("add", v, v, t)
	l.store("v", 0, v)
	l.op("mul", v, v, fix2)
	f.line("VSQRTPS %s, %s", v, v)
	l.op("add", v, v, epsilon)
	l.op("mul", m, m, fix1)
	l.op("div", m, m, v)
	p := l.load("p", 0)
	l.op("mul", t, p, decay)
	l.op("add", m, m, t)
	l.op("mul", m, m, rate)
	l.op("sub", p, p, m)
	l.store("p", 0, p)
	l.end(8)
}
