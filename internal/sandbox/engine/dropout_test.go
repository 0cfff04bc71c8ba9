package engine

import (
	"math"
	"slices"
	"testing"
)

func TestWhatIsDroppedDependsOnThePlaceAlone(t *testing.T) {
	for _, k := range []int{1, 4} {
		m := rough(kinds[k].config, kinds[k].lora)
		m.SetDropout(Dropout{Rate: 0.4, Seed: 1})
		b := someBatch(kinds[k].config.Vocab, 2, 300, 30, 129, 300, 9)
		all := m.Logprobs(b, nil)
		other := someBatch(kinds[k].config.Vocab, 3, 1, 1, 1, 1, 1)
		for i := range b.Input {
			one := Batch{slices.Clone(other.Input), slices.Clone(other.Targets)}
			one.Input[i], one.Targets[i] = b.Input[i], b.Targets[i]
			if got := m.Logprobs(one, nil)[i]; !slices.Equal(got, all[i]) {
				t.Errorf("%s: sequence %d has other bits among other neighbours", kinds[k].name, i)
			}
			if i > 0 {
				one = Batch{b.Input[i : i+1], b.Targets[i : i+1]}
				if got := m.Logprobs(one, nil)[0]; slices.Equal(got, all[i]) {
					t.Errorf("%s: sequence %d has the same drops as the first of a batch", kinds[k].name, i)
				}
			}
		}
	}
}

func TestDropsChangeWithSeedStepAndOrdinalAndComeBack(t *testing.T) {
	m := rough(kinds[1].config, kinds[1].lora)
	b := someBatch(100, 2, 30, 40)
	plain := m.Logprobs(b, nil)
	seen := map[[32]byte]Dropout{hashOf(plain[1]): {}}
	for _, d := range []Dropout{
		{Rate: 0.2}, {Rate: 0.3}, {Rate: 0.2, Seed: 1}, {Rate: 0.2, Step: 1}, {Rate: 0.2, Ordinal: 1},
		{Rate: 0.2, Step: 1, Ordinal: 1},
	} {
		m.SetDropout(d)
		h := hashOf(m.Logprobs(b, nil)[1])
		if was, there := seen[h]; there {
			t.Errorf("%+v drops as %+v does", d, was)
		}
		seen[h] = d
		m.SetDropout(Dropout{})
		if !slices.Equal(m.Logprobs(b, nil)[1], plain[1]) {
			t.Error("something is dropped where nothing should be")
		}
		m.SetDropout(d)
		if hashOf(m.Logprobs(b, nil)[1]) != h {
			t.Errorf("%+v: the same again drops otherwise", d)
		}
	}
	full := rough(kinds[0].config, nil)
	want := full.Logprobs(b, nil)
	full.SetDropout(Dropout{Rate: 0.5})
	if !slices.Equal(full.Logprobs(b, nil)[0], want[0]) {
		t.Error("a model without an adapter drops something")
	}
}

func TestDropoutKeepsTheMean(t *testing.T) {
	const rate, rows, width = 0.3, 500, 64
	d := dropping{module: 3, rate: rate, scale: float32(1 / (1 - rate))}
	for i := range rows {
		d.keys = append(d.keys, mix(uint64(i)))
	}
	x := make([]float32, rows*width)
	for i := range x {
		x[i] = 1
	}
	d.apply(x)
	zeros, sum := 0.0, 0.0
	for _, v := range x {
		if v == 0 {
			zeros++
		}
		sum += float64(v)
	}
	n := float64(len(x))
	if spread := math.Sqrt(rate * (1 - rate) / n); math.Abs(zeros/n-rate) > 4*spread || math.Abs(sum/n-1) > 6*spread {
		t.Errorf("%g of the inputs are dropped, the mean is %g", zeros/n, sum/n)
	}
}

func TestBackwardDropsWhatTheForwardPassDropped(t *testing.T) {
	for _, k := range []int{1, 4} {
		b := someBatch(kinds[k].config.Vocab, 2, 115, 117, 200, 130, 300, 90)
		gradient := func(calls func(m *Model)) []float32 {
			return gradientOf(k, func(m *Model) {
				roughly(m)
				m.SetDropout(Dropout{Rate: 0.25, Seed: 9})
				calls(m)
				m.Backward(b, evenly(b))
			})
		}
		want := gradient(func(m *Model) { m.Logprobs(b, nil) })
		for name, before := range map[string]func(m *Model){
			"nothing": func(*Model) {},
			"scoring without dropout": func(m *Model) {
				m.SetDropout(Dropout{})
				m.Logprobs(b, nil)
				m.SetDropout(Dropout{Rate: 0.25, Seed: 9})
			},
		} {
			if !slices.Equal(gradient(before), want) {
				t.Errorf("%s: after %s the gradient differs", kinds[k].name, name)
			}
		}
	}
}
