package loss

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func TestReduceByHand(t *testing.T) {
	step := []Datum{
		{Weights: []float64{0, 1, 1, 2}},
		{Weights: []float64{0, 0}},
		{Weights: []float64{1}},
	}
	for how, want := range map[string][][]float64{
		Sum:          {{0, 1, 1, 2}, {0, 0}, {1}},
		TokenMean:    {{0, 0.2, 0.2, 0.4}, {0, 0}, {0.2}},
		SequenceMean: {{0, 0.125, 0.125, 0.25}, {0, 0}, {0.5}},
	} {
		got, err := Reduce(step, how)
		if err != nil {
			t.Fatal(err)
		}
		for i := range want {
			if !slices.Equal(got[i].Weights, want[i]) {
				t.Errorf("%s: sequence %d has %v, want %v", how, i, got[i].Weights, want[i])
			}
		}
	}
	if !slices.Equal(step[0].Weights, []float64{0, 1, 1, 2}) {
		t.Errorf("the step that was given now has %v", step[0].Weights)
	}
}

// A row of 1 trained token beside one of 99 is where a mean of means and a mean differ most.
func TestSplittingAStepChangesNothing(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	short, long := Datum{Weights: []float64{1}}, Datum{Weights: slices.Repeat([]float64{1}, 99)}
	now, step := randomStep(random, 6, 30)
	step = append(step, short, long)
	now = append(now, []float64{-3}, slices.Repeat([]float64{-0.5}, 99))
	for how, want := range map[string]float64{
		TokenMean:    meanOverTokens(now, step),
		SequenceMean: meanOverSequences(now, step),
	} {
		scaled, err := Reduce(step, how)
		if err != nil {
			t.Fatal(err)
		}
		for at := 1; at < len(step); at++ {
			head, err := (&CrossEntropy{}).Eval(now[:at], scaled[:at])
			if err != nil {
				t.Fatal(err)
			}
			tail, err := (&CrossEntropy{}).Eval(now[at:], scaled[at:])
			if err != nil {
				t.Fatal(err)
			}
			near(t, how, head.Value+tail.Value, want)
			near(t, how+" weights", head.Metrics["weight_sum"]+tail.Metrics["weight_sum"], 1)
		}
	}
}

func TestReduceDoesNotDependOnTheOrderOfRows(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	_, step := randomStep(random, 8, 30)
	order := random.Perm(len(step))
	shuffled := make([]Datum, len(step))
	for to, from := range order {
		shuffled[to] = step[from]
	}
	for _, how := range []string{Sum, TokenMean, SequenceMean} {
		want, err := Reduce(step, how)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Reduce(shuffled, how)
		if err != nil {
			t.Fatal(err)
		}
		for to, from := range order {
			for p, w := range want[from].Weights {
				near(t, how, got[to].Weights[p], w)
			}
		}
	}
}

func TestAShorterLastStepHasItsOwnDivisor(t *testing.T) {
	_, step := randomStep(rand.New(rand.NewPCG(9, 10)), 10, 20)
	for from := 0; from < len(step); from += 4 {
		got, err := Reduce(step[from:min(from+4, len(step))], TokenMean)
		if err != nil {
			t.Fatal(err)
		}
		total := 0.0
		for _, d := range got {
			for _, w := range d.Weights {
				total += w
			}
		}
		near(t, "weights of a step", total, 1)
	}
}

func TestReduceErrors(t *testing.T) {
	one := []Datum{{Weights: []float64{1}}}
	for name, c := range map[string]struct {
		step []Datum
		how  string
		says string
	}{
		"an empty step":                    {nil, Sum, "empty step"},
		"no weight anywhere, summed":       {[]Datum{{Weights: []float64{0}}}, Sum, "none of its 1 sequences"},
		"no weight anywhere, token mean":   {[]Datum{{Weights: []float64{0}}, {Weights: []float64{0}}}, TokenMean, "none of its 2 sequences"},
		"no weight anywhere, per sequence": {[]Datum{{Weights: []float64{0}}}, SequenceMean, "none of its 1 sequences"},
		"a negative weight":                {[]Datum{{Weights: []float64{-1}}}, Sum, "weight -1"},
		"nil weights":                      {[]Datum{{}}, Sum, "no weights"},
		"an infinite sum":                  {[]Datum{{Weights: []float64{1e308, 1e308}}}, TokenMean, "more than a float64"},
		"a word that is no reduction":      {one, "mean", `"mean" is not a reduction; one of sum, token_mean, sequence_mean`},
	} {
		if _, err := Reduce(c.step, c.how); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %v, want it to say %q", name, err, c.says)
		}
	}
}

func TestTinyWeightsAreStillAMean(t *testing.T) {
	got, err := Reduce([]Datum{{Weights: []float64{math.SmallestNonzeroFloat64, math.SmallestNonzeroFloat64}}}, TokenMean)
	if err != nil || !slices.Equal(got[0].Weights, []float64{0.5, 0.5}) {
		t.Errorf("got %v, %v", got, err)
	}
}

func meanOverTokens(now [][]float64, step []Datum) float64 {
	num, den := 0.0, 0.0
	for i, d := range step {
		for p, w := range d.Weights {
			num -= w * now[i][p]
			den += w
		}
	}
	return num / den
}

func meanOverSequences(now [][]float64, step []Datum) float64 {
	sum := 0.0
	for i := range step {
		sum += meanOverTokens(now[i:i+1], step[i:i+1])
	}
	return sum / float64(len(step))
}
