package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"trainer/runner"
)

// TestConcludeOffersNoResumeThatIsRefused: what comes next is a resume, unless it would meet the same.
func TestConcludeOffersNoResumeThatIsRefused(t *testing.T) {
	saved := []runner.Saved{{Done: 3}}
	timeout, unfit := &runner.Failed{Op: runner.OpOptimStep, Code: "TIMEOUT"}, &runner.Failed{Op: runner.OpOptimStep, Code: "NON_FINITE_LOSS"}
	for want, err := range map[string]error{
		"next: `trainer resume runs/x` continues after 3 steps\n":                                                               fmt.Errorf("step 4: %w", timeout),
		"next: `trainer resume runs/x --skip-step 4` leaves the step out; or mend its rows and start anew with `trainer run`\n": fmt.Errorf("it ends: %w", &runner.Unfit{Step: 3, Err: unfit}),
	} {
		var out bytes.Buffer
		(&app{out: &out, err: &out}).conclude(runner.Summary{Outcome: "failed", Done: 3, Steps: 9, Dir: "runs/x", Saved: saved}, err, 0, true)
		if !strings.HasSuffix(out.String(), want) {
			t.Errorf("%v: %q does not end in %q", err, out.String(), want)
		}
	}
}
