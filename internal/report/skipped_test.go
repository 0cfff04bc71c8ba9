package report

import (
	"context"
	"math"
	"strings"
	"testing"

	"trainer/runner"
)

// TestAStepThatIsLeftOutIsAGap: its line says so, and no curve passes through it.
func TestAStepThatIsLeftOutIsAGap(t *testing.T) {
	left := runner.Event{Time: at(2), Kind: runner.StepEvent, Done: 2, Text: "left out: NON_FINITE_LOSS", Metrics: map[string]float64{"learning_rate": 1e-4, "skipped": 1}}
	var b strings.Builder
	l := testLines(&b)
	if err := l.Open(context.Background(), runner.RunInfo{}); err != nil {
		t.Fatal(err)
	}
	l.Emit(left)
	if want := "step 2 left out: NON_FINITE_LOSS learning_rate=1.00e-04\n"; !strings.HasSuffix(b.String(), want) {
		t.Errorf("got %q, want the end %q", b.String(), want)
	}
	h, err := readHistory(newFolder(t).events(
		runner.Event{Time: at(1), Kind: runner.StepEvent, Done: 1, Metrics: map[string]float64{"train/loss": 5, "learning_rate": 1e-4}},
		left,
		runner.Event{Time: at(3), Kind: runner.StepEvent, Done: 3, Metrics: map[string]float64{"train/loss": 4, "learning_rate": 1e-4}},
	).dir)
	if err != nil {
		t.Fatal(err)
	}
	if got := h.series[trainLoss]; len(got) != 3 || !math.IsNaN(got[1].Y) || len(h.series["learning_rate"]) != 3 || len(h.series[skipped]) != 0 {
		t.Errorf("the series are %v", h.series)
	}
}
