package engine

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

var everything = Parts{Weights: true, Optimizer: true, Gradient: true}

// trained returns a model after some steps, with a gradient gathered for the next.
func trained(kind int, steps int) *Model {
	k := kinds[kind]
	m := NewModel(NewBase(k.config, 7), k.lora)
	for s := range steps {
		b := someBatch(k.config.Vocab, uint64(s), 30, 41)
		m.Backward(b, evenly(b))
		m.Step(ordinary)
	}
	b := someBatch(k.config.Vocab, 50, 20, 9)
	m.Backward(b, evenly(b))
	return m
}

func saved(t testing.TB, m *Model, p Parts) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := m.Save(&out, p); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// goOn takes more steps and returns the hash of everything.
func goOn(t *testing.T, m *Model) [32]byte {
	for s := range 2 {
		b := someBatch(m.Base().Config().Vocab, uint64(60+s), 30, 41)
		m.Backward(b, evenly(b))
		m.Step(ordinary)
	}
	return hashOf(append(append(slices.Clone(m.params), m.m...), m.v...))
}

func TestLoadContinuesWithTheBitsOfTheSaved(t *testing.T) {
	for kind, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			m := trained(kind, 3)
			file := saved(t, m, everything)
			fresh := NewModel(NewBase(k.config, 7), k.lora)
			if err := fresh.Load(bytes.NewReader(file), everything); err != nil {
				t.Fatal(err)
			}
			if fresh.Steps() != 3 || fresh.Hash() != m.Hash() || !slices.Equal(fresh.grad, m.grad) {
				t.Errorf("loaded %d steps, hash %x: want 3, %x", fresh.Steps(), fresh.Hash(), m.Hash())
			}
			if again := saved(t, fresh, everything); !bytes.Equal(again, file) {
				t.Error("saving what was loaded gives other bytes")
			}
			if got, want := goOn(t, fresh), goOn(t, m); got != want {
				t.Error("the continuation has other bits")
			}
		})
	}
}

func TestLoadTakesTheAskedPartsAlone(t *testing.T) {
	m := trained(1, 3)
	file := saved(t, m, everything)
	start := NewModel(NewBase(kinds[1].config, 7), kinds[1].lora)
	weights := trained(1, 0)
	before := slices.Clone(weights.grad)
	if err := weights.Load(bytes.NewReader(file), Parts{Weights: true}); err != nil {
		t.Fatal(err)
	}
	if weights.Hash() != m.Hash() || weights.Steps() != 0 || !slices.Equal(weights.m, start.m) || !slices.Equal(weights.grad, before) {
		t.Error("loading the weights took something else, or not them")
	}
	optimizer := NewModel(NewBase(kinds[1].config, 7), kinds[1].lora)
	if err := optimizer.Load(bytes.NewReader(file), Parts{Optimizer: true}); err != nil {
		t.Fatal(err)
	}
	if optimizer.Hash() != start.Hash() || optimizer.Steps() != 3 || !slices.Equal(optimizer.v, m.v) {
		t.Error("loading the optimizer took something else, or not it")
	}
	gradient := NewModel(NewBase(kinds[1].config, 7), kinds[1].lora)
	if err := gradient.Load(bytes.NewReader(file), Parts{Gradient: true}); err != nil {
		t.Fatal(err)
	}
	gradient.ClearGradient()
	if !slices.Equal(gradient.grad, start.grad) {
		t.Error("a loaded gradient is not cleared")
	}
}

func TestPublishedWeightsLoad(t *testing.T) {
	for kind, k := range kinds {
		m := trained(kind, 2)
		var out bytes.Buffer
		if err := m.Publish().Save(&out); err != nil {
			t.Fatal(err)
		}
		fresh := NewModel(NewBase(k.config, 7), k.lora)
		if err := fresh.Load(&out, Parts{Weights: true}); err != nil || fresh.Hash() != m.Hash() {
			t.Errorf("%s: loading published weights: %v, hash %x, want %x", k.name, err, fresh.Hash(), m.Hash())
		}
	}
}

func TestLoadRefusesAndSaysWhich(t *testing.T) {
	lora := kinds[1]
	file := saved(t, trained(1, 1), everything)
	other := func(change func(*Config, *LoRA)) *Model {
		c, l := lora.config, *lora.lora
		change(&c, &l)
		return NewModel(NewBase(c, 7), &l)
	}
	edit := func(from, to string) []byte {
		n := binary.LittleEndian.Uint64(file)
		head := strings.Replace(string(file[8:8+n]), from, to, 1)
		if head == string(file[8:8+n]) {
			t.Fatalf("nothing like %q to edit", from)
		}
		return append(append(binary.LittleEndian.AppendUint64(nil, uint64(len(head))), head...), file[8+n:]...)
	}
	same := other(func(*Config, *LoRA) {})
	for _, c := range []struct {
		name  string
		model *Model
		file  []byte
		want  string
	}{
		{"another width", other(func(c *Config, _ *LoRA) { c.Dim = 64 }), file, "config"},
		{"another rank", other(func(_ *Config, l *LoRA) { l.Rank = 7 }), file, "lora"},
		{"another alpha", other(func(_ *Config, l *LoRA) { l.Alpha = 7 }), file, "lora"},
		{"no adapter on the head", other(func(_ *Config, l *LoRA) { l.TrainUnembed = false }), file, "lora"},
		{"full weights", NewModel(NewBase(lora.config, 7), nil), file, "lora"},
		{"another base", NewModel(NewBase(lora.config, 8), lora.lora), file, "base"},
		{"another engine", same, edit(Version, "sandbox-engine/0"), "engine"},
		{"other shards", same, edit(`"shards":"2"`, `"shards":"3"`), "shards"},
		{"a count that is none", same, edit(`"step":"1"`, `"step":"-1"`), "step"},
		{"no gradient in it", same, saved(t, trained(1, 1), Parts{Weights: true, Optimizer: true}), "without its gradient"},
		{"no optimizer in it", same, saved(t, trained(1, 1), Parts{Weights: true}), "without its optimizer"},
		{"a tensor too many", same, edit("grad.", "gradient."), "without its gradient"},
		{"a type that is not ours", same, edit(`"F32"`, `"F16"`), "F16"},
		{"a cut file", same, file[:len(file)-1], "EOF"},
		{"a cut header", same, file[:100], "EOF"},
		{"nothing", same, nil, "EOF"},
		{"a byte too many", same, append(slices.Clone(file), 0), "after the last"},
		{"a header of an exabyte", same, []byte{0, 0, 0, 0, 0, 0, 0, 16, '{'}, "header"},
		{"no JSON", same, []byte{1, 0, 0, 0, 0, 0, 0, 0, '?'}, "header"},
	} {
		t.Run(c.name, func(t *testing.T) {
			hash := c.model.Hash()
			err := c.model.Load(bytes.NewReader(c.file), everything)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one about %q", err, c.want)
			}
			if c.model.Hash() != hash || c.model.Steps() != 0 {
				t.Error("a refused file changed the model")
			}
		})
	}
}

func TestTheFileIsSafetensorsWithPEFTsNames(t *testing.T) {
	file := saved(t, trained(1, 1), Parts{Weights: true})
	n := binary.LittleEndian.Uint64(file)
	var head map[string]struct {
		DType   string   `json:"dtype"`
		Shape   []int    `json:"shape"`
		Offsets [2]int64 `json:"data_offsets"`
	}
	if err := json.Unmarshal(file[8:8+n], &head); err != nil {
		t.Fatal(err)
	}
	for name, shape := range map[string][]int{
		"base_model.model.model.layers.1.mlp.down_proj.lora_A.weight": {6, 48},
		"base_model.model.model.layers.1.mlp.down_proj.lora_B.weight": {32, 6},
		"base_model.model.lm_head.lora_B.weight":                      {100, 6},
	} {
		if got := head[name]; got.DType != "F32" || !slices.Equal(got.Shape, shape) {
			t.Errorf("%s is %s %v, want F32 %v", name, got.DType, got.Shape, shape)
		}
	}
	end := int64(0)
	for _, e := range head {
		end = max(end, e.Offsets[1])
	}
	if n%8 != 0 || int64(len(file)) != 8+int64(n)+end {
		t.Errorf("a header of %d bytes and data up to %d in a file of %d", n, end, len(file))
	}
}

func FuzzLoadSurvivesAnyBytes(f *testing.F) {
	tiny := Config{5, 16, 1, 1, 16, 4}
	base := NewBase(tiny, 1)
	lora := &LoRA{Rank: 1, Alpha: 1}
	good := saved(f, NewModel(base, lora), everything)
	f.Add(good)
	f.Add(good[:len(good)/2])
	f.Add([]byte{2, 0, 0, 0, 0, 0, 0, 0, '{', '}'})
	f.Add(append([]byte{40, 0, 0, 0, 0, 0, 0, 0}, `{"a":{"shape":[-1],"data_offsets":[0,8]}}`...))
	f.Fuzz(func(t *testing.T, file []byte) {
		m := NewModel(base, lora)
		before := m.Hash()
		if err := m.Load(bytes.NewReader(file), everything); err != nil && m.Hash() != before {
			t.Errorf("a file refused with %v changed the model", err)
		}
	})
}
