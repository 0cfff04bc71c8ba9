package schedule

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func TestWarmupStartsAboveZeroAndReachesThePeak(t *testing.T) {
	got, err := Ramp{Warmup: 4, Shape: &Constant{}}.Rates(1, 6)
	if want := []float64{.25, .5, .75, 1, 1, 1}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
}

func TestLinearWithoutWarmupIsTheDocumentedLoop(t *testing.T) {
	const peak, steps = 1e-4, 12
	for k := 1; k <= steps; k++ {
		got := Ramp{Shape: &Linear{}}.Rate(peak, k-1, steps)
		if want := peak * (1 - float64(k-1)/steps); math.Abs(got-want) > 1e-19 {
			t.Errorf("step %d has %v, want %v", k, got, want)
		}
	}
}

// Ten batches of four optimiser steps: the schedule counts optimiser steps, so the last one is at 39 of 40.
func TestTheLastStepIsOneBeforeTheEnd(t *testing.T) {
	if got := (Ramp{Shape: &Linear{}}).Rate(1, 39, 40); got != 1.0/40 {
		t.Errorf("step 40 of 40 has %v, want 1/40", got)
	}
	if got := (Ramp{Floor: 0.1, Shape: &Linear{}}).Rate(1, 40, 40); got != 0.1 {
		t.Errorf("where step 41 would be: %v, want the floor", got)
	}
}

func TestWSDPhasesFollowTheLengthOfTheRun(t *testing.T) {
	warmup, err := WarmupSteps(0.1, nil, 50)
	if err != nil {
		t.Fatal(err)
	}
	rates, err := Ramp{Warmup: warmup, Shape: &WSD{DecayRatio: 0.2, Decay: "linear"}}.Rates(1, 50)
	if err != nil {
		t.Fatal(err)
	}
	// 5 up, 35 at the peak, and the line of the decay that leaves it at step 41.
	if up := rates[:5]; up[3] != 0.8 || up[4] != 1 {
		t.Errorf("warm-up is %v", up)
	}
	for k := 6; k <= 41; k++ {
		if rates[k-1] != 1 {
			t.Errorf("step %d has %v, want the peak", k, rates[k-1])
		}
	}
	for k := 42; k <= 50; k++ {
		if want := float64(51-k) / 10; math.Abs(rates[k-1]-want) > 1e-15 {
			t.Errorf("step %d has %v, want %v", k, rates[k-1], want)
		}
	}
}

func TestARestartFallsOnItsStep(t *testing.T) {
	r := Ramp{Floor: 0.1, Shape: &CosineWithRestarts{NumCycles: 3}}
	for _, k := range []int{1, 11, 21} {
		if got := r.Rate(1, k-1, 30); got != 1 {
			t.Errorf("step %d has %v, want the peak", k, got)
		}
	}
	if got := (&CosineWithRestarts{NumCycles: math.MaxInt}).Factor(1, 30); !(got > 0 && got <= 1) {
		t.Errorf("more cycles than can be multiplied by a step: %v", got)
	}
}

func TestOneCycle(t *testing.T) {
	r := Ramp{Warmup: 2, Shape: &OneCycle{StartRatio: 0.04}}
	rates, err := r.Rates(1, 102)
	if err != nil {
		t.Fatal(err)
	}
	if rates[0] != 0.02 || rates[1] != 0.04 || rates[2] != 0.04 {
		t.Errorf("warm-up to the start of the cycle is %v", rates[:3])
	}
	if rates[32] != 1 || slices.Max(rates) != 1 {
		t.Errorf("step 33 has %v, the highest rate is %v; want the peak there", rates[32], slices.Max(rates))
	}
	// cos²(π/4) is a half: half way up, half way down.
	if math.Abs(rates[17]-0.52) > 1e-15 || math.Abs(rates[67]-0.5) > 1e-15 {
		t.Errorf("half way up %v, half way down %v; want 0.52 and 0.5", rates[17], rates[67])
	}
}

func TestPiecewiseCountsStepsOfTheRun(t *testing.T) {
	r := Ramp{Warmup: 10, Shape: &Piecewise{Points: [][2]float64{{100, 1}, {200, 0.1}}}}
	for k, want := range map[int]float64{5: 0.5, 10: 1, 11: 1, 100: 1, 150: 0.55, 200: 0.1, 300: 0.1} {
		if got := r.Rate(1, k-1, 300); math.Abs(got-want) > 1e-15 {
			t.Errorf("step %d has %v, want %v", k, got, want)
		}
	}
}

func TestExponentialFallsByOneFactor(t *testing.T) {
	for floor, end := range map[float64]float64{0: 0.01, 0.25: 0.25} {
		rates, err := Ramp{Floor: floor, Shape: &Exponential{}}.Rates(1, 50)
		if err != nil {
			t.Fatal(err)
		}
		for i := 1; i < len(rates); i++ {
			if got, want := rates[i]/rates[i-1], math.Exp(math.Log(end)/50); math.Abs(got-want) > 1e-14 {
				t.Errorf("floor %v: step %d is %v times the one before, want %v", floor, i+1, got, want)
			}
		}
	}
}

func TestLastRatesOfAVeryLongRunAreAboveZero(t *testing.T) {
	const steps = 2_000_000_000
	for _, k := range Kinds() {
		shape := k.New()
		switch s := shape.(type) {
		case *Step:
			s.Every = steps / 3
		case *Piecewise:
			s.Points = [][2]float64{{steps / 2, 0.1}}
		}
		if got := (Ramp{Shape: shape}).Rate(1e-4, steps-1, steps); !(got > 0) {
			t.Errorf("%s: the last step has %v", k.Name, got)
		}
	}
}

// The properties that hold for every shape, run, warm-up and floor.
func TestEveryScheduleStaysInBounds(t *testing.T) {
	random := rand.New(rand.NewPCG(11, 12))
	for _, k := range Kinds() {
		t.Run(k.Name, func(t *testing.T) {
			for range 300 {
				r, peak, steps := randomRamp(random, k)
				rates, err := r.Rates(peak, steps)
				if err != nil {
					t.Fatalf("%+v %+v, %d steps: %v", r, r.Shape, steps, err)
				}
				holdBounds(t, r, peak, rates)
				holdPurity(t, random, r, peak, rates)
			}
		})
	}
}

func holdBounds(t *testing.T, r Ramp, peak float64, rates []float64) {
	t.Helper()
	for i, rate := range rates {
		if !(rate > 0 && rate <= peak) {
			t.Fatalf("%+v %+v: step %d of %d has %v, peak %v", r, r.Shape, i+1, len(rates), rate, peak)
		}
		if i >= r.Warmup && rate < r.Floor*peak {
			t.Fatalf("%+v %+v: step %d of %d has %v, below the floor %v", r, r.Shape, i+1, len(rates), rate, r.Floor*peak)
		}
		if i > 0 && i < r.Warmup && rate <= rates[i-1] {
			t.Fatalf("%+v %+v: the warm-up does not rise at step %d", r, r.Shape, i+1)
		}
	}
	// Where warm-up and shape join there is no jump: the last step of the one has the rate of the first of the other.
	if w := r.Warmup; w > 0 && w < len(rates) && rates[w-1] != rates[w] {
		t.Fatalf("%+v %+v: warm-up ends at %v, the shape begins at %v", r, r.Shape, rates[w-1], rates[w])
	}
}

// holdPurity asks for the rates out of order and again, from another value of the same schedule.
func holdPurity(t *testing.T, random *rand.Rand, r Ramp, peak float64, rates []float64) {
	t.Helper()
	for _, i := range random.Perm(len(rates)) {
		if got := r.Rate(peak, i, len(rates)); got != rates[i] {
			t.Fatalf("%+v %+v: step %d has %v, and %v when asked alone", r, r.Shape, i+1, rates[i], got)
		}
	}
}

func randomRamp(random *rand.Rand, k Kind) (r Ramp, peak float64, steps int) {
	steps = 1 + random.IntN(200)
	if random.IntN(4) == 0 {
		steps = 1 + random.IntN(4)
	}
	r = Ramp{Warmup: random.IntN(steps + 1), Shape: k.New()}
	if random.IntN(3) > 0 {
		r.Floor = random.Float64()
	}
	switch s := r.Shape.(type) {
	case *CosineWithRestarts:
		s.NumCycles = 1 + random.IntN(10)
	case *Polynomial:
		s.Power = 0.2 + 4*random.Float64()
	case *Step:
		s.Every, s.Gamma = 1+random.IntN(20), 0.3+0.7*random.Float64()
	case *Piecewise:
		for at := random.IntN(10); len(s.Points) < 1+random.IntN(4); at += 1 + random.IntN(60) {
			s.Points = append(s.Points, [2]float64{float64(at), 0.01 + 0.99*random.Float64()})
		}
	case *WSD:
		s.Decay = []string{"linear", "cosine", "1-sqrt"}[random.IntN(3)]
		s.DecayRatio = math.Floor(random.Float64()*float64(steps-r.Warmup+1)) / float64(steps)
	case *OneCycle:
		s.StartRatio = 0.001 + 0.999*random.Float64()
	}
	return r, math.Pow(10, -7+8*random.Float64()), steps
}

// Every shape but the stepped ones moves by less as the run grows: it has no jump inside.
func TestShapesAreContinuous(t *testing.T) {
	const steps = 100_000
	for _, r := range []Ramp{
		{Shape: &Linear{}}, {Shape: &Cosine{}}, {Shape: &Polynomial{Power: 2}}, {Shape: &InverseSqrt{}}, {Shape: &Exponential{}},
		{Shape: &WSD{DecayRatio: 0.2, Decay: "linear"}}, {Shape: &WSD{DecayRatio: 0.2, Decay: "cosine"}}, {Shape: &OneCycle{StartRatio: 0.04}},
		{Shape: &Piecewise{Points: [][2]float64{{20_000, 0.3}, {40_000, 0.9}, {90_000, 0.1}}}},
		{Warmup: 1000, Floor: 0.3, Shape: &OneCycle{StartRatio: 0.04}}, {Warmup: 1000, Floor: 0.2, Shape: &Exponential{}},
		{Warmup: 1000, Floor: 0.5, Shape: &Piecewise{Points: [][2]float64{{50_000, 0.1}}}}, {Warmup: 1000, Floor: 0.1, Shape: &InverseSqrt{}},
	} {
		rates, err := r.Rates(1, steps)
		if err != nil {
			t.Fatal(err)
		}
		for i := 1; i < steps; i++ {
			if d := math.Abs(rates[i] - rates[i-1]); d > 1.01e-3 {
				t.Errorf("%T: jumps by %v at step %d", r.Shape, d, i+1)
			}
		}
	}
}

func TestRunsThatASchedulingErrorWouldSpoilAreRefused(t *testing.T) {
	wsd := &WSD{DecayRatio: 0.2, Decay: "linear"}
	for name, c := range map[string]struct {
		r     Ramp
		peak  float64
		steps int
		says  string
	}{
		"no steps":                  {Ramp{Shape: &Linear{}}, 1, 0, "a run of 0 steps"},
		"no shape":                  {Ramp{}, 1, 1, "no shape"},
		"a peak of 0":               {Ramp{Shape: &Linear{}}, 0, 1, "peak rate 0"},
		"a peak that is no number":  {Ramp{Shape: &Linear{}}, math.NaN(), 1, "peak rate NaN"},
		"an infinite peak":          {Ramp{Shape: &Linear{}}, math.Inf(1), 1, "peak rate +Inf"},
		"a warm-up longer than it":  {Ramp{Warmup: 5, Shape: &Linear{}}, 1, 4, "warm-up of 5 steps in a run of 4"},
		"a negative warm-up":        {Ramp{Warmup: -1, Shape: &Linear{}}, 1, 4, "warm-up of -1"},
		"a floor above the peak":    {Ramp{Floor: 1.5, Shape: &Linear{}}, 1, 4, "floor 1.5"},
		"a floor that is no number": {Ramp{Floor: math.NaN(), Shape: &Linear{}}, 1, 4, "floor NaN"},
		"phases that overlap":       {Ramp{Warmup: 45, Shape: wsd}, 1, 50, "warm-up of 45 steps and decay of 10 do not fit in a run of 50"},
		"a rate that comes to 0":    {Ramp{Shape: &Step{Every: 1, Gamma: 0.1}}, 1, 400, "step 325 of 400 would train at rate 0"},
		"points that end at 0 too soon": {Ramp{Shape: &Piecewise{Points: [][2]float64{{5, 0}}}}, 1, 10,
			"step 5 of 10 would train at rate 0"},
	} {
		if _, err := c.r.Rates(c.peak, c.steps); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %v, want it to say %q", name, err, c.says)
		}
	}
}

func TestARunThatIsAllWarmupRises(t *testing.T) {
	for _, k := range Kinds() {
		shape := k.New()
		switch s := shape.(type) {
		case *Step:
			s.Every = 1
		case *Piecewise:
			s.Points = [][2]float64{{2, 0.5}}
		case *WSD:
			s.DecayRatio = 0
		}
		rates, err := Ramp{Warmup: 3, Shape: shape}.Rates(1, 3)
		if err != nil || !(rates[0] > 0 && rates[0] < rates[1] && rates[1] < rates[2]) {
			t.Errorf("%s: %v, %v", k.Name, rates, err)
		}
	}
}

func TestWarmupSteps(t *testing.T) {
	given := func(n int) *int { return &n }
	for name, c := range map[string]struct {
		ratio float64
		steps *int
		total int
		want  int
		says  string // of the error
	}{
		"a share of the run":                        {0.03, nil, 1000, 30, ""},
		"a share is rounded":                        {0.03, nil, 120, 4, ""},
		"a half rounds up":                          {0.5, nil, 5, 3, ""},
		"a share above 0 is one step at least":      {0.001, nil, 10, 1, ""},
		"a share of a run of one step":              {0.03, nil, 1, 1, ""},
		"no share is no warm-up":                    {0, nil, 10, 0, ""},
		"all of the run":                            {1, nil, 10, 10, ""},
		"steps win over the share":                  {0.5, given(7), 100, 7, ""},
		"0 steps are given, not unset":              {0.5, given(0), 100, 0, ""},
		"steps may cross an epoch and end with all": {0, given(100), 100, 100, ""},
		"more steps than the run":                   {0, given(101), 100, 0, "warmup_steps is 101, and the run has 100 steps"},
		"negative steps":                            {0, given(-1), 100, 0, "warmup_steps is -1"},
		"a share above 1":                           {1.5, nil, 100, 0, "warmup_ratio is 1.5"},
		"a share that is no number":                 {math.NaN(), nil, 100, 0, "warmup_ratio is NaN"},
		"a run of no steps":                         {0.03, nil, 0, 0, "a run of 0 steps"},
	} {
		got, err := WarmupSteps(c.ratio, c.steps, c.total)
		if got != c.want || (err != nil) != (c.says != "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %d, %v; want %d, %q", name, got, err, c.want, c.says)
		}
	}
}
