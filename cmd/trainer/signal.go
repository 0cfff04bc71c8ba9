package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"trainer/runner"
)

// signals ends stop at the first Ctrl-C or SIGTERM, which asks for an orderly end, and hard at the second, which cuts.
func signals(parent context.Context) (hard, stop context.Context, done func()) {
	hard, cut := context.WithCancelCause(parent)
	stop, ask := context.WithCancelCause(hard)
	c := make(chan os.Signal, 2)
	over := make(chan struct{})
	signal.Notify(c, os.Interrupt, syscall.SIGTERM)
	go func() {
		for _, end := range []context.CancelCauseFunc{ask, cut} {
			select {
			case <-c:
				end(runner.ErrInterrupted)
			case <-over:
				return
			}
		}
	}()
	return hard, stop, func() { signal.Stop(c); close(over); cut(nil) }
}
