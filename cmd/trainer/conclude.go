package main

import (
	"fmt"
	"math"
	"path/filepath"

	"trainer/internal/report"
	"trainer/runner"
)

// conclude prints how a life ended, and what to do next: advice stands beside the error, not in it.
func (a *app) conclude(s runner.Summary, err error) {
	if s.Dir == "" {
		return
	}
	fmt.Fprintf(a.out, "%s: %d of %d steps%s\n", s.Outcome, s.Done, s.Steps, figures(s))
	fmt.Fprintf(a.out, "report: %s\n", filepath.Join(s.Dir, "report.html"))
	if s.Untold != nil {
		fmt.Fprintf(a.err, "trainer: the run is not touched, but not all could be told: %v\n", s.Untold)
	}
	for _, left := range s.Unreleased {
		fmt.Fprintf(a.out, "still there: %s\n", left)
	}
	if err != nil && s.Outcome != "complete" {
		fmt.Fprintf(a.out, "next: `trainer resume %s` continues after %d steps\n", s.Dir, resumable(s))
		return
	}
	for _, c := range s.Saved {
		if !c.Inference {
			fmt.Fprintf(a.out, "training checkpoint: %s (step %d)\n", c.ID, c.Done)
			break
		}
	}
	for _, c := range s.Saved {
		if c.Inference {
			fmt.Fprintf(a.out, "inference checkpoint: %s (step %d)\n", c.ID, c.Done)
			if c.Registered != "" {
				fmt.Fprintln(a.out, c.Registered) // the last line is the model's id, for scripts
			}
			break
		}
	}
}

func figures(s runner.Summary) string {
	text := ""
	if !math.IsNaN(s.LastLoss) {
		text += ", train/loss " + report.Loss(s.LastLoss)
	}
	if !math.IsNaN(s.LastEval) {
		text += ", eval/loss " + report.Loss(s.LastEval)
	}
	return text + ", cost " + report.USD(s.CostUSD)
}

// resumable is the step from which a resume goes on: that of the newest checkpoint when the session is gone.
func resumable(s runner.Summary) int {
	for _, c := range s.Saved {
		if !c.Inference {
			return c.Done
		}
	}
	return 0
}
