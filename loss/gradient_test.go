package loss

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// fullStep is a step that every loss can take: pairs with all columns, positions of weight 1 and 0, kto's mismatched
// sequences at the end where wanted.
func fullStep(random *rand.Rand, sequences int) (now [][]float64, step []Datum) {
	draw := func(n int, low, high float64) []float64 {
		out := make([]float64, n)
		for t := range out {
			out[t] = low + (high-low)*random.Float64()
		}
		return out
	}
	for i := range sequences {
		n := 2 + random.IntN(8)
		l := draw(n, -4, -0.1)
		near := func(spread float64) []float64 {
			out := draw(n, -spread, spread)
			for t := range out {
				out[t] += l[t]
			}
			return out
		}
		d := Datum{Weights: draw(n, 1, 1), Advantages: draw(n, -2, 2), OldLogprobs: near(0.6), RefLogprobs: near(1),
			TeacherLogprobs: near(2), Group: i / 2, Desirable: random.IntN(2) == 0}
		for t := range n - 1 {
			if random.IntN(3) == 0 {
				d.Weights[t] = 0
			}
		}
		now, step = append(now, l), append(step, d)
	}
	return now, step
}

// differentiable are losses whose value has the gradient that they return: none of their factors is held constant.
func differentiable() map[string]Loss {
	grpo := func(agg string, beta float64) Loss {
		l := newGRPO()
		l.AggType, l.Beta = agg, beta
		return l
	}
	return map[string]Loss{
		"importance_sampling":     &ImportanceSampling{},
		"ppo":                     newPPO(),
		"dro":                     &DRO{Beta: new(0.3)},
		"dppo":                    newDPPO(),
		"grpo token mean":         grpo(TokenMean, 0),
		"grpo sequence mean + kl": grpo(SequenceMean, 0.2),
		"grpo fixed horizon + kl": grpo(FixedHorizon, 0.1),
		"dpo":                     newDPO(),
		"dpo smoothed":            &DPO{Beta: 0.4, LabelSmoothing: 0.2, Variant: Sigmoid},
		"dpo robust":              &DPO{Beta: 0.4, LabelSmoothing: 0.2, Variant: Robust},
		"dpo with all":            &DPO{Beta: 0.7, LabelSmoothing: 0.1, Variant: Sigmoid, Gamma: 0.6, LengthNormalized: true, SFTWeight: 0.3},
		"ipo":                     newIPO(),
		"ipo, supervised":         &IPO{Beta: 0.3, LengthNormalized: true, SFTWeight: 0.5},
		"hinge, supervised":       &Hinge{Beta: 0.1, SFTWeight: 0.5},
		"simpo, supervised":       &SimPO{Beta: 2, Gamma: 0.5, SFTWeight: 0.5},
		"ipo as sums":             &IPO{Beta: 0.3},
		"hinge":                   newHinge(),
		"slic":                    &SLiC{Delta: 3, Lambda: 0.2},
		"slic of means":           &SLiC{Delta: 1, Lambda: 0.2, LengthNormalized: true},
		"simpo":                   newSimPO(),
		"orpo":                    &ORPO{Beta: 0.7},
		"kto":                     &KTO{Beta: 0.5, DesirableWeight: 1.3, UndesirableWeight: 0.7},
		"reverse_kl k2":           &ReverseKL{Estimator: K2, Reduction: SequenceMean},
		"reverse_kl k3":           &ReverseKL{Estimator: K3, Reduction: TokenMean},
	}
}

func TestGradientsAreTheSlopesOfValues(t *testing.T) {
	const h = 1e-5
	for name, l := range differentiable() {
		random := rand.New(rand.NewPCG(11, 12))
		for range 5 {
			now, step := fullStep(random, 6)
			got, err := l.Eval(now, step)
			if err != nil {
				t.Fatal(err)
			}
			at := func(i, p int, x float64) float64 {
				was := now[i][p]
				defer func() { now[i][p] = was }()
				now[i][p] += x
				r, err := l.Eval(now, step)
				if err != nil {
					t.Fatal(err)
				}
				return r.Value
			}
			for i := range now {
				for p := range now[i] {
					up, down, here := at(i, p, h), at(i, p, -h), got.Value
					if math.Abs((up-here)-(here-down)) > 1e-7 {
						continue // a kink lies between
					}
					if slope := (up - down) / (2 * h); math.Abs(slope-got.Grads[i][p]) > 1e-6*(1+math.Abs(slope)) {
						t.Errorf("%s: sequence %d, position %d: gradient %v, slope %v", name, i, p, got.Grads[i][p], slope)
					}
				}
			}
		}
	}
}

// every is each row of the table with parameters, and the variants that read other columns.
func every() map[string]Loss {
	all := differentiable()
	for _, k := range Kinds() {
		if k.Name != "dro" && k.Name != "command" {
			all[k.Name] = k.New()
		}
	}
	all["grpo of sequences"] = &GRPO{ClipLowThreshold: 0.9, ClipHighThreshold: 1.1, Beta: 0.1, AggType: TokenMean, RatioType: SequenceRatio}
	all["reverse_kl corrected"] = &ReverseKL{Estimator: K3, Reduction: TokenMean, IsCorrection: true}
	delete(all, "grpo fixed horizon + kl") // its divisor counts positions of weight 0 too
	return all
}

// Whatever lies under a weight of 0, the rest comes out to the last bit as if the position were not there.
func TestMaskedPositionsAreAsIfTheyWereNotThere(t *testing.T) {
	now, step := fullStep(rand.New(rand.NewPCG(13, 14)), 6)
	for name, l := range every() {
		for _, poison := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1e300, 1e300, 0} {
			with, plain := poisoned(now, step, poison)
			without, compact := withoutMasked(now, step)
			got, err := l.Eval(with, plain)
			if err != nil {
				t.Fatalf("%s under %v: %v", name, poison, err)
			}
			want, err := l.Eval(without, compact)
			if err != nil {
				t.Fatal(err)
			}
			if got.Value != want.Value {
				t.Errorf("%s under %v: value %v, want %v", name, poison, got.Value, want.Value)
			}
			for m, v := range want.Metrics {
				if got.Metrics[m] != v {
					t.Errorf("%s under %v: %s is %v, want %v", name, poison, m, got.Metrics[m], v)
				}
			}
			for i := range plain {
				var trained []float64
				for p, w := range plain[i].Weights {
					if w != 0 {
						trained = append(trained, got.Grads[i][p])
					} else if got.Grads[i][p] != 0 {
						t.Errorf("%s under %v: a masked position has the gradient %v", name, poison, got.Grads[i][p])
					}
				}
				if !slices.Equal(trained, want.Grads[i]) {
					t.Errorf("%s under %v: gradients %v, want %v", name, poison, trained, want.Grads[i])
				}
			}
		}
	}
}

func poisoned(now [][]float64, step []Datum, poison float64) ([][]float64, []Datum) {
	outNow, out := make([][]float64, len(now)), make([]Datum, len(step))
	for i, d := range step {
		over := func(x []float64) []float64 {
			x = slices.Clone(x)
			for p, w := range d.Weights {
				if w == 0 {
					x[p] = poison
				}
			}
			return x
		}
		outNow[i] = over(now[i])
		d.Advantages, d.OldLogprobs, d.RefLogprobs, d.TeacherLogprobs = over(d.Advantages), over(d.OldLogprobs), over(d.RefLogprobs), over(d.TeacherLogprobs)
		out[i] = d
	}
	return outNow, out
}

func withoutMasked(now [][]float64, step []Datum) ([][]float64, []Datum) {
	outNow, out := make([][]float64, len(now)), make([]Datum, len(step))
	for i, d := range step {
		weights := d.Weights
		keep := func(x []float64) (kept []float64) {
			for p, w := range weights {
				if w != 0 {
					kept = append(kept, x[p])
				}
			}
			return kept
		}
		outNow[i] = keep(now[i])
		d.Advantages, d.OldLogprobs, d.RefLogprobs, d.TeacherLogprobs = keep(d.Advantages), keep(d.OldLogprobs), keep(d.RefLogprobs), keep(d.TeacherLogprobs)
		d.Weights = keep(d.Weights)
		out[i] = d
	}
	return outNow, out
}

// A positive factor of the advantage is one of the gradient: what normalises a batch can be folded into advantages.
func TestPolicyLossesAreHomogeneousInTheAdvantage(t *testing.T) {
	for name, l := range map[string]Loss{"importance_sampling": &ImportanceSampling{}, "ppo": newPPO(), "cispo": newCISPO(), "dppo": newDPPO(), "grpo": newGRPO()} {
		now, step := fullStep(rand.New(rand.NewPCG(15, 16)), 5)
		want, err := l.Eval(now, step)
		if err != nil {
			t.Fatal(err)
		}
		const factor = 0.25
		for i := range step {
			for p := range step[i].Advantages {
				step[i].Advantages[p] *= factor
			}
		}
		got, err := l.Eval(now, step)
		if err != nil {
			t.Fatal(err)
		}
		near(t, name, got.Value, factor*want.Value)
		for i := range want.Grads {
			for p, g := range want.Grads[i] {
				near(t, fmt.Sprintf("%s: gradient", name), got.Grads[i][p], factor*g)
			}
		}
	}
}

func TestWhatALossReadsHasToBeThere(t *testing.T) {
	for name, l := range every() {
		reads := 0
		for i, column := range []string{"advantages", "sampling", "reference", "teacher"} {
			now, step := fullStep(rand.New(rand.NewPCG(17, 18)), 4)
			slices := []*[]float64{&step[2].Advantages, &step[2].OldLogprobs, &step[2].RefLogprobs, &step[2].TeacherLogprobs}
			*slices[i] = nil
			if _, err := l.Eval(now, step); err != nil {
				reads++
				if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "sequence 2: 0 ") || !strings.Contains(err.Error(), column) {
					t.Errorf("%s without %s: got %v", name, column, err)
				}
			}
			now, step = fullStep(rand.New(rand.NewPCG(17, 18)), 4)
			slices = []*[]float64{&step[2].Advantages, &step[2].OldLogprobs, &step[2].RefLogprobs, &step[2].TeacherLogprobs}
			last := len(step[2].Weights) - 1 // which is trained
			(*slices[i])[last] = math.NaN()
			if _, err := l.Eval(now, step); err != nil && !errors.Is(err, ErrInvalid) {
				t.Errorf("%s with NaN among %s: got %v", name, column, err)
			}
		}
		now, step := fullStep(rand.New(rand.NewPCG(17, 18)), 4)
		now[1][len(now[1])-1] = math.NaN()
		if _, err := l.Eval(now, step); !errors.Is(err, ErrNonFinite) || !strings.Contains(err.Error(), "sequence 1, position") {
			t.Errorf("%s with a log-probability that is NaN: got %v", name, err)
		}
		if _, err := l.Eval(nil, nil); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s of nothing: got %v", name, err)
		}
		if wants := columnsOf(l); reads != wants {
			t.Errorf("%s reads %d columns, want %d", name, reads, wants)
		}
	}
}

func columnsOf(l Loss) int {
	switch l := l.(type) {
	case *CrossEntropy, *SLiC, *SimPO, *ORPO:
		return 0
	case *DPO, *IPO, *Hinge, *KTO, *ForwardKL:
		return 1
	case *ReverseKL:
		if l.IsCorrection {
			return 2
		}
		return 1
	case *GRPO:
		if l.Beta > 0 {
			return 3
		}
	}
	return 2
}

func TestPairsAndRowsThatAreNone(t *testing.T) {
	one := []float64{1}
	for name, c := range map[string]struct {
		l    Loss
		step []Datum
		says string
	}{
		"three sequences":          {newSimPO(), []Datum{{Weights: one}, {Weights: one}, {Weights: one}}, "3 sequences, which are not pairs"},
		"two halves of two pairs":  {newSimPO(), []Datum{{Weights: one, Group: 1}, {Weights: one, Group: 2}}, "not of one pair"},
		"a side without tokens":    {newORPO(), []Datum{{Weights: one}, {Weights: []float64{0}}}, "pair 0 has a side without any weight"},
		"nothing but mismatched":   {newKTO(), []Datum{{Weights: one, RefLogprobs: []float64{-1}, Mismatched: true}}, "none is a row"},
		"dro without its strength": {&DRO{}, []Datum{{Weights: one}}, "beta: missing"},
	} {
		now := make([][]float64, len(c.step))
		for i := range now {
			now[i] = []float64{-1}
		}
		if _, err := c.l.Eval(now, c.step); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %v, want it to say %q", name, err, c.says)
		}
	}
}

func TestParametersOutOfBoundsAreFaultsByKey(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	grpo := func(change func(*GRPO)) Loss { l := newGRPO(); change(l); return l }
	for name, c := range map[string]struct {
		l   Loss
		key string
	}{
		"ppo below 0":          {&PPO{-0.1, 1.2}, "clip_low_threshold"},
		"ppo above 1":          {&PPO{1.1, 1.2}, "clip_low_threshold"},
		"ppo below 1":          {&PPO{0.8, 0.9}, "clip_high_threshold"},
		"ppo without a bound":  {&PPO{0.8, inf}, "clip_high_threshold"},
		"cispo turned round":   {&CISPO{2, 1}, "clip_low_threshold"},
		"cispo below 0":        {&CISPO{0, -1}, "clip_high_threshold"},
		"dro below 0":          {&DRO{new(-0.1)}, "beta"},
		"dro of NaN":           {&DRO{&nan}, "beta"},
		"dppo above 1":         {&DPPO{0.1, 1.5}, "delta_high"},
		"dppo of NaN":          {&DPPO{nan, 0.1}, "delta_low"},
		"grpo below 0":         {grpo(func(l *GRPO) { l.Beta = -1 }), "beta"},
		"grpo of a word":       {grpo(func(l *GRPO) { l.AggType = "TOKEN_MEAN" }), "agg_type"},
		"grpo of another word": {grpo(func(l *GRPO) { l.RatioType = "mean" }), "ratio_type"},
		"grpo's horizon":       {grpo(func(l *GRPO) { l.Horizon = -1 }), "horizon"},
		"dpo of 0":             {&DPO{Variant: Sigmoid}, "beta"},
		"dpo of halves":        {&DPO{Beta: 0.1, LabelSmoothing: 0.5, Variant: Sigmoid}, "label_smoothing"},
		"dpo of a word":        {&DPO{Beta: 0.1, Variant: "ipo"}, "variant"},
		"dpo's gamma":          {&DPO{Beta: 0.1, Variant: Sigmoid, Gamma: -1}, "gamma"},
		"dpo's sft":            {&DPO{Beta: 0.1, Variant: Sigmoid, SFTWeight: nan}, "sft_weight"},
		"ipo's sft":            {&IPO{Beta: 0.1, SFTWeight: -1}, "sft_weight"},
		"hinge's sft":          {&Hinge{Beta: 0.1, SFTWeight: -1}, "sft_weight"},
		"simpo's sft":          {&SimPO{Beta: 1, SFTWeight: inf}, "sft_weight"},
		"ipo of 0":             {&IPO{}, "beta"},
		"hinge of infinity":    {&Hinge{Beta: inf}, "beta"},
		"slic below 0":         {&SLiC{Delta: -1}, "delta"},
		"slic's lambda":        {&SLiC{Lambda: -1}, "lambda"},
		"simpo of 0":           {&SimPO{}, "beta"},
		"simpo's gamma":        {&SimPO{Beta: 1, Gamma: -1}, "gamma"},
		"orpo of 0":            {&ORPO{}, "beta"},
		"kto of 0":             {&KTO{}, "beta"},
		"kto's good":           {&KTO{1, -1, 1}, "desirable_weight"},
		"kto's bad":            {&KTO{1, 1, nan}, "undesirable_weight"},
		"reverse_kl of a word": {&ReverseKL{Estimator: "k1", Reduction: Sum}, "estimator"},
		"reverse_kl's sum":     {&ReverseKL{Estimator: K2, Reduction: "mean"}, "reduction"},
	} {
		now, step := fullStep(rand.New(rand.NewPCG(19, 20)), 2)
		_, err := c.l.Eval(now, step)
		var f *Fault
		if !errors.As(err, &f) || f.Key != c.key || !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: got %v, want a fault of %s", name, err, c.key)
		}
		if err := c.l.(Checker).Check(); err == nil {
			t.Errorf("%s: Check passes", name)
		}
	}
}

// A token that is far from its policy overflows; with the advantage on the clipped side nothing comes of it.
func TestRatiosThatOverflow(t *testing.T) {
	step := func(advantage float64) []Datum {
		return []Datum{{Weights: []float64{1, 1}, OldLogprobs: []float64{-2000, -1}, Advantages: []float64{advantage, 1}}}
	}
	now := [][]float64{{-1, -1}}
	grpo := newGRPO()
	grpo.AggType = FixedHorizon
	for name, l := range map[string]Loss{"ppo": newPPO(), "grpo": grpo, "cispo": newCISPO()} {
		for _, advantage := range []float64{1, 0} {
			got, err := l.Eval(now, step(advantage))
			if err != nil {
				t.Errorf("%s with advantage %v: %v", name, advantage, err)
			}
			for m, v := range got.Metrics {
				if math.IsNaN(v) || math.IsInf(v, 0) {
					t.Errorf("%s: metric %s is %v", name, m, v)
				}
			}
		}
	}
	for name, l := range map[string]Loss{"ppo": newPPO(), "grpo": grpo} {
		if _, err := l.Eval(now, step(-1)); !errors.Is(err, ErrNonFinite) {
			t.Errorf("%s with advantage -1: got %v, want ErrNonFinite", name, err)
		}
	}
}
