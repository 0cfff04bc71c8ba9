package main

import (
	"errors"
	"fmt"
	"testing"

	"trainer/internal/diag"
	"trainer/runner"
)

func TestExitCodes(t *testing.T) {
	refused := &runner.Refused{Status: 403}
	hopeless := &runner.Unfit{Err: &runner.Failed{Op: runner.OpForwardBackward, Code: "NON_FINITE_LOSS"}}
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, exitDone},
		{errors.New("x"), exitFailure},
		{&runner.Panic{Value: "x"}, exitFailure},
		{fmt.Errorf("load: %w", diag.List{{Msg: "x"}}), exitUsage},
		{&usage{"x"}, exitUsage},
		{fmt.Errorf("ask: %w", refused), exitRefused},
		{&runner.Refused{Status: 507}, exitFailure},
		{fmt.Errorf("%w: limits.max_steps", runner.ErrBudget), exitBudget},
		{errors.Join(runner.ErrInterrupted, refused), exitInterrupted},
		{errors.Join(runner.ErrInterrupted, hopeless), exitFailure},
		{&runner.Drift{Dir: "d"}, exitDrift},
		{&untold{errors.New("x")}, exitUsage},
		{&untold{runner.ErrInterrupted}, exitInterrupted},
	} {
		if got := exitCode(c.err); got != c.want {
			t.Errorf("%v: got %d, want %d", c.err, got, c.want)
		}
	}
}
