package jinja

import (
	"math"
	"math/big"
)

// Limits bound a render, each by counting. A zero field means the default.
type Limits struct {
	Steps  int // statements, iterations, calls and items touched; 10 million
	Depth  int // calls of macros within each other; 200
	Memory int // bytes of values built and of long strings read, freed or not; 256 MiB
	Output int // bytes of text; 64 MiB
}

const (
	defaultSteps  = 10_000_000
	defaultDepth  = 200
	defaultMemory = 256 << 20
	defaultOutput = 64 << 20

	maxSource      = 1 << 20 // bytes of a template
	maxNesting     = 150     // expressions and statements within each other in a source
	maxChain       = 2000    // operators, filters and subscripts in one expression
	maxValueDepth  = 900     // values within each other that are printed or compared, and lazy filters on each other
	maxBranchNames = 500_000 // names copied to analyze the branches of ifs apart
	maxRange       = 100_000 // items of a range, as the sandbox in Python
	maxIntBits     = 1 << 16
	maxTupleKey    = 1 << 16 // bytes of a tuple that is a key

	// Estimates of what a value costs, for the count of memory.
	itemBytes  = 16
	entryBytes = 48
	wordBytes  = 8
	longText   = 64 // reading a shorter text costs no more than the step that reads it
)

func (l Limits) orDefault() Limits {
	pick := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	pick(&l.Steps, defaultSteps)
	pick(&l.Depth, defaultDepth)
	pick(&l.Memory, defaultMemory)
	pick(&l.Output, defaultOutput)
	return l
}

// step counts n units of work.
func (x *exec) step(n int) {
	if x.steps -= n; x.steps < 0 {
		fail("LimitError", "the template takes more than %d steps", x.limits.Steps)
	}
}

// charge counts n bytes; it is called before they are built.
func (x *exec) charge(n int) {
	if x.memory -= n; x.memory < 0 {
		fail("LimitError", "the template builds more than %d bytes", x.limits.Memory)
	}
}

// chargeTimes counts a*b bytes, both at least 0.
func (x *exec) chargeTimes(a, b int) {
	if a > 0 && b > math.MaxInt32/a {
		fail("LimitError", "the template builds %d times %d bytes", b, a)
	}
	x.charge(a * b)
}

// scan counts the reading of a text, which for a long one takes as long as building it.
func (x *exec) scan(s string) {
	if len(s) >= longText {
		x.charge(len(s))
	}
}

// scanValue is scan of a value that may be text.
func (x *exec) scanValue(v Value) {
	if s, ok := text(v); ok {
		x.scan(s)
	}
}

// scanKey counts the hashing of a key.
func (x *exec) scanKey(v Value) { x.scanKeyAt(v, 0) }

func (x *exec) scanKeyAt(v Value, depth int) {
	tooDeep(depth, "hash")
	switch t := v.(type) {
	case string, markup:
		x.scanValue(t)
	case *big.Int:
		x.charge(4 * len(t.Bits()) * wordBytes)
	case *tuple:
		x.charge(2 * itemBytes * len(t.items))
		for _, item := range t.items {
			x.scanKeyAt(item, depth+1)
		}
	}
}

// chargeBig counts arithmetic with an integer of many digits; dividing takes longer than the rest.
func (x *exec) chargeBig(op string, v Value) {
	n, ok := v.(*big.Int)
	if !ok {
		return
	}
	bytes := len(n.Bits()) * wordBytes
	if op == "/" || op == "//" || op == "%" || op == "**" {
		bytes *= 32
	}
	x.charge(bytes)
}

// nest counts a call within a call; leave ends it.
func (x *exec) nest() {
	if x.depth++; x.depth > x.limits.Depth {
		fail("RecursionError", "calls within each other more than %d deep", x.limits.Depth)
	}
}

// tooDeep refuses values within each other beyond what Python's recursion limit lets through.
func tooDeep(depth int, doing string) {
	if depth > maxValueDepth {
		fail("RecursionError", "values within each other too deep to %s", doing)
	}
}
