package engine

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"
)

// Halves worked out by hand: a bfloat16 keeps seven bits behind the leading one.
func TestHalvesAreRoundedToTheNearestAndTiesToEven(t *testing.T) {
	for _, c := range []struct {
		name    string
		x, want float32
	}{
		{"what fits stays", 1.5, 1.5},
		{"below the middle goes down", 1 + 1.0/512, 1},
		{"the middle goes to the even one below", 1 + 1.0/256, 1},
		{"the middle goes to the even one above", 1 + 3.0/256, 1 + 1.0/64},
		{"above the middle goes up", 1 + 1.0/256 + 1.0/1024, 1 + 1.0/128},
		{"a carry reaches the exponent", 2 - 1.0/1024, 2},
		{"the sign is kept", -1 - 3.0/256, -1 - 1.0/64},
		{"minus zero is one", float32(math.Copysign(0, -1)), float32(math.Copysign(0, -1))},
		{"a subnormal", math.Float32frombits(0x00018000), math.Float32frombits(0x00020000)},
		{"the largest becomes infinite", math.MaxFloat32, float32(math.Inf(1))},
		{"infinity", float32(math.Inf(-1)), float32(math.Inf(-1))},
	} {
		got := halfOf(math.Float32bits(c.x)) << 16
		if got != math.Float32bits(c.want) {
			t.Errorf("%s: %v became %v, want %v", c.name, c.x, math.Float32frombits(got), c.want)
		}
	}
	for _, nan := range []uint32{0x7f800001, 0x7fc00000, 0xffffffff} {
		if got := math.Float32frombits(halfOf(nan) << 16); got == got {
			t.Errorf("the NaN %x became %v", nan, got)
		}
	}
}

// savedBase is the file of a model of kind 0 after some steps, and the model.
func savedBase(t testing.TB) ([]byte, *Model) {
	t.Helper()
	m := trained(0, 2)
	var file bytes.Buffer
	if err := m.Publish().SaveBase(&file); err != nil {
		t.Fatal(err)
	}
	return file.Bytes(), m
}

func TestABaseIsTheSavedWeightsInSixteenBits(t *testing.T) {
	file, m := savedBase(t)
	b, err := LoadBase(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	want := slices.Clone(m.params)
	for i, x := range want {
		want[i] = math.Float32frombits(halfOf(math.Float32bits(x)) << 16)
	}
	if b.Config() != m.Base().Config() || !slices.Equal(b.net.slab, want) || b.Hash() != hashOf(want) || b.Hash() == m.Hash() {
		t.Error("the base is not the rounded weights")
	}
	var again bytes.Buffer
	if err := NewModel(b, nil).Publish().SaveBase(&again); err != nil {
		t.Fatal(err)
	}
	if n := len(file) - len(want)*2; !bytes.Equal(again.Bytes()[n:], file[n:]) {
		t.Error("saving what was loaded gives other numbers")
	}
}

// A loaded base trains as one that was drawn does: the transposed copies and the rotary tables are there.
func TestALoadedBaseTrainsLikeTheWeightsInMemory(t *testing.T) {
	base := NewBase(kinds[0].config, 7)
	for i, x := range base.net.slab {
		base.net.slab[i] = math.Float32frombits(halfOf(math.Float32bits(x)) << 16)
	}
	base.net.each((*matrix).transpose)
	var file bytes.Buffer
	if err := NewModel(base, nil).Publish().SaveBase(&file); err != nil {
		t.Fatal(err)
	}
	loaded, err := LoadBase(&file)
	if err != nil {
		t.Fatal(err)
	}
	for _, lora := range []*LoRA{nil, {Rank: 4, Alpha: 8, Seed: 1}} {
		if goOn(t, NewModel(loaded, lora)) != goOn(t, NewModel(base, lora)) {
			t.Errorf("LoRA %v: other bits after two steps", lora)
		}
	}
}

func TestLoadBaseRefuses(t *testing.T) {
	file, _ := savedBase(t)
	other := func(from, to string) []byte { return []byte(strings.Replace(string(file), from, to, 1)) }
	for _, c := range []struct {
		name, want string
		file       []byte
	}{
		{"nothing", "EOF", nil},
		{"a file cut short", "EOF", file[:len(file)-1]},
		{"a byte too many", "after the last", append(slices.Clone(file), 0)},
		{"numbers of 32 bits", "tensor", saved(t, trained(0, 1), Parts{Weights: true})},
		{"an adapter", "tensor", saved(t, trained(1, 1), Parts{Weights: true})},
		{"a tensor of another name", "none of this shape's", other("model.norm.weight", "model.form.weight")},
		{"a number type of the same width", "F16 ", other(`"BF16"`, `"F16" `)},
		{"a shape that no model has", "config", other(`\"Heads\":`, `\"Heads\":-`)},
		{"no shape", "config", other(`"config":`, `"konfig":`)},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := LoadBase(bytes.NewReader(c.file)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one about %q", err, c.want)
			}
		})
	}
	if err := trained(1, 0).Publish().SaveBase(new(bytes.Buffer)); err == nil || !strings.Contains(err.Error(), "adapter") {
		t.Errorf("an adapter saved as a base: error %v", err)
	}
}

func FuzzLoadBaseSurvivesAnyBytes(f *testing.F) {
	var good bytes.Buffer
	if err := NewModel(NewBase(Config{5, 16, 1, 1, 16, 4}, 1), nil).Publish().SaveBase(&good); err != nil {
		f.Fatal(err)
	}
	f.Add(good.Bytes())
	f.Add(good.Bytes()[:good.Len()/2])
	f.Add([]byte{2, 0, 0, 0, 0, 0, 0, 0, '{', '}'})
	f.Fuzz(func(t *testing.T, file []byte) {
		if b, err := LoadBase(bytes.NewReader(file)); err == nil && b.Config().Validate() != nil {
			t.Errorf("a base of shape %+v", b.Config())
		}
	})
}
