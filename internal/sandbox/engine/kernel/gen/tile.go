package main

import "fmt"

// tile writes the product kernel of rows x (vecs vectors of width lanes): c is set to, or increased by, a·b.
// The accumulators stay in registers for all of k; b is read once a row, a is broadcast.
func (f *file) tile(name, reg string, width, rows, vecs int) {
	f.begin(name, "k int, a *float32, rsa, csa int, b *float32, ldb int, c *float32, ldc int, add bool", 65)
	for i, arg := range []string{"k", "a", "rsa", "csa", "b", "ldb", "c", "ldc"} {
		to := []string{"CX", "SI", "R8", "R9", "DX", "R10", "DI", "R11"}[i]
		f.line("MOVQ %s+%d(FP), %s", arg, i*8, to)
	}
	f.line("MOVBLZX add+64(FP), AX")
	f.line("LEAQ (R8)(R8*2), R12")
	acc := func(i, v int) string { return fmt.Sprintf("%s%d", reg, i*vecs+v) }
	free := rows * vecs
	product, scalar := fmt.Sprintf("%s%d", reg, free+vecs+1), fmt.Sprintf("%s%d", reg, free+vecs)
	f.line("TESTB AX, AX")
	f.line("JNZ load")
	for i := range rows {
		for v := range vecs {
			zero := "VXORPS"
			if reg == "Z" {
				zero = "VPXORD"
			}
			f.line("%s %s, %s, %s", zero, acc(i, v), acc(i, v), acc(i, v))
		}
	}
	f.line("JMP start")
	f.text.WriteString("load:\n")
	f.rows(rows, func(i int) {
		for v := range vecs {
			f.line("VMOVUPS %d(BX), %s", v*width*4, acc(i, v))
		}
	})
	f.text.WriteString("start:\n")
	f.line("TESTQ CX, CX")
	f.line("JZ done")
	f.text.WriteString("loop:\n")
	for v := range vecs {
		f.line("VMOVUPS %d(DX), %s%d", v*width*4, reg, free+v)
	}
	for i, a := range []string{"(SI)", "(SI)(R8*1)", "(SI)(R8*2)", "(SI)(R12*1)"}[:rows] {
		f.line("VBROADCASTSS %s, %s", a, scalar)
		for v := range vecs {
			f.line("VMULPS %s, %s%d, %s", scalar, reg, free+v, product)
			f.line("VADDPS %s, %s, %s", product, acc(i, v), acc(i, v))
		}
	}
	f.line("ADDQ R9, SI")
	f.line("ADDQ R10, DX")
	f.line("DECQ CX")
	f.line("JNZ loop")
	f.text.WriteString("done:\n")
	f.rows(rows, func(i int) {
		for v := range vecs {
			f.line("VMOVUPS %s, %d(BX)", acc(i, v), v*width*4)
		}
	})
	f.end()
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
