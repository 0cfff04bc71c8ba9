package engine

import (
	"encoding/json"
	"hash/fnv"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// reference is what testdata/reference.py wrote.
type reference struct {
	Config    Config
	LoRA      *LoRA
	Lengths   []int
	Logprobs  [][]float64
	Gradients map[string]struct {
		Norm, Probe float64
		Head        []float64
	}
}

// known is the number that the reference has at an index of a name; both sides compute it.
func known(name string, index int, scale float64) float64 {
	h := fnv.New64a()
	h.Write([]byte(name))
	return float64(mix(h.Sum64()+uint64(index)*golden)>>40)/(1<<23)*scale - scale
}

// setKnown fills the spans of a slab with the reference's numbers.
func setKnown(slab []float32, spans []span) {
	for _, s := range spans {
		scale, around, i := 0.25, 0.0, 0
		if s.gain {
			around = 1
		}
		if s.gain || !s.swap {
			scale = 0.5
		}
		for place := range (tensor{span: s}).places {
			slab[place] = float32(around + known(s.name, i, scale))
			i++
		}
	}
}

func (r reference) model() *Model {
	base := NewBase(r.Config, 1)
	setKnown(base.net.slab, base.net.spans)
	base.net.each((*matrix).transpose)
	m := NewModel(base, r.LoRA)
	if r.LoRA != nil {
		setKnown(m.params, m.spans)
		m.refresh()
	}
	return m
}

func (r reference) batch() (b Batch, d [][]float32) {
	ids := func(name string, n int) []int32 {
		s := make([]int32, n)
		for i := range s {
			s[i] = int32((known(name, i, 1) + 1) / 2 * float64(r.Config.Vocab))
		}
		return s
	}
	for i, n := range r.Lengths {
		digit := string(rune('0' + i))
		targets := ids("target "+digit, n)
		targets[n-1] = int32(r.Config.Vocab - 1)
		b.Input, b.Targets = append(b.Input, ids("input "+digit, n)), append(b.Targets, targets)
		row := make([]float32, n)
		for t := range row {
			row[t] = float32(known("derivative "+digit, t, 1))
		}
		d = append(d, row)
	}
	return b, d
}

func TestLogprobsAndGradientsAgreeWithTorchInFloat64(t *testing.T) {
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) != 4 {
		t.Fatalf("reference files: %q, %v", files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var r reference
			if err := json.Unmarshal(text, &r); err != nil {
				t.Fatal(err)
			}
			r.check(t)
		})
	}
}

func (r reference) check(t *testing.T) {
	m := r.model()
	b, d := r.batch()
	for i, row := range m.Logprobs(b, nil) {
		for j, got := range row {
			if want := r.Logprobs[i][j]; !(math.Abs(float64(got)-want) < 1e-5) {
				t.Errorf("sequence %d row %d: log-probability %g, want %g", i, j, got, want)
			}
		}
	}
	m.Backward(b, d)
	if len(m.spans) != len(r.Gradients) {
		t.Errorf("%d tensors train, want %d", len(m.spans), len(r.Gradients))
	}
	for _, s := range m.spans {
		want, ok := r.Gradients[s.name]
		if !ok {
			t.Errorf("the reference has no gradient of %s", s.name)
			continue
		}
		square, probe, i := 0.0, 0.0, 0
		for place := range (tensor{span: s}).places {
			g := float64(m.grad[place])
			square += g * g
			probe += g * known("probe "+s.name, i, 1)
			if i < len(want.Head) && !(math.Abs(g-want.Head[i]) < 1e-4*want.Norm) {
				t.Errorf("%s: element %d of the gradient is %g, want %g", s.name, i, g, want.Head[i])
			}
			i++
		}
		if got := math.Sqrt(square); !(math.Abs(got-want.Norm) < 1e-4*want.Norm) {
			t.Errorf("%s: the gradient's norm is %g, want %g", s.name, got, want.Norm)
		}
		if !(math.Abs(probe-want.Probe) < 1e-4*want.Norm) {
			t.Errorf("%s: the gradient's product with known numbers is %g, want %g", s.name, probe, want.Probe)
		}
	}
}
