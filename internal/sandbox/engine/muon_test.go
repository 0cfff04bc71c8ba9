package engine

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"trainer/internal/sandbox/engine/kernel"
)

var ordinaryMuon = Muon{Rate: 0.01, Momentum: 0.9, Steps: 5, WeightDecay: 0.05, ClipNorm: 0.5, Adam: ordinary}

// newtonSchulz is the published iteration on rows of float64, by the book.
func newtonSchulz(x [][]float64, steps int) [][]float64 {
	rows, cols := len(x), len(x[0])
	if rows > cols {
		return flip(newtonSchulz(flip(x), steps))
	}
	norm := 0.0
	for _, r := range x {
		for _, v := range r {
			norm += v * v
		}
	}
	norm = math.Sqrt(norm) + 1e-7
	for i := range x {
		for j := range x[i] {
			x[i][j] /= norm
		}
	}
	for range steps {
		a := times(x, flip(x))
		aa := times(a, a)
		for i := range a {
			for j := range a[i] {
				a[i][j] = -4.7750*a[i][j] + 2.0315*aa[i][j]
			}
		}
		y := times(a, x)
		for i := range x {
			for j := range x[i] {
				x[i][j] = 3.4445*x[i][j] + y[i][j]
			}
		}
	}
	return x
}

func flip(x [][]float64) [][]float64 {
	y := make([][]float64, len(x[0]))
	for i := range y {
		for j := range x {
			y[i] = append(y[i], x[j][i])
		}
	}
	return y
}

func times(a, b [][]float64) [][]float64 {
	c := make([][]float64, len(a))
	for i := range a {
		c[i] = make([]float64, len(b[0]))
		for k, x := range a[i] {
			for j, y := range b[k] {
				c[i][j] += x * y
			}
		}
	}
	return c
}

// matrixOf is the meaningful part of a span of a slab, as float64.
func matrixOf(s span, slab []float32) [][]float64 {
	out := make([][]float64, s.keepRows)
	for i := range out {
		for _, v := range slab[s.off+i*s.cols : s.off+i*s.cols+s.keepCols] {
			out[i] = append(out[i], float64(v))
		}
	}
	return out
}

func TestMuonMovesMatricesByOrthogonalUpdatesAndTheRestByAdam(t *testing.T) {
	for _, k := range kinds {
		for _, original := range []bool{false, true} {
			mu := ordinaryMuon
			mu.Original = original
			m := rough(k.config, k.lora)
			byAdam := rough(k.config, k.lora)
			momenta := map[string][][]float64{}
			for step := range 2 {
				b := someBatch(k.config.Vocab, uint64(step), 30, 41)
				m.Backward(b, evenly(b))
				before, grad := slices.Clone(m.params), slices.Clone(m.grad)
				copy(byAdam.params, m.params)
				copy(byAdam.grad, m.grad)
				byAdam.touched = true
				norm := m.StepMuon(mu)
				adam := mu.Adam
				adam.ClipNorm = mu.ClipNorm
				byAdam.Step(adam)
				clip := min(1, mu.ClipNorm/norm)
				moved := 0
				for _, s := range m.spans {
					if !m.muonOwns(s) {
						if !slices.Equal(m.params[s.off:s.off+s.size()], byAdam.params[s.off:s.off+s.size()]) {
							t.Fatalf("%s: %s was not moved by Adam", k.name, s.name)
						}
						continue
					}
					moved++
					p, g := matrixOf(s, before), matrixOf(s, grad)
					mom, ok := momenta[s.name]
					if !ok {
						mom = make([][]float64, len(g))
						for i := range g {
							mom[i] = make([]float64, len(g[i]))
						}
						momenta[s.name] = mom
					}
					for i := range g {
						for j := range g[i] {
							mom[i][j] = mu.Momentum*mom[i][j] + g[i][j]*clip
							g[i][j] = g[i][j]*clip + mu.Momentum*mom[i][j]
						}
					}
					g = newtonSchulz(g, mu.Steps)
					// The matrix as others keep it is [out][in].
					out, in := float64(s.keepCols), float64(s.keepRows)
					size := 0.2 * math.Sqrt(max(out, in))
					if original {
						size = math.Sqrt(max(1, out/in))
					}
					for i, row := range matrixOf(s, m.params) {
						for j, got := range row {
							want := p[i][j] - mu.Rate*(mu.WeightDecay*p[i][j]+size*g[i][j])
							if math.Abs(got-want) > 2e-5 {
								t.Fatalf("%s: %s [%d][%d] is %g, want %g", k.name, s.name, i, j, got, want)
							}
						}
					}
				}
				if want := 14; k.lora == nil && moved != want || k.lora != nil && moved != 2*want {
					t.Errorf("%s: Muon moved %d matrices", k.name, moved)
				}
			}
		}
	}
}

func TestAnOrthogonalUpdateHasSingularValuesNearOne(t *testing.T) {
	const rows, cols = 16, 48
	x := make([]float32, rows*cols)
	for i := range x {
		x[i] = float32(newStream(1, "x").normal(uint64(i)))
	}
	orthogonalise(x, rows, cols, 5)
	wide := matrixOf(span{rows: rows, cols: cols, keepRows: rows, keepCols: cols}, x)
	for i, row := range times(wide, flip(wide)) {
		for j, v := range row {
			if i == j && (v < 0.4 || v > 1.6) || i != j && math.Abs(v) > 0.4 {
				t.Errorf("x·xᵀ [%d][%d] is %g", i, j, v)
			}
		}
	}
}

func TestMuonHasTheGoldenBitsInEveryMode(t *testing.T) {
	for _, k := range []int{0, 4} {
		for _, mode := range kernel.Modes() {
			before, err := kernel.Use(mode)
			if err != nil {
				t.Fatal(err)
			}
			m := NewModel(NewBase(kinds[k].config, 7), kinds[k].lora)
			for s := range 3 {
				b := someBatch(kinds[k].config.Vocab, uint64(s), 30, 41)
				m.SetDropout(Dropout{Rate: 0.1, Step: m.Steps()})
				m.Backward(b, evenly(b))
				m.StepMuon(ordinaryMuon)
			}
			if got, want := fmt.Sprintf("%x", m.Hash()), goldenHashes["Muon, "+kinds[k].name]; got != want {
				t.Errorf("%s, %s: the hash is %q, want %q", kinds[k].name, mode, got, want)
			}
			for _, s := range m.spans {
				for i := range s.size() {
					if (i/s.cols >= s.keepRows || i%s.cols >= s.keepCols) && m.params[s.off+i] != 0 {
						t.Fatalf("%s: %s: padding at %d is %g", kinds[k].name, s.name, i, m.params[s.off+i])
					}
				}
			}
			if _, err := kernel.Use(before); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestMuonLearns(t *testing.T) {
	l := capitalsLesson(spellBytes, 1)
	m := NewModel(NewBase(Tiny(272), 1), nil)
	for s := range 60 {
		now := l.pick(16, s)
		_, d := now.loss(m)
		m.Backward(now.batch, d)
		adam := Adam{Rate: 3e-3, Beta1: 0.9, Beta2: 0.95, Eps: 1e-8}
		m.StepMuon(Muon{Rate: 0.01 * (1 - float64(s)/60), Momentum: 0.95, Steps: 5, ClipNorm: 1, Adam: adam})
	}
	if loss, _ := l.loss(m); loss > 0.6 {
		t.Errorf("the loss after 60 steps is %g", loss)
	}
}
