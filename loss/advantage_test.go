package loss

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func TestAdvantagesWithoutABaselineAreRewards(t *testing.T) {
	rewards := [][]float64{{1, 0}, {3, 3}, {-2}}
	got, err := Advantage{Baseline: None, Scale: None}.Of(rewards, nil)
	if err != nil {
		t.Fatal(err)
	}
	nearAll(t, "advantage", got, rewards)
}

func TestABatchOfEqualRewardsHasNoAdvantages(t *testing.T) {
	got, err := Advantage{Baseline: BatchMean, Scale: BatchStd}.Of([][]float64{{0.1, 0.1}, {0.1}}, nil)
	if err != nil || !slices.Equal(got[0], []float64{0, 0}) || got[1][0] != 0 {
		t.Errorf("got %v, %v", got, err)
	}
}

// A batch's statistics count a completion as often as it has tokens: repeating completions says the same.
func TestTokensWeighTheBatch(t *testing.T) {
	a := Advantage{Baseline: BatchMean, Scale: BatchStd}
	got, err := a.Of([][]float64{{1, 0}}, [][]int{{3, 1}})
	if err != nil {
		t.Fatal(err)
	}
	want, err := a.Of([][]float64{{1, 1, 1, 0}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "advantage", got[0][0], want[0][0])
	near(t, "advantage", got[0][1], want[0][3])
}

// The leave-one-out baseline is the mean of the others, by its other formula.
func TestLeaveOneOutIsTheMeanOfTheOthers(t *testing.T) {
	random := rand.New(rand.NewPCG(23, 24))
	for range 50 {
		group := make([]float64, 2+random.IntN(7))
		sum := 0.0
		for i := range group {
			group[i] = random.NormFloat64()
			sum += group[i]
		}
		got, err := Advantage{Baseline: LeaveOneOut, Scale: None}.Of([][]float64{group}, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range group {
			near(t, "advantage", got[0][i], r-(sum-r)/float64(len(group)-1))
		}
	}
}

// An environment's turn in the middle is no time that passes, and earns nothing.
func TestReturnsPassOverMaskedTurns(t *testing.T) {
	with := Datum{Weights: []float64{1, 1, 0, 0, 1, 1}}
	got, err := Returns(2, with, 0, 0.5)
	if err != nil || !slices.Equal(got, []float64{0.25, 0.5, 0, 0, 1, 2}) {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestAdvantageErrors(t *testing.T) {
	good := Advantage{Baseline: GroupMean, Scale: GroupStd}
	d := Datum{Weights: []float64{1, 1}}
	for name, c := range map[string]struct {
		err  error
		says string
	}{
		"a baseline that is none": {second(Advantage{Baseline: "mean", Scale: None}.Of(nil, nil)), `baseline: "mean" is not one of`},
		"a scale that is none":    {second(Advantage{Baseline: None, Scale: "std"}.Of(nil, nil)), `scale: "std" is not one of`},
		"an eps below 0":          {second(Advantage{None, None, -1}.Of(nil, nil)), "eps: must be at least 0"},
		"an empty group":          {second(good.Of([][]float64{{1}, {}}, nil)), "group 1 is empty"},
		"a reward that is NaN":    {second(good.Of([][]float64{{1, math.NaN()}}, nil)), "group 0, completion 1: reward NaN"},
		"tokens of another shape": {second(good.Of([][]float64{{1, 2}}, [][]int{{1}})), "2 rewards and 1 counts"},
		"tokens of other groups":  {second(good.Of([][]float64{{1, 2}}, [][]int{})), "1 groups of rewards and 0 of tokens"},
		"tokens below 0":          {second(good.Of([][]float64{{1, 2}}, [][]int{{1, -1}})), "-1 trained tokens"},
		"a gamma above 1":         {second(Returns(1, d, 0, 1.5)), "gamma: must be from 0 to 1"},
		"a KL without references": {second(Returns(1, d, 0.1, 1)), "log-probabilities of sampling"},
		"a reward of infinity":    {second(Returns(math.Inf(1), d, 0, 1)), "reward +Inf"},
		"returns of other shape":  {second(Whiten([][]float64{{1}}, []Datum{d})), "1 log-probabilities, 2 weights"},
		"a discount above 1": {third(AddKL([]Datum{{Weights: []float64{1}, Advantages: []float64{1}, OldLogprobs: []float64{1}, RefLogprobs: []float64{1}}}, 1, 2)),
			"discount: must be from 0 to 1"},
		"a penalty without columns": {third(AddKL([]Datum{d}, 1, 0)), "0 advantages"},
		"a teacher that is missing": {second(DistillAdvantage(Datum{Weights: []float64{1}, OldLogprobs: []float64{-1}}, 1)), "of the teacher"},
		"a mode that is none":       {second(ImportanceWeights([]float64{-1, -1}, d, "clip", 2)), `mode: "clip" is not one of`},
		"a cap of 0":                {second(ImportanceWeights([]float64{-1, -1}, d, TokenMask, 0)), "cap: must be above 0"},
		"weights without a sampler": {second(ImportanceWeights([]float64{-1, -1}, d, TokenMask, 2)), "of sampling"},
		"lengths without verdicts":  {second(LengthRewards([]int{1}, nil)), "1 lengths and 0 verdicts"},
	} {
		if c.err == nil || !errors.Is(c.err, ErrInvalid) || !strings.Contains(c.err.Error(), c.says) {
			t.Errorf("%s: got %v, want it to say %q", name, c.err, c.says)
		}
	}
}

func second[T any](_ T, err error) error        { return err }
func third[T, U any](_ T, _ U, err error) error { return err }
