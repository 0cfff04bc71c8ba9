package main

import "fmt"

// tile writes the product kernel of a strip of m rows, a multiple of rows, and vecs vectors of width lanes, rows of them at a
// time: c is set to, or increased by, a·b. k is at least 1. The accumulators stay in registers for all of k, and a is
// broadcast; b is read once for all rows, from memory where there is one row only, which leaves registers for more columns.
func (f *file) tile(name, reg string, width, rows, vecs int) {
	f.begin(name, "m, k int, a *float32, rsa, csa int, b *float32, ldb int, c *float32, ldc int, add bool", 73)
	for i, arg := range []string{"k", "a", "rsa", "csa", "b", "ldb", "c", "ldc"} {
		to := []string{"CX", "SI", "R8", "R9", "DX", "R10", "DI", "R11"}[i]
		f.line("MOVQ %s+%d(FP), %s", arg, 8+i*8, to)
	}
	f.line("LEAQ (R8)(R8*2), R12")
	f.line("LEAQ (R8)(R8*4), R13")
	f.line("MOVQ CX, BX")
	f.line("IMULQ R9, BX")
	f.line("IMUL3Q $%d, R8, AX", rows)
	f.line("SUBQ BX, AX") // from the end of one strip of rows of a to the start of the next
	r := registers{reg: reg, width: width, rows: rows, vecs: vecs}
	f.text.WriteString("strip:\n")
	f.line("CMPB add+72(FP), $0")
	f.line("JNE load")
	for i := range rows * vecs {
		f.line("%s %s, %s, %s", map[string]string{"Y": "VXORPS", "Z": "VPXORD"}[reg], r.at(i), r.at(i), r.at(i))
	}
	f.line("JMP loop")
	f.text.WriteString("load:\n")
	f.rows(rows, func(i int) {
		for v := range vecs {
			f.line("VMOVUPS %d(BX), %s", v*width*4, r.at(i*vecs+v))
		}
	})
	f.text.WriteString("loop:\n")
	f.products(r)
	f.line("ADDQ R9, SI")
	f.line("ADDQ R10, DX")
	f.line("DECQ CX")
	f.line("JNZ loop")
	f.rows(rows, func(i int) {
		for v := range vecs {
			f.line("VMOVUPS %s, %d(BX)", r.at(i*vecs+v), v*width*4)
		}
	})
	f.line("SUBQ $%d, m+0(FP)", rows)
	f.line("JZ done")
	f.line("LEAQ (BX)(R11*1), DI")
	f.line("ADDQ AX, SI")
	f.line("MOVQ k+8(FP), CX")
	f.line("MOVQ b+40(FP), DX")
	f.line("JMP strip")
	f.text.WriteString("done:\n")
	f.end()
}

// registers of a tile: accumulators first, then those that a turn needs.
type registers struct {
	reg               string
	width, rows, vecs int
}

func (r registers) at(i int) string { return fmt.Sprintf("%s%d", r.reg, i) }

// products adds what one k contributes.
func (f *file) products(r registers) {
	free := r.rows * r.vecs
	b := func(v int) string { return fmt.Sprintf("%d(DX)", v*r.width*4) }
	if r.rows > 1 {
		in := free
		free += r.vecs
		for v := range r.vecs {
			f.line("VMOVUPS %s, %s", b(v), r.at(in+v))
		}
		b = func(v int) string { return r.at(in + v) }
	}
	scalar, product := r.at(free), r.at(free+1)
	for i, a := range []string{"(SI)", "(SI)(R8*1)", "(SI)(R8*2)", "(SI)(R12*1)", "(SI)(R8*4)", "(SI)(R13*1)"}[:r.rows] {
		f.line("VBROADCASTSS %s, %s", a, scalar)
		for v := range r.vecs {
			f.line("VMULPS %s, %s, %s", b(v), scalar, product)
			f.line("VADDPS %s, %s, %s", product, r.at(i*r.vecs+v), r.at(i*r.vecs+v))
		}
	}
}

// rows walks BX over the rows of c.
func (f *file) rows(n int, do func(i int)) {
	f.line("MOVQ DI, BX")
	for i := range n {
		do(i)
		if i < n-1 {
			f.line("ADDQ R11, BX")
		}
	}
}

// pack writes the copy of k rows of a panel, so many vectors wide, to consecutive memory.
func (f *file) pack(name string, vecs int) {
	f.begin(name, "k int, to, b *float32, ldb int", 32)
	for i, arg := range []string{"k", "to", "b", "ldb"} {
		f.line("MOVQ %s+%d(FP), %s", arg, i*8, []string{"CX", "DI", "SI", "R10"}[i])
	}
	f.text.WriteString("loop:\n")
	for v := range vecs {
		f.line("VMOVUPS %d(SI), Y%d", v*32, v)
	}
	for v := range vecs {
		f.line("VMOVUPS Y%d, %d(DI)", v, v*32)
	}
	f.line("ADDQ R10, SI")
	f.line("ADDQ $%d, DI", vecs*32)
	f.line("DECQ CX")
	f.line("JNZ loop")
	f.end()
}
