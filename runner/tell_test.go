package runner_test

import (
	"context"
	"strings"
	"testing"

	"trainer/internal/together"
	"trainer/runner"
)

// bomb is a sink that panics at the first event of a kind, or when it is closed.
type bomb struct {
	at    runner.EventKind
	close bool
	told  int
}

func (b *bomb) Open(context.Context, runner.RunInfo) error { return nil }

func (b *bomb) Emit(e runner.Event) {
	if e.Kind == b.at {
		panic("the sink is broken")
	}
	b.told++
}

func (b *bomb) Close(context.Context) error {
	if b.close {
		panic("the sink does not close")
	}
	return nil
}

func TestASinkThatPanicsCostsTheRunNothing(t *testing.T) {
	b := newBench(t)
	want := b.unbroken()
	for name, sink := range map[string]*bomb{"the sink is broken": {at: runner.StepEvent}, "the sink does not close": {close: true}} {
		b.fresh(func(t *testing.T) {
			c := together.New(together.Options{BaseURL: "http://sandbox", Key: "k", Transport: b.server})
			other := &bomb{}
			w := runner.World{Backend: c, Resources: c, Dir: b.dir, Sandbox: true, Sinks: []runner.Sink{sink, other}}
			s, err := runner.Run(t.Context(), t.Context(), b.in, b.plan, w)
			if err != nil || s.Outcome != "complete" {
				t.Fatalf("%s: %s, %v", name, s.Outcome, err)
			}
			if s.Untold == nil || !strings.Contains(s.Untold.Error(), name) {
				t.Errorf("%s: the summary says %v", name, s.Untold)
			}
			if other.told < len(b.plan.Rates) {
				t.Errorf("%s: the other sink heard %d events", name, other.told)
			}
			if got := b.steps(); got != want {
				t.Errorf("%s: got\n%swant\n%s", name, got, want)
			}
			if left := b.ready(); len(left) > 0 {
				t.Errorf("%s: left running: %v", name, left)
			}
		})
	}
}
