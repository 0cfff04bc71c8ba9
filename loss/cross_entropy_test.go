package loss

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func TestCrossEntropyGradientIsTheSlopeOfItsValue(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	now, step := randomStep(random, 5, 20)
	of := &CrossEntropy{}
	got, err := of.Eval(now, step)
	if err != nil {
		t.Fatal(err)
	}
	const h = 1e-4
	for i := range now {
		for p := range now[i] {
			at := now[i][p]
			value := func(x float64) float64 {
				now[i][p] = x
				defer func() { now[i][p] = at }()
				r, err := of.Eval(now, step)
				if err != nil {
					t.Fatal(err)
				}
				return r.Value
			}
			slope := (value(at+h) - value(at-h)) / (2 * h)
			if math.Abs(slope-got.Grads[i][p]) > 1e-7*(1+math.Abs(slope)) {
				t.Errorf("sequence %d, position %d: gradient %v, slope %v", i, p, got.Grads[i][p], slope)
			}
		}
	}
}

func TestCrossEntropyOfAStepIsTheSumOfItsParts(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	of := &CrossEntropy{}
	for range 50 {
		now, step := randomStep(random, 2+random.IntN(6), 12)
		whole, err := of.Eval(now, step)
		if err != nil {
			t.Fatal(err)
		}
		at := 1 + random.IntN(len(step)-1)
		head, err := of.Eval(now[:at], step[:at])
		if err != nil {
			t.Fatal(err)
		}
		tail, err := of.Eval(now[at:], step[at:])
		if err != nil {
			t.Fatal(err)
		}
		near(t, "value", head.Value+tail.Value, whole.Value)
		for _, name := range []string{"valid_tokens", "weight_sum"} {
			near(t, name, head.Metrics[name]+tail.Metrics[name], whole.Metrics[name])
		}
		parts := append(slices.Clone(head.Grads), tail.Grads...)
		for i := range parts {
			if !slices.Equal(parts[i], whole.Grads[i]) {
				t.Errorf("sequence %d: gradient %v in parts, %v whole", i, parts[i], whole.Grads[i])
			}
		}
	}
}

func TestCrossEntropyLeavesMaskedPositionsOut(t *testing.T) {
	step := []Datum{{Weights: []float64{0, 0, 0, 1}}}
	got, err := (&CrossEntropy{}).Eval([][]float64{{math.NaN(), math.Inf(-1), -1e300, -2}}, step)
	if err != nil {
		t.Fatal(err)
	}
	if got.Value != 2 || !slices.Equal(got.Grads[0], []float64{0, 0, 0, -1}) {
		t.Errorf("value %v, gradient %v", got.Value, got.Grads[0])
	}
}

func TestCrossEntropyErrors(t *testing.T) {
	one := []float64{1}
	for name, c := range map[string]struct {
		now  [][]float64
		step []Datum
		want error
		says string
	}{
		"no sequences":                         {nil, nil, ErrInvalid, "empty step"},
		"more log-probabilities than data":     {[][]float64{{-1}, {-1}}, []Datum{{Weights: one}}, ErrInvalid, "2 sequences for a step of 1"},
		"nil weights":                          {[][]float64{{-1}}, []Datum{{}}, ErrInvalid, "sequence 0: no weights"},
		"an empty sequence":                    {[][]float64{{}}, []Datum{{Weights: []float64{}}}, ErrInvalid, "no positions"},
		"too few log-probabilities":            {[][]float64{{-1}, {-1}}, []Datum{{Weights: one}, {Weights: []float64{1, 1}}}, ErrInvalid, "sequence 1: 1 log-probabilities, 2 weights"},
		"too few targets":                      {[][]float64{{-1, -1}}, []Datum{{Targets: []int32{1}, Weights: []float64{1, 1}}}, ErrInvalid, "1 target tokens"},
		"too many input tokens":                {[][]float64{{-1}}, []Datum{{Input: []int32{1, 2}, Weights: one}}, ErrInvalid, "2 input tokens"},
		"a negative weight":                    {[][]float64{{-1, -1}}, []Datum{{Weights: []float64{1, -1}}}, ErrInvalid, "position 1: weight -1"},
		"a weight that is not a number":        {[][]float64{{-1}}, []Datum{{Weights: []float64{math.NaN()}}}, ErrInvalid, "weight NaN"},
		"an infinite weight":                   {[][]float64{{-1}}, []Datum{{Weights: []float64{math.Inf(1)}}}, ErrInvalid, "weight +Inf"},
		"a log-probability that is no number":  {[][]float64{{-1}, {-1, math.NaN()}}, []Datum{{Weights: one}, {Weights: []float64{1, 1}}}, ErrNonFinite, "sequence 1, position 1: log-probability NaN"},
		"an impossible token":                  {[][]float64{{math.Inf(-1)}}, []Datum{{Weights: one}}, ErrNonFinite, "-Inf"},
		"a weight beyond float32":              {[][]float64{{0}}, []Datum{{Weights: []float64{3.5e38}}}, ErrNonFinite, "the gradient is -3.5e+38"},
		"a value beyond float32 by its weight": {[][]float64{{-10}}, []Datum{{Weights: []float64{3e38}}}, ErrNonFinite, "the loss of the step is 3e+39"},
	} {
		_, err := (&CrossEntropy{}).Eval(c.now, c.step)
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %v, want %v saying %q", name, err, c.want, c.says)
		}
	}
}

func TestTheLargestFloat32IsStillALoss(t *testing.T) {
	got, err := (&CrossEntropy{}).Eval([][]float64{{-1}}, []Datum{{Weights: []float64{math.MaxFloat32}}})
	if err != nil || got.Value != math.MaxFloat32 {
		t.Errorf("value %v, %v", got.Value, err)
	}
}

// randomStep is a step of the given number of sequences, up to longest positions each, a third of them masked; every
// sequence has a weight.
func randomStep(random *rand.Rand, sequences, longest int) (now [][]float64, step []Datum) {
	for range sequences {
		n := 1 + random.IntN(longest)
		logprobs, weights := make([]float64, n), make([]float64, n)
		for p := range n {
			logprobs[p] = -6 * random.Float64()
			if p == n-1 || random.IntN(3) > 0 {
				weights[p] = 0.1 + 2*random.Float64()
			}
		}
		now = append(now, logprobs)
		step = append(step, Datum{Input: make([]int32, n), Targets: make([]int32, n), Weights: weights})
	}
	return now, step
}
