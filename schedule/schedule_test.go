package schedule

import (
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestKindsHaveTheNamesOfTheReference(t *testing.T) {
	var got []string
	for _, k := range Kinds() {
		got = append(got, k.Name)
		if a, b := k.New(), k.New(); reflect.TypeOf(a).Elem().Size() > 0 && a == b {
			t.Errorf("%s: New gives the same value twice", k.Name)
		}
	}
	want := []string{"constant", "linear", "cosine", "cosine_with_restarts", "polynomial", "inverse_sqrt", "exponential", "step",
		"piecewise", "wsd", "one_cycle"}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestEveryParameterHasAKeyAndBounds(t *testing.T) {
	for _, k := range Kinds() {
		s := reflect.TypeOf(k.New()).Elem()
		for i := range s.NumField() {
			if f := s.Field(i); f.Tag.Get("yaml") == "" || f.Tag.Get("validate") == "" {
				t.Errorf("%s.%s has tags %q", k.Name, f.Name, f.Tag)
			}
		}
	}
}

func TestFactorsKeepTheContract(t *testing.T) {
	for _, k := range Kinds() {
		shape := k.New()
		first, ends := 1.0, 0.0
		switch s := shape.(type) {
		case *OneCycle:
			first = s.StartRatio
		case *Step:
			s.Every, ends = 10, 0.1
		case *Piecewise:
			s.Points, ends = [][2]float64{{6, 0.5}}, 0.5
		case *Constant:
			ends = 1
		case *InverseSqrt:
			ends = 0.999500374687773 // 1 / √1.001
		case *Exponential:
			ends = 0.01
		}
		if got := shape.Factor(0, 10); got != first {
			t.Errorf("%s: step 0 has %v, want %v", k.Name, got, first)
		}
		for _, at := range []int{10, 11} {
			if got := shape.Factor(at, 10); at == 10 && math.Abs(got-ends) > 1e-15 || !(got >= 0 && got <= 1) {
				t.Errorf("%s: step %d of 10 has %v, want %v at the end", k.Name, at, got, ends)
			}
		}
		for _, steps := range []int{0, 1} {
			if got := shape.Factor(steps, steps); !(got >= 0 && got <= 1) {
				t.Errorf("%s: the end of %d steps is %v", k.Name, steps, got)
			}
		}
	}
}

func TestCheckFindsWhatTagsCannot(t *testing.T) {
	for name, c := range map[string]struct {
		shape Checker
		want  []string
	}{
		"points in order":             {&Piecewise{Points: [][2]float64{{0, 1}, {10, 0.5}, {11, 0}}}, nil},
		"a point before the one left": {&Piecewise{Points: [][2]float64{{10, 1}, {10, 0.5}, {5, 0.1}}}, []string{"points.1.0: step 10 does not come after step 10", "points.2.0: step 5 does not come after step 10"}},
		"half a step":                 {&Piecewise{Points: [][2]float64{{1.5, 1}}}, []string{"points.0.0: 1.5 is not a step, want a whole number of at least 0"}},
		"a step before the run":       {&Piecewise{Points: [][2]float64{{-1, 1}}}, []string{"points.0.0: -1 is not a step, want a whole number of at least 0"}},
		"no number for both":          {&Piecewise{Points: [][2]float64{{math.NaN(), math.NaN()}}}, []string{"points.0.0: NaN is not a step, want a whole number of at least 0", "points.0.1: NaN is not a share of the peak rate, want 0 to 1"}},
		"an infinite step":            {&Piecewise{Points: [][2]float64{{math.Inf(1), 1}}}, []string{"points.0.0: +Inf is not a step, want a whole number of at least 0"}},
		"a share above the peak":      {&Piecewise{Points: [][2]float64{{1, 1.1}}}, []string{"points.0.1: 1.1 is not a share of the peak rate, want 0 to 1"}},
		"a power":                     {&Polynomial{Power: 2}, nil},
		"an infinite power":           {&Polynomial{Power: math.Inf(1)}, []string{"power: +Inf, want a finite number above 0"}},
	} {
		if got := faultsOf(t, c.shape.Check()); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

// faultsOf takes an error of Check apart as a caller does that wants the place of each.
func faultsOf(t *testing.T, err error) (all []string) {
	t.Helper()
	if err == nil {
		return nil
	}
	var faults Faults
	if !errors.As(err, &faults) || strings.Contains(err.Error(), "\n") {
		t.Fatalf("%v is not Faults on one line", err)
	}
	var first *Fault
	if !errors.As(err, &first) || first != faults[0] {
		t.Errorf("errors.As finds %v, want the first of %v", first, err)
	}
	for _, f := range faults {
		all = append(all, f.Error())
	}
	return all
}
