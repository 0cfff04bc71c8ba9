package loss

import (
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
)

// at makes a loss of the step one of the log-probabilities alone.
func at(l Loss, step []Datum) func([][]float64) (Result, error) {
	return func(now [][]float64) (Result, error) { return l.Eval(now, step) }
}

func TestCompareFindsRightGradientsRight(t *testing.T) {
	for name, l := range differentiable() {
		_, step := fullStep(rand.New(rand.NewPCG(23, 24)), 6)
		now, step := MadeUp(step)
		for i := range step {
			for p := range step[i].OldLogprobs {
				step[i].OldLogprobs[p] = now[i][p] - 0.05
			}
		}
		before, _ := MadeUp(step)
		got, err := Compare(at(l, step), now, step)
		if err != nil || !got.Right() || !got.Same || got.Positions != 12 {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		if !reflect.DeepEqual(now, before) {
			t.Errorf("%s: the log-probabilities are not what they were", name)
		}
	}
}

func TestCompareFindsWrongGradientsWrong(t *testing.T) {
	_, step := fullStep(rand.New(rand.NewPCG(25, 26)), 6)
	now, step := MadeUp(step)
	dpo := at(newDPO(), step)
	for name, change := range map[string]func(*Result){
		"another sign":      func(r *Result) { scale(r, -1) },
		"a factor":          func(r *Result) { scale(r, 1.001) },
		"none":              func(r *Result) { scale(r, 0) },
		"of a sequence":     func(r *Result) { clear(r.Grads[3]) },
		"of the last token": func(r *Result) { r.Grads[5][len(r.Grads[5])-1] *= 2 },
	} {
		got, err := Compare(func(now [][]float64) (Result, error) {
			r, err := dpo(now)
			change(&r)
			return r, err
		}, now, step)
		if err != nil || got.Right() {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		if name == "of a sequence" && got.Sequence != 3 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func scale(r *Result, by float64) {
	for _, row := range r.Grads {
		for t := range row {
			row[t] *= by
		}
	}
}

// At a kink either slope is right, and one beyond both is not.
func TestCompareAtAKink(t *testing.T) {
	step := []Datum{{Weights: []float64{1}}}
	for grad, right := range map[float64]bool{0: true, 1: true, -1: true, 0.3: true, 1.2: false} {
		got, err := Compare(func(now [][]float64) (Result, error) {
			return Result{Value: math.Abs(now[0][0] + 2), Grads: [][]float64{{grad}}}, nil
		}, [][]float64{{-2}}, step)
		if err != nil || got.Right() != right {
			t.Errorf("gradient %v: %+v, %v", grad, got, err)
		}
	}
}

func TestCompareSaysWhatItCantCompare(t *testing.T) {
	n := 0.0
	restless := func([][]float64) (Result, error) { n++; return Result{Value: n, Grads: [][]float64{{0}}}, nil }
	if got, err := Compare(restless, [][]float64{{-1}}, []Datum{{Weights: []float64{1}}}); err != nil || got.Same {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := Compare(restless, [][]float64{{-1}}, []Datum{{Weights: []float64{0}}}); !errors.Is(err, ErrNothingTrained) {
		t.Error(err)
	}
	for fails := range 4 {
		down, calls := errors.New("down"), 0
		_, err := Compare(func([][]float64) (Result, error) {
			if calls++; calls > fails {
				return Result{}, down
			}
			return Result{Grads: [][]float64{{0}}}, nil
		}, [][]float64{{-1}}, []Datum{{Weights: []float64{1}}})
		if !errors.Is(err, down) {
			t.Errorf("at call %d: %v", fails, err)
		}
	}
}
