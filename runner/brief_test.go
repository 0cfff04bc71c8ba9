package runner_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"trainer/internal/grader"
	"trainer/runner"
)

// sleeper is somebody outside who answers so many times, and then takes an hour.
type sleeper struct {
	answers   atomic.Int64 // that are left
	asleep    func()       // called when the first one sleeps
	overslept atomic.Int64 // hours that somebody has waited for
}

// sleep ends at once, or in an hour, or with the cause of ctx.
func (s *sleeper) sleep(ctx context.Context) error {
	left := s.answers.Add(-1)
	if left >= 0 {
		return nil
	}
	if left == -1 {
		s.asleep()
	}
	select {
	case <-time.After(time.Hour):
		s.overslept.Add(1)
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Grade scores as low does.
func (s *sleeper) Grade(ctx context.Context, c grader.Completion) (grader.Score, error) {
	if err := s.sleep(ctx); err != nil {
		return grader.Score{}, err
	}
	return low{}.Grade(ctx, c)
}

// stopped is a life that is asked to stop when s sleeps.
func (b *bench) stopped(s *sleeper) (runner.Summary, error) {
	stop, ask := context.WithCancelCause(context.Background())
	defer ask(nil)
	s.asleep = func() { ask(runner.ErrInterrupted) }
	c := client(b.server)
	w := runner.World{Backend: c, Resources: c, Dir: b.dir, Sandbox: true, Sinks: []runner.Sink{listener{&b.warned}}}
	return runner.Run(context.Background(), stop, b.in, b.plan, w)
}

// TestAStopDoesNotWaitForAnHour: whatever is being asked outside when a run is asked to stop, a reward of a batch or of an
// evaluation, or a loss that is a program, is not waited for. What is trained is saved, all is released, and the next life asks
// again, and comes to the same end.
func TestAStopDoesNotWaitForAnHour(t *testing.T) {
	sampling := func(set ...string) func(t *testing.T, s *sleeper) *bench {
		return func(t *testing.T, s *sleeper) *bench {
			b := newRollouts(t, append(set, "checkpoint.every=1")...)
			b.in.Graders.Set = grader.New([]grader.Entry{{Type: "low", Grader: s, Weight: 1}})
			return b
		}
	}
	for _, c := range []struct {
		name  string
		bench func(t *testing.T, s *sleeper) *bench
		asked int64 // answers of an unbroken run, about
		same  bool  // the next life samples under the same weights
	}{
		{"a reward", sampling("eval.at_start=false"), 40, true},
		{"a reward, a batch ahead", sampling("eval.at_start=false", "rollout.max_policy_lag=1"), 40, false},
		{"a reward in an evaluation", sampling(), 50, true},
		{"a reward in an evaluation of rows", func(t *testing.T, s *sleeper) *bench {
			b := examined(t, nil, "checkpoint.every=1")
			b.in.Graders.Set = grader.New([]grader.Entry{{Type: "low", Grader: s, Weight: 1}})
			return b
		}, 40, true},
		{"a loss", func(t *testing.T, s *sleeper) *bench {
			b, _ := programmed(t, func(ctx context.Context, q []byte) ([]byte, error) {
				if err := s.sleep(ctx); err != nil {
					return nil, err
				}
				return simpo(ctx, q)
			}, "checkpoint.every=1", "train.lookahead=0")
			return b
		}, 6, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &sleeper{}
			b := c.bench(t, s)
			s.answers.Store(1 << 40)
			want := b.measured()
			cut := 0
			for at := int64(0); at < c.asked; at += max(1, c.asked/3) {
				b.onDisk(func(t *testing.T) {
					s.answers.Store(at)
					got, err := b.stopped(s)
					if s.overslept.Swap(0) > 0 {
						t.Errorf("after %d answers: the run has waited for an hour", at)
					}
					if err != nil {
						cut++
						if !errors.Is(err, runner.ErrInterrupted) || got.Outcome != "interrupted" {
							t.Fatalf("after %d answers: %s, %v", at, got.Outcome, err)
						}
					}
					if left := b.ready(); len(left) > 0 {
						t.Errorf("after %d answers: left running: %v", at, left)
					}
					s.answers.Store(1 << 40)
					if _, err := b.through(b.server); err != nil {
						t.Fatalf("after %d answers: the next life: %v", at, err)
					}
					point := fmt.Sprintf("after %d answers", at)
					if left := b.ready(); len(left) > 0 {
						t.Errorf("%s: the next life left %v", point, left)
					}
					if after := b.outcome(t); c.same && after.weights != want.weights {
						t.Errorf("%s: other weights than those of the unbroken run", point)
					} else if c.same && after.steps != want.steps {
						t.Errorf("%s: measured\n%swant\n%s", point, after.steps, want.steps)
					} else if strings.Count(after.steps, "\n") < strings.Count(want.steps, "\n") {
						t.Errorf("%s: measured\n%swant\n%s", point, after.steps, want.steps)
					}
				})
			}
			if cut < 2 {
				t.Errorf("%d lives were cut", cut)
			}
		})
	}
}
