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
	for code, want := range map[string]string{
		"TIMEOUT":         "next: `trainer resume runs/x` continues after 3 steps\n",
		"NON_FINITE_LOSS": "next: start anew with `trainer run`; a resume would meet the same\n",
	} {
		var out bytes.Buffer
		err := fmt.Errorf("step 4: %w", &runner.Failed{Op: runner.OpOptimStep, Code: code})
		(&app{out: &out, err: &out}).conclude(runner.Summary{Outcome: "failed", Done: 3, Steps: 9, Dir: "runs/x", Saved: saved}, err, 0, true)
		if !strings.HasSuffix(out.String(), want) {
			t.Errorf("%s: %q does not end in %q", code, out.String(), want)
		}
	}
}
