package runner_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"trainer/internal/journal"
	"trainer/internal/together"
	"trainer/runner"
)

// TestIntentsOfAStepShareASync: all that a step sends is in the journal before the first of it is sent, so that a slow
// disk is waited for once a step and not once a request.
func TestIntentsOfAStepShareASync(t *testing.T) {
	b := newBench(t, "train.gradient_accumulation=2")
	b.fresh(func(t *testing.T) {
		if _, _, err := b.life(0, false); err != nil {
			t.Fatal(err)
		}
		records, err := journal.Read(b.dir)
		if err != nil {
			t.Fatal(err)
		}
		complete, keys, steps := map[int]bool{}, map[string]int{}, 0
		for _, r := range records {
			var v struct {
				Step      int
				Kind, Key string
			}
			if err := json.Unmarshal(r.Data, &v); err != nil {
				t.Fatal(err)
			}
			trains := v.Kind == "forward_backward" || v.Kind == "optim_step"
			step, known := keys[v.Key]
			switch {
			case r.Type == "intent" && trains:
				complete[v.Step] = complete[v.Step] || v.Kind == "optim_step"
				keys[v.Key] = v.Step
			case r.Type == "ack" && known && !complete[step]:
				t.Errorf("record %d acknowledges a request of step %d, whose last is not in the journal", r.N, step)
			case r.Type == "step":
				steps++
			}
		}
		if steps != len(b.plan.Rates) || len(complete) != steps {
			t.Errorf("%d steps, intents of %d, want %d", steps, len(complete), len(b.plan.Rates))
		}
	})
}

// TestStoredRequestsAreRemoved: what was stored ahead is gone when it will not be sent any more; behind an orderly stop
// the newest witness alone stays, to be asked again.
func TestStoredRequestsAreRemoved(t *testing.T) {
	b := newBench(t, "train.lookahead=0")
	stored := func(t *testing.T) []string {
		names, err := filepath.Glob(filepath.Join(b.dir, "inflight", "*"))
		if err != nil {
			t.Fatal(err)
		}
		return names
	}
	b.fresh(func(t *testing.T) {
		stop, ask := context.WithCancelCause(t.Context())
		defer ask(nil)
		c := together.New(together.Options{BaseURL: "http://sandbox", Key: "k", Transport: b.server})
		w := runner.World{Backend: c, Resources: c, Dir: b.dir, Sandbox: true, Sinks: []runner.Sink{&asker{1, func() { ask(runner.ErrInterrupted) }}}}
		if _, err := runner.Run(t.Context(), stop, b.in, b.plan, w); !errors.Is(err, runner.ErrInterrupted) {
			t.Fatalf("got %v, want an interrupted run", err)
		}
		if left := stored(t); len(left) > 1 {
			t.Errorf("behind a stop %d stored requests are left: %v", len(left), left)
		}
		// One that a killed life has left, of a session that is gone.
		orphan := filepath.Join(b.dir, "inflight", "00000000-0000-4000-8000-000000000000.json")
		if err := os.WriteFile(orphan, []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := b.life(0, false); err != nil {
			t.Fatal(err)
		}
		if left := stored(t); slices.Contains(left, orphan) || len(left) > 0 {
			t.Errorf("behind the end %v are left", left)
		}
	})
}
