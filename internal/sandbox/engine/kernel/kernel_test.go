package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// inMode runs f with the kernels of m.
func inMode(t testing.TB, m Mode, f func()) {
	t.Helper()
	before, err := Use(m)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if _, err := Use(before); err != nil {
			t.Fatal(err)
		}
	}()
	f()
}

// draw returns n numbers of spread size, some of them zero.
func draw(r *rand.Rand, n int, size float64) []float32 {
	x := make([]float32, n)
	for i := range x {
		if r.IntN(16) != 0 {
			x[i] = float32(r.NormFloat64() * size)
		}
	}
	return x
}

// same reports the first place where two results differ in a bit; NaN equals NaN.
func same(t *testing.T, what string, got, want []float32) {
	t.Helper()
	for i := range want {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) && (got[i] == got[i] || want[i] == want[i]) {
			t.Fatalf("%s: element %d of %d is %x (%g), want %x (%g)", what, i, len(want), math.Float32bits(got[i]), got[i],
				math.Float32bits(want[i]), want[i])
		}
	}
}

func TestUseRefusesAModeThatDoesNotExist(t *testing.T) {
	if _, err := Use("mmx"); err == nil {
		t.Fatal(`Use("mmx") is accepted`)
	}
}

// product is one call of Mul: shapes, how a is laid out, and how far rows are apart beyond their length.
type product struct {
	m, n, k     int
	transposed  bool
	gap         int
	add         bool
	seed        uint64
	infiniteRow bool
}

func (p product) run() (c []float32, a, b View) {
	r := rand.New(rand.NewPCG(p.seed, 1))
	if p.transposed {
		a = Rows(draw(r, p.k*(p.m+p.gap), 1), p.m+p.gap).T()
	} else {
		a = Rows(draw(r, p.m*(p.k+p.gap), 1), p.k+p.gap)
	}
	b = Rows(draw(r, p.k*(p.n+p.gap), 1), p.n+p.gap)
	c = draw(r, p.m*(p.n+p.gap), 1)
	if p.infiniteRow && len(b.Data) > 0 {
		b.Data[0] = float32(math.Inf(1))
	}
	Mul(Rows(c, p.n+p.gap), a, b, p.m, p.n, p.k, p.add)
	return c, a, b
}

func TestMulIsASumInIndexOrderInEveryMode(t *testing.T) {
	for _, p := range []product{
		{m: 1, n: 16, k: 1}, {m: 4, n: 32, k: 7, add: true}, {m: 3, n: 48, k: 300, gap: 5}, {m: 37, n: 80, k: 300},
		{m: 18, n: 112, k: 513, transposed: true, gap: 3, add: true}, {m: 64, n: 16, k: 33, transposed: true},
		{m: 5, n: 32, k: 0}, {m: 5, n: 32, k: 0, add: true}, {m: 0, n: 32, k: 4}, {m: 17, n: 176, k: 64, infiniteRow: true},
	} {
		for _, mode := range Modes() {
			inMode(t, mode, func() {
				got, a, b := p.run()
				want := draw(afterDrawing(p.seed, a, b), len(got), 1)
				for i := range p.m {
					for j := range p.n {
						at := i*(p.n+p.gap) + j
						if !p.add {
							want[at] = 0
						}
						for l := range p.k {
							want[at] += float32(a.Data[i*a.Row+l*a.Col] * b.Data[l*b.Row+j])
						}
					}
				}
				same(t, fmt.Sprintf("%s %+v", mode, p), got, want)
			})
		}
	}
}

// afterDrawing returns the generator of a product as it was when its operands had been drawn.
func afterDrawing(seed uint64, drawn ...View) *rand.Rand {
	r := rand.New(rand.NewPCG(seed, 1))
	for _, v := range drawn {
		draw(r, len(v.Data), 1)
	}
	return r
}

func FuzzMulHasOneResult(f *testing.F) {
	f.Add(uint16(5), uint16(2), uint16(9), true, uint8(3), true, uint64(1))
	f.Add(uint16(33), uint16(3), uint16(700), false, uint8(0), false, uint64(2))
	f.Add(uint16(16), uint16(1), uint16(256), true, uint8(1), false, uint64(3))
	f.Fuzz(func(t *testing.T, m, n16, k uint16, transposed bool, gap uint8, add bool, seed uint64) {
		p := product{m: int(m % 80), n: int(n16%12) * 16, k: int(k % 800), transposed: transposed, gap: int(gap % 20), add: add, seed: seed}
		var want []float32
		for _, mode := range Modes() {
			inMode(t, mode, func() {
				got, _, _ := p.run()
				if want == nil {
					want = got
				}
				same(t, fmt.Sprintf("%s %+v", mode, p), got, want)
			})
		}
	})
}

func TestMulRefusesWhatWouldReachOutside(t *testing.T) {
	for name, call := range map[string]func(){
		"columns that are no multiple of 16": func() {
			Mul(Rows(make([]float32, 24), 24), Rows(make([]float32, 1), 1), Rows(make([]float32, 24), 24), 1, 24, 1, false)
		},
		"a short b": func() {
			Mul(Rows(make([]float32, 16), 16), Rows(make([]float32, 2), 2), Rows(make([]float32, 31), 16), 1, 16, 2, false)
		},
		"a short a": func() {
			Mul(Rows(make([]float32, 32), 16), Rows(make([]float32, 3), 2), Rows(make([]float32, 32), 16), 2, 16, 2, false)
		},
		"a short c": func() {
			Mul(Rows(make([]float32, 31), 16), Rows(make([]float32, 4), 2), Rows(make([]float32, 32), 16), 2, 16, 2, false)
		},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Fatal("accepted")
				}
			}()
			call()
		})
	}
}

// steps runs every element-wise function on slices of n numbers and returns all that they wrote.
func steps(n int, seed uint64, size float64) map[string][]float32 {
	r := rand.New(rand.NewPCG(seed, uint64(n)))
	x := func() []float32 { return draw(r, n, size) }
	out := map[string][]float32{}
	out["Exp"] = x()
	ExpScaled(out["Exp"], out["Exp"], 0.7, 1.5)
	out["Add"] = x()
	Add(out["Add"], x())
	out["Scale"] = x()
	Scale(out["Scale"], -0.3)
	out["Sum"] = []float32{Sum(x()), Dot(x(), x())}
	if n == 0 {
		return out
	}
	out["Max"] = []float32{Max(x())}
	y, in, gain := make([]float32, n), x(), x()
	root := Norm(y, in, gain)
	dx, dg := x(), x()
	NormBack(dx, dg, x(), in, gain, root)
	frozen := x()
	NormBack(frozen, nil, x(), in, gain, root)
	out["Norm"] = append(append(append(y, dx...), dg...), frozen...)
	h, g, u := make([]float32, n), x(), x()
	SwiGLU(h, g, u)
	dgate, du := make([]float32, n), make([]float32, n)
	SwiGLUBack(dgate, du, x(), g, u)
	out["SwiGLU"] = append(append(h, dgate...), du...)
	turned, other := x(), x()
	Rotate(turned, other, x(), x(), -1)
	out["Rotate"] = append(turned, other...)
	p, d := x(), x()
	Softmax(p, 0.25)
	SoftmaxBack(d, p, 0.25)
	out["Softmax"] = append(p, d...)
	out["LogSumExp"] = []float32{LogSumExp(x())}
	params, m, v := x(), x(), x()
	for i := range v {
		v[i] = float32(v[i] * v[i])
	}
	Adam(params, m, v, x(), AdamStep{0.5, 0.9, 0.1, 0.95, 0.05, 10, 20, 1e-8, 1e-3, 0.01})
	out["Adam"] = append(append(params, m...), v...)
	return out
}

func FuzzStepsHaveOneResult(f *testing.F) {
	for n := range 40 {
		f.Add(uint16(n), uint64(1), 2.0)
	}
	f.Add(uint16(100), uint64(2), 30.0)
	f.Add(uint16(257), uint64(3), 1e-3)
	f.Fuzz(func(t *testing.T, n uint16, seed uint64, size float64) {
		if !(math.Abs(size) < 1e6) {
			t.Skip("a spread that no activation has")
		}
		var want map[string][]float32
		for _, mode := range Modes() {
			inMode(t, mode, func() {
				got := steps(int(n%600), seed, size)
				if want == nil {
					want = got
				}
				for name := range want {
					same(t, fmt.Sprintf("%s %s n=%d", mode, name, n), got[name], want[name])
				}
			})
		}
	})
}

func TestStepsAgreeWithTheFormulas(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	const n = 53
	x, g, dy := draw(r, n, 1), draw(r, n, 1), draw(r, n, 1)
	wide := func(f func(i int) float64) (out []float64) {
		for i := range n {
			out = append(out, f(i))
		}
		return out
	}
	near := func(what string, got []float32, want []float64) {
		t.Helper()
		for i := range want {
			if math.Abs(float64(got[i])-want[i]) > 2e-6*(1+math.Abs(want[i])) {
				t.Errorf("%s: element %d is %g, want %g", what, i, got[i], want[i])
			}
		}
	}
	sumExp, square := 0.0, 0.0
	for _, v := range x {
		sumExp += math.Exp(float64(v))
		square += float64(v) * float64(v) / n
	}
	p := append([]float32(nil), x...)
	Softmax(p, 1)
	near("softmax", p, wide(func(i int) float64 { return math.Exp(float64(x[i])) / sumExp }))
	near("log-sum-exp", []float32{LogSumExp(append([]float32(nil), x...))}, []float64{math.Log(sumExp)})
	y := make([]float32, n)
	root := Norm(y, x, g)
	near("norm", y, wide(func(i int) float64 { return float64(x[i]) * float64(g[i]) / math.Sqrt(square+1e-5) }))
	near("norm's factor", []float32{root}, []float64{1 / math.Sqrt(square+1e-5)})
	SwiGLU(y, g, x)
	near("swiglu", y, wide(func(i int) float64 { return float64(g[i]) * float64(x[i]) / (1 + math.Exp(-float64(g[i]))) }))
	dg, du := make([]float32, n), make([]float32, n)
	SwiGLUBack(dg, du, dy, g, x)
	near("swiglu by u", du, wide(func(i int) float64 { return float64(dy[i]) * float64(g[i]) / (1 + math.Exp(-float64(g[i]))) }))
	near("swiglu by g", dg, wide(func(i int) float64 {
		s := 1 / (1 + math.Exp(-float64(g[i])))
		return float64(dy[i]) * float64(x[i]) * (s + float64(g[i])*s*(1-s))
	}))
	w, m, v := append([]float32(nil), x...), append([]float32(nil), g...), make([]float32, n)
	for i := range v {
		v[i] = g[i] * g[i]
	}
	Adam(w, m, v, dy, AdamStep{1, 0.9, 0.1, 0.95, 0.05, 1, 1, 1e-8, 0.01, 0.1})
	near("adam", w, wide(func(i int) float64 {
		mi := 0.9*float64(g[i]) + 0.1*float64(dy[i])
		vi := 0.95*float64(g[i])*float64(g[i]) + 0.05*float64(dy[i])*float64(dy[i])
		return float64(x[i]) - 0.01*(mi/(math.Sqrt(vi)+1e-8)+0.1*float64(x[i]))
	}))
}

func TestExpIsCloseAndEndsAtItsBounds(t *testing.T) {
	for x := float32(-40); x <= 40; x += 0.00137 {
		if got, want := float64(Exp(x)), math.Exp(float64(x)); math.Abs(got-want) > 3e-7*want {
			t.Fatalf("Exp(%g) = %g, want %g", x, got, want)
		}
	}
	inf := float32(math.Inf(1))
	for _, c := range []struct{ x, want float32 }{{-40.001, 0}, {-inf, 0}, {inf, Exp(40)}, {1000, Exp(40)}, {0, 1}} {
		if got := Exp(c.x); got != c.want {
			t.Errorf("Exp(%g) = %g, want %g", c.x, got, c.want)
		}
	}
	if got := Exp(float32(math.NaN())); got == got {
		t.Errorf("Exp(NaN) = %g, want NaN", got)
	}
}

func TestElementaryFunctionsAreExactToAboutADoublesLastDigit(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 8))
	near := func(what string, x, got, want, scale float64) {
		t.Helper()
		if math.Abs(got-want) > 4e-15*scale {
			t.Errorf("%s(%g) = %.17g, want %.17g", what, x, got, want)
		}
	}
	for range 20000 {
		x := math.Exp(r.NormFloat64() * 20)
		near("Log", x, Log(x), math.Log(x), 1+math.Abs(math.Log(x)))
		x = r.Float64()*1000 - 500
		near("Exp64", x, Exp64(x), math.Exp(x), math.Exp(x))
		x = r.Float64()*4 - 2
		s, c := SinCos(x)
		near("sin", x, s, math.Sin(2*math.Pi*x), 1)
		near("cos", x, c, math.Cos(2*math.Pi*x), 1)
		b, n := r.Float64(), r.Int64N(5000)
		near("Power", b, Power(b, n), math.Pow(b, float64(n)), 1+float64(n)*math.Pow(b, float64(n)))
	}
}

func TestTransposeOfATransposeIsTheSame(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for _, d := range [][2]int{{1, 1}, {16, 48}, {37, 5}, {100, 33}} {
		x, y, z := draw(r, d[0]*d[1], 1), make([]float32, d[0]*d[1]), make([]float32, d[0]*d[1])
		Transpose(y, x, d[0], d[1])
		Transpose(z, y, d[1], d[0])
		same(t, fmt.Sprint(d), z, x)
		if got, want := y[d[0]*(d[1]-1)], x[d[1]-1]; got != want {
			t.Errorf("%v: the corner is %g, want %g", d, got, want)
		}
	}
}
