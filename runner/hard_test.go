package runner_test

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"

	"trainer/runner"
)

// TestASecondSignalReleasesAtOnce cuts a life at each of its requests, as a second Ctrl-C does: no operation is sent behind
// it, all that bills is stopped, or said, and the next life comes to the same end.
func TestASecondSignalReleasesAtOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	want := b.unbroken()
	for at, over := 1, false; !over; at += sparse(2) {
		b.fresh(func(t *testing.T) {
			hard, cut := context.WithCancelCause(context.Background())
			defer cut(nil)
			var met, gone atomic.Bool
			var late atomic.Int32
			line := &liar{next: b.server, match: anything, at: at, reach: forever, do: func(r *http.Request, p pass) (*http.Response, error) {
				if met.CompareAndSwap(false, true) {
					cut(runner.ErrInterrupted)
					gone.Store(true)
				} else if behind := gone.Load(); posts("forward-backward")(r) || posts("optim-step")(r) || posts("training-checkpoint")(r) {
					if err := r.Context().Err(); err != nil { // it was on its way: a transport looks before it sends
						return nil, err
					} else if behind {
						late.Add(1)
					}
				}
				return p()
			}}
			c := client(line)
			s, err := runner.Run(hard, hard, b.in, b.plan, runner.World{Backend: c, Resources: c, Dir: b.dir, Version: "test", Sandbox: true})
			if over = !met.Load(); over {
				return
			}
			if err != nil && !errors.Is(err, runner.ErrInterrupted) || err == nil && s.Outcome != "complete" || late.Load() > 0 {
				t.Errorf("request %d: %s, %v; %d operations behind the cut", at, s.Outcome, err, late.Load())
			}
			if left := b.ready(); len(left) > 0 {
				t.Errorf("request %d: left running: %v, told %v", at, left, s.Unreleased)
			}
			b.alter = func(w *runner.World) { w.Restart = true }
			defer func() { b.alter = nil }()
			if s, err := b.through(b.server); err != nil || b.steps() != want {
				t.Errorf("request %d: the next life: %s, %v, got\n%swant\n%s", at, s.Outcome, err, b.steps(), want)
			}
		})
	}
}
