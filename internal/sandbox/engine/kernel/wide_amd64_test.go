package kernel

import (
	"fmt"
	"testing"
	"unsafe"
)

// twice is a tile of double width, of two narrower ones side by side.
func twice(half tile, width int) tile {
	over := func(p *float32) *float32 { return (*float32)(unsafe.Add(unsafe.Pointer(p), width*4)) }
	return func(m, k int, a *float32, rsa, csa int, b *float32, ldb int, c *float32, ldc int, add bool) {
		half(m, k, a, rsa, csa, b, ldb, c, ldc, add)
		half(m, k, a, rsa, csa, over(b), ldb, over(c), ldc, add)
	}
}

// The tiles of AVX-512 cut a product otherwise than those of AVX2: panels of 32 columns come first. Any machine with AVX2 can
// take the same cuts with tiles that it has.
func TestTheCutsOfAVX512HaveOneResult(t *testing.T) {
	if all := Modes(); len(all) < 2 {
		t.Skipf("this machine has %q", all)
	}
	four, one := twice(tile4x16AVX2, 16), twice(tile1x16AVX2, 16)
	wide := &set{"as avx512", &tiles{
		many:   []strip{{4, 32, four}, {1, 32, one}, {4, 16, tile4x16AVX2}, {1, 16, tile1x16AVX2}},
		single: []strip{{1, 64, twice(one, 32)}, {1, 32, one}, {1, 16, tile1x16AVX2}},
	}}
	for _, p := range []product{
		{m: 1, n: 16, k: 1}, {m: 1, n: 176, k: 90, gap: 2}, {m: 4, n: 32, k: 7, add: true}, {m: 3, n: 48, k: 300, gap: 5},
		{m: 37, n: 80, k: 300}, {m: 18, n: 112, k: 513, transposed: true, gap: 3, add: true}, {m: 64, n: 16, k: 33, transposed: true},
		{m: 17, n: 176, k: 64, infiniteRow: true}, {m: 70, n: 64, k: 257, gap: 1},
	} {
		var want []float32
		inMode(t, Scalar, func() { want, _, _ = p.run() })
		before := current.Swap(wide)
		got, _, _ := p.run()
		current.Store(before)
		same(t, fmt.Sprintf("%+v", p), got, want)
	}
}
