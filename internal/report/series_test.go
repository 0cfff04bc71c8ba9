package report

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func randomSeries(r *rand.Rand) series {
	s := make(series, r.IntN(5000))
	for i := range s {
		s[i] = point{i*(1+r.IntN(3)) + i, r.NormFloat64()}
		if i > 0 && s[i].X <= s[i-1].X {
			s[i].X = s[i-1].X + 1
		}
		if r.IntN(200) == 0 {
			s[i].Y = math.NaN()
		}
	}
	return s
}

func TestDownsampleKeepsWhatMatters(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		s, most := randomSeries(r), 5+r.IntN(1500)
		d := s.downsample(most)
		if len(d) > max(most, 0) && len(s) > most {
			t.Fatalf("%d of %d points, want at most %d", len(d), len(s), most)
		}
		if len(s) == 0 {
			continue
		}
		if d[0].X != s[0].X || d[len(d)-1].X != s[len(s)-1].X {
			t.Fatal("an end is missing")
		}
		low, high, ok := s.span()
		dlow, dhigh, dok := d.span()
		if low != dlow || high != dhigh || ok != dok {
			t.Fatalf("extremes %v %v %v became %v %v %v", low, high, ok, dlow, dhigh, dok)
		}
		if (s.gaps() > 0) != (d.gaps() > 0) {
			t.Fatalf("%d gaps became %d", s.gaps(), d.gaps())
		}
		last := -1
		for _, p := range d {
			v, found := s.at(p.X)
			if p.X <= last || !found || !(v == p.Y || v != v && p.Y != p.Y) {
				t.Fatalf("point %v is not of the series, or out of order", p)
			}
			last = p.X
		}
	}
}

func TestSmoothIsAWeightedMean(t *testing.T) {
	s := series{{1, 4}, {2, 2}, {3, math.NaN()}, {4, 1}}
	got := s.smooth(2) // weights 1/2, 1/4, …: (4+2*2)/3, then (4+2*2+4*1)/7
	want := []float64{4, 8.0 / 3, math.NaN(), 12.0 / 7}
	for i, p := range got {
		if p.X != s[i].X || math.Abs(p.Y-want[i]) > 1e-12 || math.IsNaN(p.Y) != math.IsNaN(want[i]) {
			t.Errorf("point %d is %v, want %v", i, p, want[i])
		}
	}
	r := rand.New(rand.NewPCG(5, 6))
	for range 50 {
		s := randomSeries(r)
		low, high, _ := s.span()
		for _, p := range s.smooth(1 + r.IntN(50)) {
			if !p.gap() && (p.Y < low-1e-9 || p.Y > high+1e-9) {
				t.Fatalf("%v lies outside [%v, %v]", p, low, high)
			}
		}
	}
}

func TestAnEarlierStepTakesBackTheLaterOnes(t *testing.T) {
	var s series
	for _, p := range []point{{1, 1}, {2, 2}, {3, 3}, {2, 20}, {3, 30}} {
		s = s.add(p)
	}
	if want := (series{{1, 1}, {2, 20}, {3, 30}}); !slices.Equal(s, want) {
		t.Errorf("got %v, want %v", s, want)
	}
}

func TestMedianAndSumLeaveOutGaps(t *testing.T) {
	s := series{{1, 5}, {2, math.NaN()}, {3, 1}, {4, 3}}
	if m, sum := s.median(), s.sum(); m != 3 || sum != 9 {
		t.Errorf("median %v and sum %v, want 3 and 9", m, sum)
	}
	if m := (series{}).median(); !math.IsNaN(m) {
		t.Errorf("the median of nothing is %v, want NaN", m)
	}
}
