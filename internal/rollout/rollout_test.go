package rollout

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"trainer/loss"
	"trainer/recipe"
)

// group makes members of one token each out of rewards; NaN is one without.
func group(rewards ...float64) Group {
	g := Group{Prompt: []int32{1}}
	for i, r := range rewards {
		m := Member{Sequence: Sequence{Tokens: []int32{int32(10 + i)}, Logprobs: []float64{-1}, Stop: Stopped}, Reward: r}
		if math.IsNaN(r) {
			m.Reward, m.Unscored = 0, "no target"
		}
		g.Members = append(g.Members, m)
	}
	return g
}

func advantages(g Group) []float64 {
	var out []float64
	for _, m := range g.Members {
		out = append(out, m.Advantage)
	}
	return out
}

func defaults() (*recipe.Rollout, *recipe.Advantage) {
	return &recipe.Rollout{SamplingParams: recipe.Sampling{MaxTokens: 10}, Truncated: "keep", OnError: recipe.OnError{MinGroupSize: 2}},
		&recipe.Advantage{Baseline: loss.GroupMean, Scale: loss.GroupStd, ZeroVariance: "drop"}
}

// The figures are those of the formulas by hand: (R − mean)/(s + 1e-4), s over G − 1.
func TestWeigh(t *testing.T) {
	nan, std := math.NaN(), 1/(math.Sqrt(0.5)+1e-4)
	for _, c := range []struct {
		name    string
		change  func(*recipe.Rollout, *recipe.Advantage)
		rewards []float64
		drop    Drop
		want    []float64
	}{
		{"a pair", nil, []float64{0, 1}, Kept, []float64{-0.5 * std, 0.5 * std}},
		{"equal rewards teach nothing", nil, []float64{1, 1, 1}, ZeroVariance, []float64{0, 0, 0}},
		{"which a recipe can keep", func(_ *recipe.Rollout, a *recipe.Advantage) { a.ZeroVariance = "keep" }, []float64{1, 1}, Kept, []float64{0, 0}},
		{"equal rewards are compared with the batch", func(_ *recipe.Rollout, a *recipe.Advantage) { a.Baseline, a.Scale = loss.None, loss.None }, []float64{1, 1}, Kept, []float64{1, 1}},
		{"one without a reward is in no mean", nil, []float64{0, nan, 1}, Kept, []float64{-0.5 * std, 0, 0.5 * std}},
		{"too few are left", nil, []float64{0, nan, nan}, TooFew, []float64{0, 0, 0}},
		{"none is left", func(r *recipe.Rollout, _ *recipe.Advantage) { r.OnError.MinGroupSize = 0 }, []float64{nan}, TooFew, []float64{0}},
		{"leave one out", func(_ *recipe.Rollout, a *recipe.Advantage) { a.Baseline, a.Scale = loss.LeaveOneOut, loss.None }, []float64{1, 0, 0.5}, Kept, []float64{0.75, -0.75, 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, a := defaults()
			if c.change != nil {
				c.change(r, a)
			}
			gs := []Group{group(c.rewards...)}
			if err := Weigh(gs, r, a); err != nil {
				t.Fatal(err)
			}
			if got := advantages(gs[0]); gs[0].Dropped != c.drop || !near(got, c.want) {
				t.Errorf("got %v, dropped %q; want %v, %q", got, gs[0].Dropped, c.want, c.drop)
			}
			for _, m := range gs[0].Members {
				if want := c.drop == Kept && m.Unscored == ""; m.Trained != want {
					t.Errorf("%+v: trained %v, want %v", m, m.Trained, want)
				}
			}
			again := []Group{group(c.rewards...)}
			again[0].Members[0].Advantage, again[0].Members[0].Trained = 9, true
			if err := Weigh(again, r, a); err != nil || !reflect.DeepEqual(again, gs) {
				t.Errorf("what a member had before is left in it: %+v, %v", again, err)
			}
		})
	}
}

func near(a, b []float64) bool {
	return slices.EqualFunc(a, b, func(x, y float64) bool { return math.Abs(x-y) < 1e-12 })
}

func TestCutCompletions(t *testing.T) {
	long := func() []Group {
		g := group(1, 0, 0)
		g.Members[0].Tokens, g.Members[0].Logprobs, g.Members[0].Stop = make([]int32, 10), make([]float64, 10), Cut
		g.Members[1].Tokens, g.Members[1].Logprobs = make([]int32, 8), make([]float64, 8)
		return []Group{g}
	}
	r, a := defaults()
	a.Scale = loss.None
	r.Truncated = "mask"
	gs := long()
	if err := Weigh(gs, r, a); err != nil {
		t.Fatal(err)
	}
	if m := gs[0].Members[0]; m.Trained || math.Abs(m.Advantage-2.0/3) > 1e-12 || !gs[0].Members[1].Trained {
		t.Errorf("masked: %+v, want it in the mean and not in the loss", gs[0].Members)
	}
	r.Truncated, r.TruncatedBuffer = "penalise", 4
	gs = long()
	Penalise(gs, r)
	var got []float64
	for _, m := range gs[0].Members {
		got = append(got, m.Reward)
	}
	if want := []float64{0, -0.5, 0}; !near(got, want) {
		t.Errorf("penalised rewards %v, want %v: from 0 at 6 tokens to -1 at 10", got, want)
	}
}

// Position t speaks of token t+1: with a prompt of p tokens the first p-1 positions are not trained.
func TestDatumIsAligned(t *testing.T) {
	m := Member{Sequence: Sequence{Tokens: []int32{7, 8}, Logprobs: []float64{-0.25, -0.5}}, Advantage: 3}
	got := Datum([]int32{1, 2, 3}, m, 5)
	want := loss.Datum{Input: []int32{1, 2, 3, 7}, Targets: []int32{2, 3, 7, 8}, Group: 5, Weights: []float64{0, 0, 1, 1},
		Advantages: []float64{0, 0, 3, 3}, OldLogprobs: []float64{0, 0, -0.25, -0.5}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if one := Datum([]int32{4}, m, 0); !reflect.DeepEqual(one.Weights, []float64{1, 1}) {
		t.Errorf("a prompt of one token: %+v", one)
	}
}

func TestMinibatchesKeepGroupsWhole(t *testing.T) {
	r, a := defaults()
	gs := []Group{group(0, 1), group(1, 1), group(1, 0), group(0, 1)}
	for i := range gs {
		gs[i].Row = i
	}
	if err := Weigh(gs, r, a); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		n    int
		want string
	}{{1, "[[0 2 3]]"}, {2, "[[0] [2 3]]"}, {3, "[[0] [2] [3]]"}, {4, "[[] [0] [2] [3]]"}} {
		var got [][]int
		for i := range c.n {
			rows := []int{}
			for _, g := range Minibatch(gs, i, c.n) {
				rows = append(rows, g.Row)
			}
			got = append(got, rows)
		}
		if fmt.Sprint(got) != c.want {
			t.Errorf("%d minibatches: groups %v, want %s", c.n, got, c.want)
		}
	}
}

// However a step is cut into requests, their gradients add up to those of one: the loss itself is the judge.
func TestASplitStepIsOneStep(t *testing.T) {
	r, a := defaults()
	r.OnError.MinGroupSize = 1
	gs := []Group{group(0, 1, 0.5), group(1, 0), group(0.25, 1)}
	n := 1
	for i := range gs {
		for j := range gs[i].Members {
			m := &gs[i].Members[j]
			m.Tokens, m.Logprobs = nil, nil
			for k := range n {
				m.Tokens, m.Logprobs = append(m.Tokens, int32(k)), append(m.Logprobs, -0.1*float64(k+j+1))
			}
			n = n%4 + 1
		}
	}
	if err := Weigh(gs, r, a); err != nil {
		t.Fatal(err)
	}
	step := Step(gs)
	now := make([][]float64, len(step))
	for i, d := range step {
		now[i] = make([]float64, len(d.Weights))
		for t, q := range d.OldLogprobs {
			now[i][t] = q + 0.3*math.Sin(float64(3*i+t))
		}
		step[i].RefLogprobs = make([]float64, len(d.Weights))
	}
	for _, c := range []struct {
		loss      loss.Loss
		reduction string
	}{
		{&loss.GRPO{ClipLowThreshold: 0.8, ClipHighThreshold: 1.28, Beta: 0.1, AggType: loss.TokenMean, RatioType: loss.TokenRatio}, ""},
		{&loss.GRPO{ClipLowThreshold: 0.8, ClipHighThreshold: 1.28, Beta: 0.1, AggType: loss.SequenceMean, RatioType: loss.SequenceRatio}, ""},
		{&loss.PPO{ClipLowThreshold: 0.8, ClipHighThreshold: 1.2}, loss.Sum},
		{&loss.PPO{ClipLowThreshold: 0.8, ClipHighThreshold: 1.2}, loss.TokenMean},
		{&loss.CISPO{ClipHighThreshold: 4}, loss.SequenceMean},
		{&loss.DRO{Beta: new(0.05)}, loss.TokenMean},
		{&loss.ImportanceSampling{}, loss.SequenceMean},
	} {
		one, value := gradients(t, now, step, c.loss, c.reduction, 1)
		for n := 2; n <= len(step); n++ {
			got, v := gradients(t, now, step, c.loss, c.reduction, n)
			if math.Abs(v-value) > 1e-12 {
				t.Errorf("%T %s in %d requests: value %v, want %v", c.loss, c.reduction, n, v, value)
			}
			for i := range got {
				if !near(got[i], one[i]) {
					t.Errorf("%T %s in %d requests: sequence %d has %v, want %v", c.loss, c.reduction, n, i, got[i], one[i])
				}
			}
		}
	}
	// The reduction itself: token_mean is the sum over the number of tokens, sequence_mean the mean of the means.
	plain, _ := gradients(t, now, step, &loss.ImportanceSampling{}, loss.Sum, 1)
	mean, _ := gradients(t, now, step, &loss.ImportanceSampling{}, loss.TokenMean, 3)
	each, _ := gradients(t, now, step, &loss.ImportanceSampling{}, loss.SequenceMean, 3)
	total := 0
	for _, d := range step {
		total += len(d.Weights)
	}
	for i, d := range step {
		for k := range d.Weights {
			if math.Abs(mean[i][k]-plain[i][k]/float64(total)) > 1e-12 || math.Abs(each[i][k]-plain[i][k]/float64(len(d.Weights)*len(step))) > 1e-12 {
				t.Fatalf("sequence %d: sum %v, token_mean %v, sequence_mean %v", i, plain[i], mean[i], each[i])
			}
		}
	}
}

func gradients(t *testing.T, now [][]float64, step []loss.Datum, l loss.Loss, reduction string, n int) ([][]float64, float64) {
	t.Helper()
	requests, err := Split(step, l, reduction, n)
	if err != nil {
		t.Fatal(err)
	}
	var out [][]float64
	value := 0.0
	for _, q := range requests {
		res, err := q.Loss.Eval(now[len(out):len(out)+len(q.Data)], q.Data)
		if err != nil {
			t.Fatal(err)
		}
		out, value = append(out, res.Grads...), value+res.Value
	}
	if len(out) != len(step) {
		t.Fatalf("%d sequences in %d requests, want %d", len(out), n, len(step))
	}
	return out, value
}

func TestWhatCannotBeSplit(t *testing.T) {
	gs := []Group{group(0, 1)}
	r, a := defaults()
	if err := Weigh(gs, r, a); err != nil {
		t.Fatal(err)
	}
	horizon := &loss.GRPO{ClipLowThreshold: 0.8, ClipHighThreshold: 1.28, AggType: loss.FixedHorizon, RatioType: loss.TokenRatio}
	if _, err := Split(Step(gs), horizon, "", 1); err != nil {
		t.Errorf("one request: %v", err)
	}
	if _, err := Split(Step(gs), horizon, "", 2); err == nil || !strings.Contains(err.Error(), "fixed_horizon is one request a step") {
		t.Errorf("two requests: %v", err)
	}
	if _, err := Split(Step(gs), &loss.DRO{Beta: new(0.1)}, loss.SequenceMean, 1); err == nil {
		t.Error("a sequence_mean of dro was made")
	}
}

func TestMetrics(t *testing.T) {
	r, a := defaults()
	gs := []Group{group(0, 1), group(1, 1), group(math.NaN(), math.NaN()), {Dropped: Unsampled}}
	gs[0].Members[0].Parts = []Part{{Name: "exact", Value: 0, Scored: true}, {Name: "judge", Why: "timeout"}}
	gs[0].Members[1].Parts = []Part{{Name: "exact", Value: 1, Scored: true}, {Name: "judge", Why: "no compiler at 10:32"}}
	gs[1].Members[0].Tokens, gs[1].Members[0].Logprobs, gs[1].Members[0].Stop = []int32{1, 2, 3}, []float64{-1, -2, -3}, Cut
	if err := Weigh(gs, r, a); err != nil {
		t.Fatal(err)
	}
	want := map[string]float64{
		"reward/mean": 0.75, "reward/exact/mean": 0.5, "reward/judge/unscored/timeout": 1, "reward/judge/unscored/other": 1, "reward/unscored": 2,
		"groups": 4, "groups/trained": 1, "groups/too_few": 1, "groups/unsampled": 1, "groups/zero_variance_fraction": 1.0 / 3,
		"completion/length": 8.0 / 6, "completion/truncated_fraction": 1.0 / 6, "entropy/sampled": 11.0 / 8,
	}
	if got := Metrics(gs); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}
