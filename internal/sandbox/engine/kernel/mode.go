package kernel

import (
	"fmt"
	"sync/atomic"
)

// Mode names an instruction set. All modes give the same bits; they differ in speed.
type Mode string

// The modes, slowest first.
const (
	Scalar Mode = "scalar"
	AVX2   Mode = "avx2"
	AVX512 Mode = "avx512"
)

// set is what a mode consists of; tiles is nil where only Go code may run.
type set struct {
	mode  Mode
	tiles *tiles
}

// vectors reports whether the element-wise steps may use AVX2. Both vector modes do: these steps wait for memory. They are
// called by name rather than through set so that what they point at can stay on the stack.
func vectors() bool { return current.Load().tiles != nil }

// tile adds the product of m rows of a, a multiple of its own number of them, with k >= 1 rows of a panel of b to m rows of
// c, or sets it. Strides are in bytes.
type tile func(m, k int, a *float32, rsa, csa int, b *float32, ldb int, c *float32, ldc int, add bool)

// strip is a tile with its shape. The narrowest has 16 columns, the last of a width one row.
type strip struct {
	rows, width int
	tile        tile
}

// tiles are the blocks that a matrix product is put together from, by falling width, those of a width by falling rows. For
// a product of one row there are other widths: with more columns its additions wait less for each other.
type tiles struct{ many, single []strip }

var current atomic.Pointer[set]

func init() {
	all := available()
	current.Store(all[len(all)-1])
}

// Modes returns the modes that this machine can run, slowest first; the last one is used unless Use says otherwise.
func Modes() []Mode {
	var m []Mode
	for _, s := range available() {
		m = append(m, s.mode)
	}
	return m
}

// Use makes every later call run in mode m and returns the mode before it. It exists for tests and measurements: results do
// not depend on it. It is an error to ask for a mode that this machine lacks.
func Use(m Mode) (Mode, error) {
	before := current.Load().mode
	for _, s := range available() {
		if s.mode == m {
			current.Store(s)
			return before, nil
		}
	}
	return before, fmt.Errorf("kernel mode %q: this machine has %q", m, Modes())
}
