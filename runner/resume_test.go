package runner_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"trainer/runner"
)

// creates counts the resources that are asked for.
type creates struct {
	next http.RoundTripper
	n    int
}

func (c *creates) RoundTrip(r *http.Request) (*http.Response, error) {
	if posts("model-resources")(r) {
		c.n++
	}
	return c.next.RoundTrip(r)
}

// TestAnEndThatIsLostCostsNothing: what an earlier life has done in full is not paid for again because its last record,
// or all that tell of its release, did not get to the disk.
func TestAnEndThatIsLostCostsNothing(t *testing.T) {
	b := newBench(t)
	for _, lost := range []int{1, 2, 3, 4, 5, 6} {
		b.fresh(func(t *testing.T) {
			if _, _, err := b.life(0, false); err != nil {
				t.Fatal(err)
			}
			want := b.steps()
			path := filepath.Join(b.dir, "journal.jsonl")
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			lines := bytes.SplitAfter(data, []byte("\n"))
			write(t, path, string(bytes.Join(lines[:len(lines)-1-lost], nil)))
			c := &creates{next: b.server}
			s, err := b.through(c)
			if err != nil || s.Outcome != "complete" {
				t.Fatalf("without the last %d records: %s, %v", lost, s.Outcome, err)
			}
			if c.n > 0 {
				t.Errorf("without the last %d records: %d resources were asked for", lost, c.n)
			}
			if got := b.steps(); got != want {
				t.Errorf("without the last %d records: got\n%swant\n%s", lost, got, want)
			}
		})
	}
}

// TestWhatCannotGoOnCostsNothing: a run whose weights are lost is refused before a resource is asked for, until it is told
// to begin again; then it is what it would have been.
func TestWhatCannotGoOnCostsNothing(t *testing.T) {
	b := newBench(t, "checkpoint.every=null")
	want := b.measured()
	b.onDisk(func(t *testing.T) {
		if err := b.cutAt(3); err == nil {
			t.Fatal("the life was not cut")
		}
		c := &creates{next: b.server}
		_, err := b.through(c)
		if !errors.Is(err, runner.ErrUnsaved) || !errors.Is(err, runner.ErrHopeless) || !strings.Contains(err.Error(), "--restart") || c.n > 0 {
			t.Errorf("the next life: %v, %d resources were asked for", err, c.n)
		}
		b.alter = func(w *runner.World) { w.Restart = true }
		if _, err := b.through(c); err != nil || c.n != 1 {
			t.Fatalf("the restart: %v, %d resources were asked for", err, c.n)
		}
		b.compare(t, want)
	})
}

// cutAt is a life that ends, without saving, when so many steps have landed.
func (b *bench) cutAt(steps int) error {
	ctx, cut := context.WithCancelCause(context.Background())
	defer cut(nil)
	c := client(b.server)
	w := runner.World{Backend: c, Resources: c, Dir: b.dir, Sandbox: true, Sinks: []runner.Sink{&asker{steps, func() { cut(errDead) }}}}
	_, err := runner.Run(ctx, ctx, b.in, b.plan, w)
	return err
}

// TestTheResourceOfADriftIsNamed: a run that may not go on says what it may have left.
func TestTheResourceOfADriftIsNamed(t *testing.T) {
	b := newBench(t)
	b.fresh(func(t *testing.T) {
		if _, _, err := b.life(30, true); err == nil {
			t.Fatal("the life was not cut")
		}
		left := b.ready()
		other := newBench(t, "seed=7")
		other.dir, other.server = b.dir, b.server
		_, err := other.through(b.server)
		if len(left) != 1 || err == nil || !strings.Contains(err.Error(), "resources stop "+strings.Fields(left[0])[0]) {
			t.Errorf("got %v; left running: %v", err, left)
		}
	})
}

// TestABadOpeningReleases: a sink that does not open ends a life before it has begun, and what an earlier one left
// running is released all the same.
func TestABadOpeningReleases(t *testing.T) {
	b := newBench(t)
	b.fresh(func(t *testing.T) {
		if _, _, err := b.life(30, true); err == nil || len(b.ready()) != 1 {
			t.Fatalf("%v; left running: %v", err, b.ready())
		}
		c := client(b.server)
		w := runner.World{Backend: c, Resources: c, Downloads: c, Dir: b.dir, Sandbox: true, Sinks: []runner.Sink{closed{}}}
		if _, err := runner.Run(t.Context(), t.Context(), b.in, b.plan, w); err == nil {
			t.Error("the sink did not open, and the run went on")
		}
		if left := b.ready(); len(left) > 0 {
			t.Errorf("left running: %v", left)
		}
	})
}

// closed is a sink that does not open.
type closed struct{}

func (closed) Open(context.Context, runner.RunInfo) error { return errCut }
func (closed) Emit(runner.Event)                          {}
func (closed) Close(context.Context) error                { return nil }

// TestAPanicReleases: a fault of ours at any request ends the life with an error, whoever's goroutine it is in, and
// leaves nothing running; the next life completes the run, unless there was no checkpoint yet, or the answer of a create
// went down with it.
func TestAPanicReleases(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	want := b.unbroken()
	for at, over := 1, false; !over; at += sparse(1) {
		b.fresh(func(t *testing.T) {
			met := false
			s, err := b.through(&liar{next: b.server, match: anything, at: at, reach: 1, do: func(*http.Request, pass) (*http.Response, error) {
				met = true
				panic("a fault of ours")
			}})
			if over = !met; over {
				return
			}
			left, said := b.ready(), len(s.Unreleased) > 0
			if err == nil && !said || err != nil && !strings.Contains(err.Error(), "a fault of ours") || len(left) > 0 && !said {
				t.Fatalf("request %d: the life ends with %.200v; left running: %v", at, err, left)
			}
			_, _, err = b.life(0, false)
			if errors.Is(err, runner.ErrUnsaved) {
				return
			}
			if got := b.steps(); err != nil || got != want {
				t.Errorf("request %d: the next life: %v, got\n%swant\n%s", at, err, got, want)
			}
		})
	}
}
