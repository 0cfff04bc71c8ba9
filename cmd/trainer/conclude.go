package main

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"time"

	"trainer/internal/download"
	"trainer/internal/report"
	"trainer/runner"
)

// conclude prints how a life ended, and what to do next: advice stands beside the error, not in it.
func (a *app) conclude(s runner.Summary, err error, took time.Duration, sandbox bool) {
	if s.Dir == "" {
		return
	}
	fmt.Fprintf(a.out, "%s: %s of %s steps%s\n", s.Outcome, report.Count(s.Done), report.Count(s.Steps), figures(s, took, sandbox))
	if s.Idle {
		fmt.Fprintln(a.err, "trainer: the run was complete, so nothing was done")
	}
	fmt.Fprintf(a.out, "report: %s\n", filepath.Join(s.Dir, "report.html"))
	if s.Untold != nil {
		fmt.Fprintf(a.err, "trainer: the run is not touched, but not all could be told: %v\n", s.Untold)
	}
	for _, left := range s.Unreleased {
		fmt.Fprintf(a.out, "still there: %s\n", left)
	}
	for _, id := range s.Twins {
		fmt.Fprintf(a.out, "still there: resource %s, which a create of this run seems to have made beside its own; stop it with `trainer resources stop %s`\n", id, id)
	}
	if err != nil && s.Outcome == "complete" {
		fmt.Fprintf(a.out, "next: `trainer resume %s` fetches what is missing; nothing is trained or paid for\n", s.Dir)
	}
	for _, line := range diskAdvice(err, s.Dir) {
		fmt.Fprintln(a.out, line)
	}
	if err != nil && s.Outcome != "complete" && !gone(err, s.Dir) {
		var unfit *runner.Unfit
		if errors.As(err, &unfit) {
			fmt.Fprintf(a.out, "next: `trainer resume %s --skip-step %d` leaves the step out; or mend its rows and start anew with `trainer run`\n", s.Dir, unfit.Step+1)
			return
		}
		if errors.Is(err, runner.ErrHopeless) && !errors.Is(err, runner.ErrUnsaved) {
			fmt.Fprintln(a.out, "next: start anew with `trainer run`; a resume would meet the same")
			return
		}
		if s.Done > s.Begun && resumable(s) == s.Begun && len(s.Unreleased) == 0 {
			fmt.Fprintf(a.out, "next: nothing was saved; `trainer resume %s --restart` begins again at the first step, and a smaller checkpoint.every saves sooner\n", s.Dir)
			return
		}
		from := "begins at the first step"
		switch n := resumable(s); n {
		case 0:
		case 1:
			from = "continues after 1 step"
		default:
			from = fmt.Sprintf("continues after %s steps", report.Count(n))
		}
		fmt.Fprintf(a.out, "next: `trainer resume %s` %s\n", s.Dir, from)
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
			fmt.Fprintln(a.out, whereTo(s.Dir, c))
			if c.Registered != "" {
				fmt.Fprintln(a.out, c.Registered) // the last line is the model's id, for scripts
			}
			break
		}
	}
}

// whereTo says where the copy of a checkpoint is, or how to get one.
func whereTo(dir string, c runner.Saved) string {
	for _, kind := range []string{runner.Adapter, runner.Merged} {
		at := runner.CopyDir(dir, c.Done, kind)
		if label, _, whole, err := download.Read(at); err == nil && whole && label.Checkpoint == c.ID {
			return "copy: " + at
		}
	}
	return fmt.Sprintf("download: `trainer checkpoints download %s --out model`", dir)
}

// figures are the newest ones. A price of the sandbox is a rehearsal, which is said, since nobody is charged.
func figures(s runner.Summary, took time.Duration, sandbox bool) string {
	text := ""
	if !math.IsNaN(s.LastLoss) {
		text += ", train/loss " + report.Loss(s.LastLoss)
	}
	if !math.IsNaN(s.LastEval) {
		text += ", eval/loss " + report.Loss(s.LastEval)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Last)) {
		text += ", " + name + " " + report.Loss(s.Last[name])
	}
	text += ", cost " + report.USD(s.CostUSD)
	if sandbox && s.CostUSD > 0 {
		text += " (rehearsed on the sandbox: nothing is charged)"
	}
	if s.Idle {
		return text
	}
	return text + ", took " + report.Duration(took)
}

// resumable is the step from which a resume goes on: that of the newest checkpoint when the session is gone.
func resumable(s runner.Summary) int {
	for _, c := range s.Saved {
		if !c.Inference {
			return c.Done
		}
	}
	return s.Begun
}
