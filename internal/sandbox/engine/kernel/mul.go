package kernel

import "sync"

// View is a matrix inside a slice: element (i, j) is Data[i*Row+j*Col].
type View struct {
	Data     []float32
	Row, Col int
}

// Rows returns data seen as rows of stride elements.
func Rows(data []float32, stride int) View { return View{data, stride, 1} }

// T returns the transpose of v, without moving anything.
func (v View) T() View { return View{v.Data, v.Col, v.Row} }

// span is the number of elements that an m x n part of v reaches over.
func (v View) span(m, n int) int { return (m-1)*v.Row + (n-1)*v.Col + 1 }

// depth is how many rows of b are taken at a time, so that a packed panel stays in the first-level cache. Splitting the sum
// stores and reloads the accumulators, which changes no bit.
const depth = 256

var panels = sync.Pool{New: func() any { return new([depth * 32]float32) }}

// Mul sets c to a·b, or adds a·b to it: a is [m][k] with any strides, b [k][n] and c [m][n] row-major (Col is 1); n is a
// multiple of 16. c must not overlap a or b. Each element is summed over k in index order. Safe for concurrent use.
func Mul(c, a, b View, m, n, k int, add bool) {
	if m <= 0 || n <= 0 {
		return
	}
	if n%16 != 0 || b.Col != 1 || c.Col != 1 {
		panic("kernel: a product needs row-major b and c and a multiple of 16 columns")
	}
	c.Data = c.Data[:c.span(m, n)]
	if k <= 0 {
		clearRows(c, m, n, add)
		return
	}
	a.Data, b.Data = a.Data[:a.span(m, k)], b.Data[:b.span(k, n)]
	t := current.Load().tiles
	pack := panels.Get().(*[depth * 32]float32)
	for p := 0; p < k; p += depth {
		part := min(depth, k-p)
		av, bv := View{a.Data[p*a.Col:], a.Row, a.Col}, View{b.Data[p*b.Row:], b.Row, 1}
		if t == nil {
			mulScalar(c, av, bv, m, n, part, add, pack)
		} else {
			t.mul(c, av, bv, m, n, part, add, pack)
		}
		add = true
	}
	panels.Put(pack)
}

func clearRows(c View, m, n int, add bool) {
	for i := 0; i < m && !add; i++ {
		clear(c.Data[i*c.Row : i*c.Row+n])
	}
}

// mul runs over panels of columns. Where many rows use a panel it is copied once, so that they read consecutive memory.
func (t *tiles) mul(c, a, b View, m, n, k int, add bool, pack *[depth * 32]float32) {
	for j := 0; j < n; {
		strips := t.many
		if m == 1 {
			strips = t.single
		}
		for strips[0].width > n-j {
			strips = strips[1:]
		}
		w := strips[0].width
		bp, ldb := &b.Data[j], b.Row*4
		if m >= packRows && b.Row != w {
			packPanel(pack[:], bp, ldb, k, w)
			bp, ldb = &pack[0], w*4
		}
		i := 0
		for _, s := range strips { // the last of the first width leaves no row
			if rows := (m - i) / s.rows * s.rows; rows > 0 {
				s.tile(rows, k, &a.Data[i*a.Row], a.Row*4, a.Col*4, bp, ldb, &c.Data[i*c.Row+j], c.Row*4, add)
				i += rows
			}
		}
		j += w
	}
}

// packRows is how many rows of a make a copy of the panel worth its time.
const packRows = 16

func packPanel(pack []float32, b *float32, ldb, k, w int) {
	if w == 32 {
		pack32AVX2(k, &pack[0], b, ldb)
		return
	}
	pack16AVX2(k, &pack[0], b, ldb)
}

// mulScalar is the same product in Go. A panel of b and four rows of a are copied so that the inner loop reads consecutive
// memory.
func mulScalar(c, a, b View, m, n, k int, add bool, pack *[depth * 32]float32) {
	bp, ap := pack[:depth*16], pack[depth*16:depth*20]
	for j := 0; j < n; j += 16 {
		for p := range k {
			copy(bp[p*16:(p+1)*16], b.Data[p*b.Row+j:])
		}
		i := 0
		for ; i+4 <= m; i += 4 {
			for p := range k {
				s := a.Data[i*a.Row+p*a.Col:]
				q := (*[4]float32)(ap[p*4:])
				q[0], q[1], q[2], q[3] = s[0], s[a.Row], s[2*a.Row], s[3*a.Row]
			}
			for l := 0; l < 16; l += 2 {
				scalarTile(c, i, j+l, bp[l:], ap, k, add)
			}
		}
		for ; i < m; i++ {
			scalarRow((*[16]float32)(c.Data[i*c.Row+j:]), a.Data[i*a.Row:], a.Col, bp, k, add)
		}
	}
}

// scalarTile does 4 rows and 2 columns: as many accumulators as stay in registers.
func scalarTile(c View, i, j int, b, a []float32, k int, add bool) {
	c0, c1 := (*[2]float32)(c.Data[i*c.Row+j:]), (*[2]float32)(c.Data[(i+1)*c.Row+j:])
	c2, c3 := (*[2]float32)(c.Data[(i+2)*c.Row+j:]), (*[2]float32)(c.Data[(i+3)*c.Row+j:])
	var s00, s01, s10, s11, s20, s21, s30, s31 float32
	if add {
		s00, s01, s10, s11 = c0[0], c0[1], c1[0], c1[1]
		s20, s21, s30, s31 = c2[0], c2[1], c3[0], c3[1]
	}
	for p := range k {
		x, y := (*[4]float32)(a[p*4:]), (*[2]float32)(b[p*16:])
		y0, y1 := y[0], y[1]
		s00 += float32(x[0] * y0)
		s01 += float32(x[0] * y1)
		s10 += float32(x[1] * y0)
		s11 += float32(x[1] * y1)
		s20 += float32(x[2] * y0)
		s21 += float32(x[2] * y1)
		s30 += float32(x[3] * y0)
		s31 += float32(x[3] * y1)
	}
	c0[0], c0[1], c1[0], c1[1] = s00, s01, s10, s11
	c2[0], c2[1], c3[0], c3[1] = s20, s21, s30, s31
}

func scalarRow(c *[16]float32, a []float32, csa int, b []float32, k int, add bool) {
	if !add {
		*c = [16]float32{}
	}
	for p := range k {
		x, y := a[p*csa], (*[16]float32)(b[p*16:])
		for j := range c {
			c[j] += float32(x * y[j])
		}
	}
}

// Transpose sets dst [n][m] to the transpose of src [m][n].
func Transpose(dst, src []float32, m, n int) {
	const block = 16
	for i0 := 0; i0 < m; i0 += block {
		for j0 := 0; j0 < n; j0 += block {
			for i := i0; i < min(i0+block, m); i++ {
				row := src[i*n : (i+1)*n]
				for j := j0; j < min(j0+block, n); j++ {
					dst[j*m+i] = row[j]
				}
			}
		}
	}
}
