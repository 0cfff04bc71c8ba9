package report

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"trainer/runner"
)

func TestPlanAsText(t *testing.T) {
	var b strings.Builder
	if err := Plan(&b, testPlan(1250), 60); err != nil {
		t.Fatal(err)
	}
	same(t, b.String(), `
steps          1,250: 25 epochs of 50 batches
batch          16 rows a step
rows           800 an epoch, 40 held out
tokens         5,120,000 in all steps
trained tokens 1,280,000 (25.0 %)
learning rate  1.00e-04 at the peak, 8.00e-08 at the last step
warm-up        62 steps

row length in tokens
<=    64    120 ###########
<=   128    410 ########################################
<=   256    190 ##################
<=   512     75 #######
<= 1,024      5 #
longest 987

learning rate by step
1.00e-04 |  *
         |  *******
         | **     ******
         | *           *******
         | *                 *******
         |**                       ******
         |*                             *******
         |*                                   ******
         |*                                        *******
       0 |*                                              ***
         +--------------------------------------------------
          1                                            1,250

lock
dataset  77e0b2
recipe   5a1c0d

cost
$12.40 for every hour that the GPUs are ready
a kill -9 can leave them running for 16m after the queued work: $3.31
`)
}

func TestPlanOnTheSandboxChargesNothing(t *testing.T) {
	hash := strings.Repeat("0123456789abcdef", 4)
	for want, usd := range map[string]float64{"\ncost\nnothing: $0.00 an hour\n": 0, "\na rehearsal: the sandbox charges nothing\n": 22} {
		var b strings.Builder
		p := &runner.Plan{Lock: runner.Lock{"backend": "sandbox", "recipe": hash}, Cost: &runner.Cost{USDPerHour: usd}}
		if err := Plan(&b, p, 60); err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(b.String(), want) || !strings.Contains(b.String(), "recipe   0123456789abcdef…\n") {
			t.Errorf("no %q, or the hash is not cut, in\n%s", want, b.String())
		}
	}
}

func TestAPlanOfNothingHasOnlyItsFigures(t *testing.T) {
	var b strings.Builder
	if err := Plan(&b, &runner.Plan{Epochs: 0.5}, 0); err != nil {
		t.Fatal(err)
	}
	same(t, b.String(), `
steps          0: 0.5 epochs of 0 batches
batch          0 rows a step
rows           0 an epoch, 0 held out
tokens         0 in all steps
trained tokens 0 (-)
`)
	if err := Plan(fails{}, &runner.Plan{}, 0); !errors.Is(err, errFull) {
		t.Errorf("got %v, want the error of the write", err)
	}
}

func TestPlotShowsEveryExtremeAndFits(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	for range 300 {
		values := make([]float64, 1+r.IntN(3000))
		for i := range values {
			values[i] = r.Float64() * 1e-4
		}
		peak := r.IntN(len(values))
		values[peak] = 1e-3
		width := 30 + r.IntN(100)
		lines := plot(values, width, 10, Rate)
		if len(lines) != 12 {
			t.Fatalf("%d lines, want 10 and the axis", len(lines))
		}
		for _, line := range lines {
			if len(line) > width {
				t.Fatalf("%d columns, want at most %d: %s", len(line), width, line)
			}
		}
		if strings.Count(lines[0], "*") != 1 {
			t.Fatalf("the one peak of %d values is not seen in the top row of %d columns: %s", len(values), width, lines[0])
		}
	}
}

func TestPlotOfASingleOrConstantRate(t *testing.T) {
	for _, values := range [][]float64{{1e-4}, {1e-4, 1e-4, 1e-4}, {0}} {
		lines := plot(values, 40, 4, Rate)
		if n := strings.Count(strings.Join(lines, ""), "*"); n != len(values) {
			t.Errorf("%v: %d marks, want %d in\n%s", values, n, len(values), strings.Join(lines, "\n"))
		}
	}
	if lines := plot(nil, 40, 4, Rate); lines != nil {
		t.Errorf("a plot of nothing is %q", lines)
	}
}

func TestTable(t *testing.T) {
	var b strings.Builder
	err := Table(&b, []string{"MODEL", "GPU", "RANK"}, [][]string{{"org/a-model", "H100", "64"}, {"b\x1b[2J\nc", "", "8"}})
	if err != nil {
		t.Fatal(err)
	}
	same(t, b.String(), `
MODEL        GPU   RANK
org/a-model  H100  64
b?[2J c      -     8
`)
	if err := Table(fails{}, nil, [][]string{{"a"}}); !errors.Is(err, errFull) {
		t.Errorf("got %v, want the error of the write", err)
	}
}
