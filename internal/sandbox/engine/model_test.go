package engine

import (
	"crypto/sha256"
	"fmt"
	"math"
	"runtime"
	"slices"
	"testing"

	"trainer/internal/sandbox/engine/kernel"
)

// kinds are the four ways in which gradients flow; small enough for every test.
var kinds = []struct {
	name   string
	config Config
	lora   *LoRA
}{
	{"full", Config{100, 32, 2, 2, 48, 400}, nil},
	{"LoRA", Config{100, 32, 2, 2, 48, 400}, &LoRA{Rank: 6, Alpha: 12, Seed: 3, TrainUnembed: true}},
	{"LoRA without the head", Config{100, 32, 2, 2, 48, 400}, &LoRA{Rank: 18, Alpha: 12, Seed: 3}},
	{"two-level", Config{1300, 32, 2, 2, 48, 400}, nil},
	{"two-level LoRA", Config{1300, 32, 2, 2, 48, 400}, &LoRA{Rank: 6, Alpha: 12, Seed: 3, TrainUnembed: true}},
}

var ordinary = Adam{Rate: 3e-3, Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, WeightDecay: 0.01, ClipNorm: 1}

// goldenRun trains on ragged batches: short and empty sequences, one whose attention is not kept, several groups a shard.
func goldenRun(c Config, l *LoRA) [32]byte {
	m := NewModel(NewBase(c, 7), l)
	all := sha256.New()
	for s, lengths := range [][]int{{5, 33, 1, 0, 140, 64, 17}, {5, 300, 300, 300}} {
		b := someBatch(c.Vocab, uint64(s), lengths...)
		d := evenly(b)
		clear(d[1][:20])
		for _, row := range m.Logprobs(b, nil) {
			h := hashOf(row)
			all.Write(h[:])
		}
		m.Backward(b, d)
		m.Step(ordinary)
	}
	h := m.Hash()
	all.Write(h[:])
	return [32]byte(all.Sum(nil))
}

func TestBitsAreTheGoldenOnesInEveryModeAndNumberOfThreads(t *testing.T) {
	for _, k := range kinds {
		for _, mode := range kernel.Modes() {
			for _, threads := range []int{1, 2} {
				t.Run(fmt.Sprintf("%s, %s, %d threads", k.name, mode, threads), func(t *testing.T) {
					before, err := kernel.Use(mode)
					if err != nil {
						t.Fatal(err)
					}
					defer kernel.Use(before)
					defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(threads))
					if got := fmt.Sprintf("%x", goldenRun(k.config, k.lora)); got != goldenHashes[k.name] {
						t.Errorf("the hash is %q, want %q: a change of bits needs a new Version and new constants", got, goldenHashes[k.name])
					}
				})
			}
		}
	}
}

// total is the sum of d·logprob, in float64.
func total(m *Model, b Batch, d [][]float32) float64 {
	sum := 0.0
	for i, row := range m.Logprobs(b, nil) {
		for t, lp := range row {
			sum += float64(lp) * float64(d[i][t])
		}
	}
	return sum
}

// roughly gives every weight that may move a value of its own, so that no derivative is zero by symmetry.
func roughly(m *Model) {
	for _, s := range m.spans {
		draw := newStream(99, s.name)
		for i := range s.keepRows {
			for j := range s.keepCols {
				at := s.off + i*s.cols + j
				m.params[at] += float32(0.1 * draw.normal(uint64(at)))
			}
		}
	}
	m.refresh()
}

func TestBackwardIsTheSlopeOfLogprobs(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) { slopes(t, k.config, k.lora, Dropout{}) })
	}
	for _, k := range []int{1, 4} {
		t.Run(kinds[k].name+" with dropout", func(t *testing.T) {
			slopes(t, kinds[k].config, kinds[k].lora, Dropout{Rate: 0.3, Seed: 1, Step: 2, Ordinal: 3})
		})
	}
}

func slopes(t *testing.T, c Config, l *LoRA, drop Dropout) {
	m := NewModel(NewBase(c, 7), l)
	roughly(m)
	m.SetDropout(drop)
	b := someBatch(c.Vocab, 5, 9, 70, 2, 150)
	b.Targets[0][0] = int32(c.Vocab - 1)
	var d [][]float32
	for i, s := range b.Input {
		row := make([]float32, len(s))
		for t := range row {
			row[t] = float32(newStream(uint64(i), "d").normal(uint64(t)))
		}
		d = append(d, row)
	}
	m.Backward(b, d)
	start := slices.Clone(m.params)
	// Each tensor along its own gradient, where the slope is the gradient's norm.
	for _, s := range m.spans {
		g := m.grad[s.off : s.off+s.size()]
		norm := math.Sqrt(float64(kernel.Dot(g, g)))
		const step = 4e-3
		move := func(by float64) float64 {
			copy(m.params, start)
			for i := range g {
				m.params[s.off+i] += float32(by * float64(g[i]) / norm)
			}
			m.refresh()
			return total(m, b, d)
		}
		slope := (8*(move(step)-move(-step)) - (move(2*step) - move(-2*step))) / (12 * step)
		if !(math.Abs(slope-norm) < 5e-3*norm+2e-2) {
			t.Errorf("%s: the slope along the gradient is %g, its norm %g", s.name, slope, norm)
		}
	}
}

func TestProbabilitiesSumToOneOverTheVocabularyAlone(t *testing.T) {
	for _, vocab := range []int{90, 1024, 1025, 1300} {
		c := Config{vocab, 32, 1, 2, 48, 16}
		m := NewModel(NewBase(c, 3), &LoRA{Rank: 4, Alpha: 4, TrainUnembed: true})
		roughly(m)
		var b Batch
		for id := range vocab {
			b.Input, b.Targets = append(b.Input, []int32{5}), append(b.Targets, []int32{int32(id)})
		}
		sum := 0.0
		for _, row := range m.Logprobs(b, nil) {
			sum += math.Exp(float64(row[0]))
		}
		if math.Abs(sum-1) > 1e-5 {
			t.Errorf("%d ids: probabilities sum to %g", vocab, sum)
		}
	}
}

func TestTheFirstLossIsAboutTheLogarithmOfTheVocabulary(t *testing.T) {
	for _, c := range []Config{Tiny(272), Small(272), Tiny(151936)} {
		m := NewModel(NewBase(c, 1), nil)
		b := someBatch(c.Vocab, 1, 64, 64)
		got, want := total(m, b, evenly(b)), math.Log(float64(c.Vocab))
		if math.Abs(got-want) > 0.3 {
			t.Errorf("%+v: the first loss is %g, want about %g", c, got, want)
		}
	}
}

func TestASequenceHasTheSameBitsAloneAndInABatch(t *testing.T) {
	for _, k := range kinds {
		m := NewModel(NewBase(k.config, 7), k.lora)
		roughly(m)
		b := someBatch(k.config.Vocab, 2, 7, 300, 64, 1, 129, 200, 33)
		for i, want := range m.Logprobs(b, nil) {
			alone := m.Logprobs(Batch{b.Input[i : i+1], b.Targets[i : i+1]}, nil)
			if !slices.Equal(alone[0], want) {
				t.Errorf("%s: sequence %d differs", k.name, i)
			}
		}
	}
}

func TestRowsNotNeededAreZeroAndChangeNothing(t *testing.T) {
	m := NewModel(NewBase(kinds[3].config, 7), nil)
	b := someBatch(1300, 2, 40, 9)
	all := m.Logprobs(b, nil)
	need := [][]bool{make([]bool, 40), make([]bool, 9)}
	need[0][3], need[0][39], need[1][0] = true, true, true
	for i, row := range m.Logprobs(b, need) {
		for t2, got := range row {
			want := all[i][t2]
			if !need[i][t2] {
				want = 0
			}
			if got != want {
				t.Errorf("sequence %d row %d: %g, want %g", i, t2, got, want)
			}
		}
	}
}

// gradientOf runs calls on a new model and returns the gradient.
func gradientOf(kind int, calls func(m *Model)) []float32 {
	m := NewModel(NewBase(kinds[kind].config, 7), kinds[kind].lora)
	m.keep = 600 * m.floatsPerToken()
	calls(m)
	return m.grad
}

func TestBackwardHasTheSameBitsWhateverWasScoredBefore(t *testing.T) {
	for kind, k := range kinds {
		// Three groups a shard, of which one is kept; attention that is kept and that is not.
		lengths := make([]int, 20)
		for i := range lengths {
			lengths[i] = 115 + 2*i
		}
		b, other := someBatch(k.config.Vocab, 2, lengths...), someBatch(k.config.Vocab, 3, 10, 11)
		d := evenly(b)
		for i := range d {
			clear(d[i][:i])
		}
		half := make([][]bool, len(d))
		for i := range half {
			half[i] = make([]bool, len(d[i]))
		}
		want := gradientOf(kind, func(m *Model) {
			m.Logprobs(b, nil)
			m.Backward(b, d)
			if s := m.shards[0]; s.kept != 1 || len(s.parts) < 3 {
				t.Errorf("%d of %d groups are kept: want 1 of at least 3", s.kept, len(s.parts))
			}
		})
		for name, before := range map[string]func(m *Model){
			"nothing":                  func(m *Model) {},
			"the same batch, all kept": func(m *Model) { m.keep = keepFloats; m.Logprobs(b, nil) },
			"the same batch, no rows":  func(m *Model) { m.Logprobs(b, half) },
			"another batch":            func(m *Model) { m.Logprobs(other, nil) },
			"a gradient, then cleared": func(m *Model) { m.Backward(other, evenly(other)); m.ClearGradient() },
		} {
			got := gradientOf(kind, func(m *Model) { before(m); m.Backward(b, d) })
			if !slices.Equal(got, want) {
				t.Errorf("%s after %s: the gradient differs", k.name, name)
			}
		}
	}
}

func TestBackwardAfterAStepIsThatOfTheNewWeights(t *testing.T) {
	for kind, k := range kinds {
		b, other := someBatch(k.config.Vocab, 2, 40, 9), someBatch(k.config.Vocab, 3, 10)
		step := func(m *Model) {
			m.Logprobs(b, nil)
			m.Backward(b, evenly(b))
			m.Step(ordinary)
		}
		got := gradientOf(kind, func(m *Model) { step(m); m.Backward(b, evenly(b)) })
		want := gradientOf(kind, func(m *Model) { step(m); m.Logprobs(other, nil); m.Backward(b, evenly(b)) })
		if !slices.Equal(got, want) {
			t.Errorf("%s: the gradient is one of the old weights", k.name)
		}
	}
}

func TestGradientsOfPartsAddUp(t *testing.T) {
	for kind, k := range kinds {
		b := someBatch(k.config.Vocab, 2, 20, 90, 31, 64)
		d := evenly(b)
		whole := gradientOf(kind, func(m *Model) { m.Backward(b, d) })
		parts := gradientOf(kind, func(m *Model) {
			m.Backward(Batch{b.Input[:1], b.Targets[:1]}, d[:1])
			m.Backward(Batch{b.Input[1:], b.Targets[1:]}, d[1:])
		})
		norm := math.Sqrt(float64(kernel.Dot(whole, whole)))
		off := 0.0
		for i := range whole {
			off += math.Pow(float64(whole[i])-float64(parts[i]), 2)
		}
		if !(math.Sqrt(off) < 1e-5*norm) {
			t.Errorf("%s: parts and whole differ by %g of a norm of %g", k.name, math.Sqrt(off), norm)
		}
	}
}

func TestPaddingStaysZero(t *testing.T) {
	for _, k := range kinds {
		m := NewModel(NewBase(k.config, 7), k.lora)
		for s := range 3 {
			b := someBatch(k.config.Vocab, uint64(s), 30, 41)
			m.Backward(b, evenly(b))
			m.Step(ordinary)
		}
		for _, s := range m.spans {
			for i := range s.size() {
				if (i/s.cols >= s.keepRows || i%s.cols >= s.keepCols) && m.params[s.off+i] != 0 {
					t.Fatalf("%s: %s: padding at %d is %g", k.name, s.name, i, m.params[s.off+i])
				}
			}
		}
	}
}

func TestALoRAModelStartsAsItsBaseAndLeavesItAlone(t *testing.T) {
	base := NewBase(Tiny(272), 1)
	before := base.Hash()
	b := someBatch(272, 1, 30, 50)
	want := NewModel(base, nil).Logprobs(b, nil)
	for _, m := range []*Model{NewModel(base, &LoRA{Rank: 16, Alpha: 32, TrainUnembed: true}), NewModel(base, nil)} {
		for i, row := range m.Logprobs(b, nil) {
			if !slices.Equal(row, want[i]) {
				t.Errorf("sequence %d differs from the base's", i)
			}
		}
		m.Backward(b, evenly(b))
		m.Step(ordinary)
		if m.Hash() == NewModel(base, m.lora).Hash() {
			t.Error("a step changed nothing")
		}
		if got := hashOf(base.net.slab); got != before {
			t.Error("a step changed the base")
		}
	}
}

func TestStepMovesAsAdamW(t *testing.T) {
	m := NewModel(NewBase(kinds[0].config, 7), nil)
	start := slices.Clone(m.params)
	var want, m1, m2 = make([]float64, len(start)), make([]float64, len(start)), make([]float64, len(start))
	for i, p := range start {
		want[i] = float64(p)
	}
	a := Adam{Rate: 1e-2, Beta1: 0.8, Beta2: 0.9, Eps: 1e-6, WeightDecay: 0.1, ClipNorm: 0.5}
	for step := 1; step <= 3; step++ {
		b := someBatch(100, uint64(step), 30, 41)
		m.Backward(b, evenly(b))
		norm := 0.0
		for _, g := range m.grad {
			norm += float64(g) * float64(g)
		}
		norm = math.Sqrt(norm)
		for i := range want {
			g := float64(m.grad[i]) * min(1, 0.5/norm)
			m1[i], m2[i] = 0.8*m1[i]+0.2*g, 0.9*m2[i]+0.1*g*g
			at, vt := m1[i]/(1-math.Pow(0.8, float64(step))), m2[i]/(1-math.Pow(0.9, float64(step)))
			want[i] -= 1e-2 * (at/(math.Sqrt(vt)+1e-6) + 0.1*want[i])
		}
		if got := m.Step(a); math.Abs(got-norm) > 1e-5*norm {
			t.Errorf("step %d: norm %g, want %g", step, got, norm)
		}
		if m.Steps() != int64(step) {
			t.Errorf("%d steps, want %d", m.Steps(), step)
		}
	}
	for i := range want {
		if math.Abs(float64(m.params[i])-want[i]) > 1e-5 {
			t.Fatalf("weight %d is %g, want %g", i, m.params[i], want[i])
		}
	}
}

func TestPublishedWeightsDoNotMove(t *testing.T) {
	for _, k := range kinds {
		m := NewModel(NewBase(k.config, 7), k.lora)
		w, then := m.Publish(), m.Hash()
		b := someBatch(k.config.Vocab, 1, 30)
		m.Backward(b, evenly(b))
		m.Step(ordinary)
		if w.Hash() != then || hashOf(w.params) != then {
			t.Errorf("%s: published weights changed", k.name)
		}
		if m.Hash() == then || m.Publish().Hash() != m.Hash() {
			t.Errorf("%s: a step did not change the weights that are published", k.name)
		}
	}
}

func TestSessionsOfOneBaseRunSideBySide(t *testing.T) {
	base := NewBase(Tiny(272), 1)
	run := func() [32]byte {
		m := NewModel(base, &LoRA{Rank: 8, Alpha: 16, TrainUnembed: true})
		for s := range 2 {
			b := someBatch(272, uint64(s), 30, 50)
			m.Backward(b, evenly(b))
			m.Step(ordinary)
		}
		return m.Hash()
	}
	want := run()
	got := make(chan [32]byte)
	for range 4 {
		go func() { got <- run() }()
	}
	for range 4 {
		if h := <-got; h != want {
			t.Error("a neighbour changed the bits")
		}
	}
}

func TestMemoryDoesNotGrowWithTheBatch(t *testing.T) {
	m := NewModel(NewBase(kinds[0].config, 7), nil)
	m.keep = 1100 * m.floatsPerToken()
	held := func(sequences int) (floats int) {
		lengths := make([]int, sequences)
		for i := range lengths {
			lengths[i] = 128
		}
		b := someBatch(100, 1, lengths...)
		for range 2 {
			m.Logprobs(b, nil)
			m.Backward(b, evenly(b))
		}
		for _, s := range m.shards {
			for _, g := range s.groups {
				floats += len(g.mem.slab)
			}
			floats += len(s.mem.slab)
		}
		return floats
	}
	if few, many := held(60), held(120); many > few {
		t.Errorf("120 sequences hold %d numbers, 60 held %d", many, few)
	}
}

func TestTheCountOfStepsSetsTheBiasCorrection(t *testing.T) {
	move := func(steps int64) float64 {
		m := NewModel(NewBase(kinds[0].config, 7), nil)
		m.SetSteps(steps)
		start := slices.Clone(m.params)
		b := someBatch(100, 1, 30)
		m.Backward(b, evenly(b))
		m.Step(Adam{Rate: 1e-3, Beta1: 0.9, Beta2: 0.99, Eps: 1e-12})
		if got := m.Publish().Steps(); got != steps+1 {
			t.Errorf("published after %d steps, want %d", got, steps+1)
		}
		at := m.final.off
		return math.Abs(float64(m.params[at] - start[at]))
	}
	for _, steps := range []int64{0, 5, 1000} {
		want := 1e-3 * math.Sqrt(1-math.Pow(0.99, float64(steps+1))) / (1 - math.Pow(0.9, float64(steps+1)))
		if got := move(steps); math.Abs(got-want) > 2e-6 {
			t.Errorf("after %d steps a first gradient moves a weight by %g, want %g", steps, got, want)
		}
	}
}

func TestContainsTheIdsOfTheVocabularyAlone(t *testing.T) {
	b := NewBase(kinds[3].config, 1)
	for id, want := range map[int32]bool{-1: false, 0: true, 1299: true, 1300: false, math.MaxInt32: false, math.MinInt32: false} {
		if got := b.Contains(id); got != want {
			t.Errorf("Contains(%d) = %v", id, got)
		}
	}
}

func TestValidateNamesEveryFault(t *testing.T) {
	if err := Tiny(151936).Validate(); err != nil {
		t.Error(err)
	}
	for name, c := range map[string]Config{
		"no vocabulary": {0, 32, 1, 2, 48, 16}, "a width of 40": {90, 40, 1, 1, 48, 16}, "no layers": {90, 32, 0, 2, 48, 16},
		"heads of 8": {90, 32, 1, 4, 48, 16}, "no heads": {90, 32, 1, 0, 48, 16}, "a hidden width of 50": {90, 32, 1, 2, 50, 16},
		"no context": {90, 32, 1, 2, 48, 0}, "everything negative": {-1, -16, -1, -1, -16, -1},
	} {
		if c.Validate() == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}
