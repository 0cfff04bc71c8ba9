package main

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/urfave/cli/v2"

	"trainer/internal/diag"
	"trainer/runner"
)

// The exit codes, as the README lists them.
const (
	exitDone        = 0
	exitFailure     = 1 // or, of a comparison, a difference
	exitUsage       = 2 // bad usage, recipe or data; or a comparison that cannot be made
	exitRefused     = 3 // by the API
	exitBudget      = 4 // a limit of the recipe; resumable
	exitInterrupted = 5 // by a signal; resumable
	exitDrift       = 6 // the inputs differ from the lock
)

// exitCode is the one place that decides.
func exitCode(err error) int {
	var list diag.List
	var wrong *usage
	var help cli.ExitCoder // the library's own help command, asked for a topic that there is not
	var refused *runner.Refused
	var away *runner.Unfetched
	var incomparable *untold
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &list), errors.As(err, &wrong), errors.As(err, &help), errors.As(err, &away):
		return exitUsage
	case errors.Is(err, runner.ErrHopeless): // 3, 4 and 5 say that there is a way on
		return exitFailure
	case errors.Is(err, runner.ErrInterrupted):
		return exitInterrupted
	case errors.Is(err, runner.ErrBudget):
		return exitBudget
	case errors.Is(err, runner.ErrDrift):
		return exitDrift
	case errors.As(err, &refused) && refused.Status != http.StatusInsufficientStorage: // a full disk is a failure of the machine
		return exitRefused
	case errors.As(err, &incomparable):
		return exitUsage
	}
	return exitFailure
}

// message is what the user reads. A list of places stands as it is, so that each line can be clicked.
func message(err error) string {
	var list diag.List
	if errors.As(err, &list) && err.Error() == list.Error() {
		return err.Error()
	}
	var wrong *usage
	if errors.As(err, &wrong) {
		return err.Error()
	}
	return fmt.Sprintf("trainer: %v", err)
}
