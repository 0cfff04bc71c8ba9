package report

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestAxesHoldTheirValues(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for range 5000 {
		low := r.NormFloat64() * math.Pow(10, float64(r.IntN(40)-20))
		high := low + math.Abs(r.NormFloat64())*math.Pow(10, float64(r.IntN(40)-20))*float64(r.IntN(3))
		a := newAxis(low, high, r.IntN(2) == 0)
		if l, h := a.share(low), a.share(high); !(l >= -1e-9 && h <= 1+1e-9 && l <= h) {
			t.Fatalf("[%v, %v] lies at %v to %v of its axis %+v", low, high, l, h, a)
		}
		ticks := a.ticks(5)
		if len(ticks) == 0 || len(ticks) > 15 || !slices.IsSorted(ticks) {
			t.Fatalf("[%v, %v] has the ticks %v", low, high, ticks)
		}
		for _, v := range ticks {
			if s := a.share(v); !(s >= -1e-9 && s <= 1+1e-9) {
				t.Fatalf("tick %v of [%v, %v] lies at %v", v, low, high, s)
			}
		}
	}
}

func TestTicksAreRoundAndTellApart(t *testing.T) {
	for _, c := range []struct {
		low, high float64
		linear    bool
		want      string
	}{
		{0.3, 2.4, false, "[0 0.5 1.0 1.5 2.0 2.5]"},
		{2.31, 2.34, false, "[2.310 2.315 2.320 2.325 2.330 2.335 2.340]"},
		{0.001, 1000, false, "[0.001 0.01 0.1 1 10 100 1000]"},
		{0.01, 3, false, "[0.01 0.02 0.05 0.1 0.2 0.5 1 2]"},
		{-1, 1, false, "[-1.0 -0.5 0 0.5 1.0]"},
		{0, 1e-4, true, "[0 2.0e-05 4.0e-05 6.0e-05 8.0e-05 1.0e-04]"},
		{9000, 21000, false, "[0 5.0k 10.0k 15.0k 20.0k]"},
		{5, 5, false, "[4.6 4.8 5.0 5.2 5.4]"},
		{0, 0, false, "[-1.0 -0.5 0 0.5 1.0]"},
	} {
		a := newAxis(c.low, c.high, c.linear)
		var labels []string
		for _, v := range a.ticks(5) {
			labels = append(labels, a.label(v))
		}
		if got := fmt.Sprint(labels); got != c.want {
			t.Errorf("[%v, %v]: got %s, want %s", c.low, c.high, got, c.want)
		}
	}
}

func TestStepTicksAreWhole(t *testing.T) {
	for _, c := range []struct {
		first, last int
		want        string
	}{{1, 400, "[50 100 150 200 250 300 350 400]"}, {1, 2, "[1 2]"}, {0, 3, "[0 1 2 3]"}, {1, 1_000_000_000, "[200000000 400000000 600000000 800000000 1000000000]"}} {
		if got := fmt.Sprint(stepTicks(c.first, c.last, 8)); got != c.want {
			t.Errorf("%d to %d: got %s, want %s", c.first, c.last, got, c.want)
		}
	}
}
