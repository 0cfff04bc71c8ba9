package loss

import (
	"encoding/json"
	"testing"
)

type advantageCase struct {
	Name   string
	Method string
	Params struct {
		Eps    float64
		Gamma  *float64
		KLCoef float64 `json:"kl_coef"`
	}
	Groups  [][]float64
	Samples []struct {
		Reward    float64
		Mask      []float64
		Old       []float64 `json:"logprobs"`
		Reference []float64 `json:"reference_logprobs"`
	}
	Expected struct {
		Advantages [][]float64
		Returns    [][]float64
		Degenerate []bool
	}
}

// methods are the files' names of what the recipe says in two words.
var methods = map[string]Advantage{
	"grpo":    {Baseline: GroupMean, Scale: GroupStd},
	"dr_grpo": {Baseline: GroupMean, Scale: None},
	"rloo":    {Baseline: LeaveOneOut, Scale: None},
}

func TestGoldenAdvantages(t *testing.T) {
	var file struct{ Cases []advantageCase }
	readVectors(t, "advantages", &file)
	if len(file.Cases) < 28 {
		t.Fatalf("only %d cases", len(file.Cases))
	}
	for _, c := range file.Cases {
		t.Run(c.Name, func(t *testing.T) {
			if c.Method == "reinforce_pp" {
				c.reinforce(t)
				return
			}
			a, ok := methods[c.Method]
			if !ok {
				t.Fatalf("unknown method %q", c.Method)
			}
			a.Eps = c.Params.Eps
			got, err := a.Of(c.Groups, nil)
			if err != nil {
				t.Fatal(err)
			}
			nearAll(t, "advantage", got, c.Expected.Advantages)
			for g, want := range c.Expected.Degenerate {
				if Flat(c.Groups[g]) != want {
					t.Errorf("group %d, %v: flat is %v", g, c.Groups[g], !want)
				}
			}
		})
	}
}

func (c advantageCase) reinforce(t *testing.T) {
	gamma := 1.0
	set(&gamma, c.Params.Gamma)
	var step []Datum
	var returns, trained [][]float64
	for i, s := range c.Samples {
		d := Datum{Weights: s.Mask, OldLogprobs: s.Old, RefLogprobs: s.Reference}
		r, err := Returns(s.Reward, d, c.Params.KLCoef, gamma)
		if err != nil {
			t.Fatal(err)
		}
		step, returns = append(step, d), append(returns, r)
		// Under the mask the reference has what its recursion happens to leave there; nobody reads it.
		trained = append(trained, under(s.Mask, c.Expected.Returns[i]))
	}
	nearAll(t, "return", returns, trained)
	got, err := Whiten(returns, step)
	if err != nil {
		t.Fatal(err)
	}
	nearAll(t, "advantage", got, c.Expected.Advantages)
	if c.Params.KLCoef != 0 || gamma != 1 {
		return
	}
	// Without discount and KL term it is the words of the recipe.
	rewards, tokens := make([][]float64, len(step)), make([][]int, len(step))
	for i, s := range c.Samples {
		n := 0
		for _, w := range s.Mask {
			n += int(w)
		}
		rewards[i], tokens[i] = []float64{s.Reward}, []int{n}
	}
	flat, err := Advantage{Baseline: BatchMean, Scale: BatchStd}.Of(rewards, tokens)
	if err != nil {
		t.Fatal(err)
	}
	for i := range flat {
		near(t, "advantage of a completion", flat[i][0], got[i][len(got[i])-1])
	}
}

func under(mask, x []float64) []float64 {
	out := make([]float64, len(x))
	for t, w := range mask {
		if w != 0 {
			out[t] = x[t]
		}
	}
	return out
}

func nearAll(t *testing.T, what string, got, want [][]float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d rows, want %d", what, len(got), len(want))
	}
	for i := range want {
		if len(got[i]) != len(want[i]) {
			t.Fatalf("%s: row %d has %d values, want %d", what, i, len(got[i]), len(want[i]))
		}
		for p := range want[i] {
			near(t, what, got[i][p], want[i][p])
		}
	}
}

// plumbing is one case of plumbing.json: what it reads depends on its kind.
type plumbing struct {
	Name   string
	Kind   string
	Params struct {
		Mode      string
		Cap, Coef float64
		KLCoef    float64 `json:"kl_coef"`
		Discount  float64
		MaxLength int `json:"max_length"`
		Cache     int
	}
	Inputs struct {
		Train     []float64 `json:"train_logprobs"`
		Rollout   []float64 `json:"rollout_logprobs"`
		Mask      []float64
		Advantage float64
		Samples   []struct {
			Old        []float64 `json:"logprobs"`
			Mask       []float64
			Reference  []float64 `json:"reference_logprobs"`
			Advantages []float64
		}
		Lengths     []int
		Correct     []bool
		Groups      [][]float64
		StopReasons []string `json:"stop_reasons"`
		Weights     [][]float64
		Old         []float64 `json:"logprobs"`
		Teacher     []float64 `json:"teacher_logprobs"`
	}
	// Expected has lists in some kinds and lists of lists in others.
	Expected struct {
		Weights, Advantages json.RawMessage
		Drift               float64 `json:"kl_policy_base"`
		Penalty, Reward     []float64
		Keep                []bool
	}
}

func TestGoldenPlumbing(t *testing.T) {
	var file struct{ Cases []plumbing }
	readVectors(t, "plumbing", &file)
	kinds := map[string]func(*testing.T, plumbing){
		"tis": checkImportance, "kl_in_advantage": checkKL, "soft_overlong": checkOverlong, "length_reward": checkLengths,
		"dynamic_sampling": checkFlat, "overlong_filter": checkCut, "distill_advantage": checkDistill,
	}
	for _, c := range file.Cases {
		t.Run(c.Name, func(t *testing.T) {
			f := kinds[c.Kind]
			if f == nil {
				t.Fatalf("unknown kind %q", c.Kind)
			}
			f(t, c)
		})
	}
	if len(file.Cases) < 11 {
		t.Errorf("only %d cases", len(file.Cases))
	}
}

func decoded[T any](t *testing.T, raw json.RawMessage) (v T) {
	t.Helper()
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func checkImportance(t *testing.T, c plumbing) {
	d := Datum{Weights: c.Inputs.Mask, OldLogprobs: c.Inputs.Rollout}
	got, err := ImportanceWeights(c.Inputs.Train, d, c.Params.Mode, c.Params.Cap)
	if err != nil {
		t.Fatal(err)
	}
	nearAll(t, "weight", [][]float64{got}, [][]float64{decoded[[]float64](t, c.Expected.Weights)})
	for i := range got {
		got[i] *= c.Inputs.Advantage
	}
	nearAll(t, "advantage", [][]float64{got}, [][]float64{decoded[[]float64](t, c.Expected.Advantages)})
}

func checkKL(t *testing.T, c plumbing) {
	var step []Datum
	for _, s := range c.Inputs.Samples {
		step = append(step, Datum{Weights: s.Mask, Advantages: s.Advantages, OldLogprobs: s.Old, RefLogprobs: s.Reference})
	}
	got, drift, err := AddKL(step, c.Params.KLCoef, c.Params.Discount)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "drift", drift, c.Expected.Drift)
	want := decoded[[][]float64](t, c.Expected.Advantages)
	for i := range want {
		want[i] = under(step[i].Weights, want[i]) // the reference lets penalties fall on untrained tokens before them
	}
	nearAll(t, "advantage", got, want)
}

func checkOverlong(t *testing.T, c plumbing) {
	for i, n := range c.Inputs.Lengths {
		near(t, "penalty", OverlongPenalty(n, c.Params.MaxLength, c.Params.Cache), c.Expected.Penalty[i])
	}
}

func checkLengths(t *testing.T, c plumbing) {
	got, err := LengthRewards(c.Inputs.Lengths, c.Inputs.Correct)
	if err != nil {
		t.Fatal(err)
	}
	nearAll(t, "reward", [][]float64{got}, [][]float64{c.Expected.Reward})
}

func checkFlat(t *testing.T, c plumbing) {
	for g, keep := range c.Expected.Keep {
		if Flat(c.Inputs.Groups[g]) == keep {
			t.Errorf("%v: kept is %v, want %v", c.Inputs.Groups[g], !keep, keep)
		}
	}
}

func checkCut(t *testing.T, c plumbing) {
	var got [][]float64
	for i, why := range c.Inputs.StopReasons {
		d := Datum{Weights: c.Inputs.Weights[i]}
		if why == "length" {
			d = d.Untrained()
		}
		got = append(got, d.Weights)
	}
	nearAll(t, "weight", got, decoded[[][]float64](t, c.Expected.Weights))
}

func checkDistill(t *testing.T, c plumbing) {
	d := Datum{Weights: c.Inputs.Mask, OldLogprobs: c.Inputs.Old, TeacherLogprobs: c.Inputs.Teacher}
	got, err := DistillAdvantage(d, c.Params.Coef)
	if err != nil {
		t.Fatal(err)
	}
	nearAll(t, "advantage", [][]float64{got}, [][]float64{decoded[[]float64](t, c.Expected.Advantages)})
}
