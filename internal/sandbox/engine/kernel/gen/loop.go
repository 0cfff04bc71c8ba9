package main

import (
	"fmt"
	"math"
	"strings"
)

// loop writes one element-wise function: n and pointers and float32 scalars in, eight lanes a turn. Scalars are broadcast
// before the loop and keep their registers; values inside take the others as they come.
type loop struct {
	f        *file
	pointers []string
	scalars  map[string]string
	next     int // first register not in use
}

var addresses = []string{"DI", "SI", "DX", "R8", "R9"}

// each opens the function. Pointers are named as parameters; the first element of a turn is at their address.
func (f *file) each(name string, pointers, scalars string) *loop {
	l := &loop{f: f, pointers: strings.Fields(pointers), scalars: map[string]string{}}
	names := strings.Fields(scalars)
	params := "n int, " + strings.Join(l.pointers, ", ") + " *float32"
	size := 8 + 8*len(l.pointers) + 4*len(names)
	if len(names) > 0 {
		params += ", " + strings.Join(names, ", ") + " float32"
	}
	f.begin(name, params, size)
	l.open()
	for i, s := range names {
		l.scalars[s] = l.fresh()
		f.line("VBROADCASTSS %s+%d(FP), %s", s, 8+8*len(l.pointers)+4*i, l.scalars[s])
	}
	return l
}

func (l *loop) open() {
	l.f.line("MOVQ n+0(FP), CX")
	for i, p := range l.pointers {
		l.f.line("MOVQ %s+%d(FP), %s", p, 8+8*i, addresses[i])
	}
}

// start is where a turn begins.
func (l *loop) start() {
	l.f.text.WriteString("loop:\n")
}

// end steps the pointers on, all but those named, and closes the loop and the function.
func (l *loop) end(lanes int, still ...string) {
	l.again(lanes, still...)
	l.f.end()
}

func (l *loop) again(lanes int, still ...string) {
	for i, p := range l.pointers {
		if !strings.Contains(strings.Join(still, " "), p) {
			l.f.line("ADDQ $%d, %s", lanes*4, addresses[i])
		}
	}
	l.f.line("SUBQ $%d, CX", lanes)
	l.f.line("JNZ loop")
}

func (l *loop) fresh() string {
	if l.next == 16 {
		panic("gen: out of registers")
	}
	l.next++
	return fmt.Sprintf("Y%d", l.next-1)
}

func (l *loop) at(pointer string, offset int) string {
	for i, p := range l.pointers {
		if p == pointer {
			return fmt.Sprintf("%d(%s)", offset, addresses[i])
		}
	}
	panic("gen: no pointer " + pointer)
}

// load reads eight elements.
func (l *loop) load(pointer string, offset int) string {
	r := l.fresh()
	l.f.line("VMOVUPS %s, %s", l.at(pointer, offset), r)
	return r
}

func (l *loop) store(pointer string, offset int, r string) {
	l.f.line("VMOVUPS %s, %s", r, l.at(pointer, offset))
}

// op sets dst to a·b where "·" is one of add, sub, mul, div, max, min; b may be a constant in memory. For max and min b is
// returned where one of the two is NaN. It returns dst; an empty dst takes a fresh register.
func (l *loop) op(name, dst, a, b string) string {
	if dst == "" {
		dst = l.fresh()
	}
	l.f.line("V%sPS %s, %s, %s", strings.ToUpper(name), b, a, dst)
	return dst
}

// exp replaces x by its exponential, as Exp has it; t1 and t2 are overwritten.
func (l *loop) exp(x, t1, t2 string) {
	c := l.f.constant
	inside, part := l.fresh(), l.fresh()
	// "Not less" keeps a NaN.
	l.f.line("VCMPPS $0x15, %s, %s, %s", c(-40), x, inside)
	l.f.line("VMOVUPS %s, %s", c(-40), t1)
	l.op("max", x, t1, x)
	l.f.line("VMOVUPS %s, %s", c(40), t1)
	l.op("min", x, t1, x)
	l.op("mul", t1, x, c(math.Log2E))
	l.op("add", t1, t1, c(12582912))
	n := t2
	l.op("sub", n, t1, c(12582912))
	l.f.line("VPSLLD $23, %s, %s", t1, t1)
	l.op("mul", part, n, c(0.693359375))
	l.op("sub", x, x, part)
	l.op("mul", part, n, c(2.12194440e-4))
	l.op("add", x, x, part)
	p := t2
	l.op("mul", p, x, c(1.0/720))
	for _, k := range []float32{1.0 / 120, 1.0 / 24, 1.0 / 6, 0.5, 1} {
		l.op("add", p, p, c(k))
		l.op("mul", p, p, x)
	}
	l.op("add", p, p, c(1))
	l.f.line("VPADDD %s, %s, %s", t1, p, x)
	l.f.line("VANDPS %s, %s, %s", inside, x, x)
	l.next -= 2
}
