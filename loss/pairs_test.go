package loss

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// What can be added to a loss of pairs, by hand: one pair of a chosen side of two tokens and a rejected one of three.
func TestWhatIsAddedToPairs(t *testing.T) {
	now := [][]float64{{-1, -2, -9}, {-1, -1, -2.5}}
	step := []Datum{
		{Weights: []float64{1, 1, 0}, RefLogprobs: []float64{-2, -2, -1}},
		{Weights: []float64{1, 1, 1}, RefLogprobs: []float64{-1, -2, -3}},
	}
	logistic := func(x float64) float64 { return math.Log1p(math.Exp(-x)) }
	for name, c := range map[string]struct {
		loss Loss
		want float64
	}{
		"as published":      {&DPO{Beta: 0.5, Variant: Sigmoid}, logistic(0.5 * (1 - 1.5))},
		"with a margin":     {&DPO{Beta: 0.5, Variant: Sigmoid, Gamma: 0.2}, logistic(0.5*(1-1.5) - 0.2)},
		"of means":          {&DPO{Beta: 0.5, Variant: Sigmoid, LengthNormalized: true}, logistic(0.5 * (1.0/2 - 1.5/3))},
		"supervised":        {&DPO{Beta: 0.5, Variant: Sigmoid, SFTWeight: 0.4}, logistic(0.5*(1-1.5)) + 0.4*3/2},
		"supervised ipo":    {&IPO{Beta: 0.5, SFTWeight: 0.4}, 1.5*1.5 + 0.4*3/2},
		"supervised hinge":  {&Hinge{Beta: 0.5, SFTWeight: 0.4}, 1.25 + 0.4*3/2},
		"supervised simpo":  {&SimPO{Beta: 2, Gamma: 0.5, SFTWeight: 0.4}, logistic(2*(-1.5+1.5)-0.5) + 0.4*3/2},
		"means, supervised": {&DPO{Beta: 0.5, Variant: Sigmoid, LengthNormalized: true, SFTWeight: 1}, logistic(0) + 1.5},
	} {
		r, err := c.loss.Eval(now, step)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if math.Abs(r.Value-c.want) > 1e-12 {
			t.Errorf("%s: %v, want %v", name, r.Value, c.want)
		}
		if nll, has := r.Metrics["nll_loss"]; has != strings.Contains(name, "supervised") || has && nll != 1.5 {
			t.Errorf("%s: nll_loss %v, %v", name, nll, has)
		}
	}
}

// A pair whose hinge is satisfied is trained by its supervised term alone.
func TestASatisfiedHingeIsSupervisedAlone(t *testing.T) {
	now, step := [][]float64{{0}, {-9}}, []Datum{{Weights: []float64{1}, RefLogprobs: []float64{-9}}, {Weights: []float64{1}, RefLogprobs: []float64{0}}}
	r, err := (&Hinge{Beta: 1, SFTWeight: 0.5}).Eval(now, step)
	if err != nil || r.Grads[0][0] != -0.5 || r.Grads[1][0] != 0 || r.Value != 0 {
		t.Errorf("%v, %v", r, err)
	}
}

// A margin of 1,000 nats the wrong way round has a finite loss and gradient, and the rewards are multiplied by beta once.
func TestAPairFarApart(t *testing.T) {
	now, step := [][]float64{{-1000}, {0}}, []Datum{{Weights: []float64{1}, RefLogprobs: []float64{0}}, {Weights: []float64{1}, RefLogprobs: []float64{-3000}}}
	r, err := (&DPO{Beta: 0.5, Variant: Sigmoid}).Eval(now, step)
	if err != nil || r.Value != 2000 || r.Grads[0][0] != -0.5 || r.Metrics["margin"] != -2000 || r.Metrics["chosen_reward"] != -500 || r.Metrics["accuracy"] != 0 {
		t.Errorf("%v, %v", r, err)
	}
}

// The gradient of DPO is that of sums whatever the lengths: nothing divides it by them unless the recipe says so.
func TestOfSumsNothingIsDivided(t *testing.T) {
	_, step := fullStep(rand.New(rand.NewPCG(5, 6)), 2)
	now := [][]float64{step[0].RefLogprobs, step[1].RefLogprobs}
	r, err := (&DPO{Beta: 0.5, Variant: Sigmoid}).Eval(now, step)
	if err != nil {
		t.Fatal(err)
	}
	for i, d := range step {
		for n, w := range d.Weights {
			if want := 0.25 * w; math.Abs(math.Abs(r.Grads[i][n])-want) > 1e-12 {
				t.Errorf("sequence %d, position %d: %v, want %v", i, n, r.Grads[i][n], want)
			}
		}
	}
}
