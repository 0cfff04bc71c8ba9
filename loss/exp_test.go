package loss

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestExpIsTheExponential(t *testing.T) {
	random := rand.New(rand.NewPCG(21, 22))
	for range 20000 {
		x := 1400*random.Float64() - 700
		if got, want := exp(x), math.Exp(x); math.Abs(got-want) > 4e-16*want {
			t.Fatalf("exp(%v): got %v, want %v", x, got, want)
		}
	}
	for x, want := range map[float64]float64{
		0: 1, 1: math.E, 709.7: math.Exp(709.7), 710: math.Inf(1), 1e300: math.Inf(1), math.Inf(1): math.Inf(1),
		-745: math.Exp(-745), -746.5: 0, -1e300: 0, math.Inf(-1): 0,
	} {
		if got := exp(x); math.Abs(got-want) > 4e-16*want && got != want {
			t.Errorf("exp(%v): got %v, want %v", x, got, want)
		}
	}
	if got := exp(math.NaN()); !math.IsNaN(got) {
		t.Errorf("exp(NaN): got %v", got)
	}
}

// Reference values to 17 digits from an arbitrary-precision library.
func TestSigmoidsKeepTheirDigitsOnBothSides(t *testing.T) {
	for _, c := range []struct{ x, sigmoid, logSigmoid float64 }{
		{0, 0.5, -0.69314718055994531},
		{2, 0.88079707797788244, -0.12692801104297250},
		{-2, 0.11920292202211756, -2.1269280110429725},
		{40, 1, -4.2483542552915889e-18},
		{-40, 4.2483542552915889e-18, -40},
		{-800, 0, -800},
		{800, 1, 0},
	} {
		if got := sigmoid(c.x); math.Abs(got-c.sigmoid) > 1e-15*c.sigmoid {
			t.Errorf("sigmoid(%v): got %v, want %v", c.x, got, c.sigmoid)
		}
		if got := logSigmoid(c.x); math.Abs(got-c.logSigmoid) > -1e-15*c.logSigmoid {
			t.Errorf("logSigmoid(%v): got %v, want %v", c.x, got, c.logSigmoid)
		}
	}
}
