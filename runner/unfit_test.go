package runner_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"trainer/internal/diag"
	"trainer/loss"
	"trainer/runner"
)

// infinite is simpo, which at some steps has no finite value.
func infinite(steps ...int) func(context.Context, []byte) ([]byte, error) {
	return func(ctx context.Context, q []byte) ([]byte, error) {
		for _, s := range steps {
			if bytes.HasPrefix(q, []byte(`{"use":"train","step":`+strconv.Itoa(s)+`,`)) {
				return nil, fmt.Errorf("its answer has NaN: %w", loss.ErrNonFinite)
			}
		}
		return simpo(ctx, q)
	}
}

// A loss that is computed here and is not finite ends the run: saved, and with the rows. A resume leaves the step out only
// where it is told to.
func TestALossOfOursThatIsNotFinite(t *testing.T) {
	b, l := programmed(t, simpo, "train.epochs=2", "checkpoint.every=null")
	want := b.measured()
	b.onDisk(func(t *testing.T) {
		l.Call = infinite(3)
		_, err := b.through(b.server)
		var unfit *runner.Unfit
		if !errors.As(err, &unfit) || unfit.Step != 3 || len(unfit.Rows) != 2 || !strings.HasPrefix(unfit.Rows[0], "rows.jsonl:") || !errors.Is(err, runner.ErrHopeless) {
			t.Fatalf("got %v", err)
		}
		if left := b.ready(); len(left) > 0 {
			t.Errorf("left running: %v", left)
		}
		saved := func() (n int) {
			for _, rec := range judge(t, b.dir, b.store, true).records {
				if rec.text("type") == "checkpoint" && rec.text("kind") == "training" {
					n++
				}
			}
			return n
		}
		if n := saved(); n != 1 {
			t.Errorf("%d checkpoints: what was trained before is to be saved", n)
		}
		b.alter = func(w *runner.World) { w.SkipStep = 3 }
		var list diag.List
		if _, err := b.through(b.server); !errors.As(err, &list) || !strings.Contains(err.Error(), "step 4 is the one that failed") {
			t.Errorf("another step is left out: %v", err)
		}
		b.alter = func(w *runner.World) { w.SkipStep = 4 }
		if _, err := b.through(b.server); err != nil {
			t.Fatal(err)
		}
		b.alter = nil
		if got := b.skipped(t); !slices.Equal(got, []int{4}) {
			t.Errorf("left out %v", got)
		}
		if got := b.outcome(t).lineage; got == want.lineage || len(got) >= len(want.lineage) {
			t.Errorf("trained with\n%s", got)
		}
	})
	b.onDisk(func(t *testing.T) { // its owner may mend what a program says
		l.Call = infinite(3)
		if _, err := b.through(b.server); err == nil {
			t.Fatal("it is trained")
		}
		l.Call = simpo
		if _, err := b.through(b.server); err != nil {
			t.Fatal(err)
		}
		if got := b.outcome(t); got.weights != want.weights {
			t.Error("other weights than those of the run without the fault")
		}
	})
}

// What a loss that is built in says of rows it says again: a resume is refused before anything is asked for.
func TestABuiltInLossThatIsNotFinite(t *testing.T) {
	b := preferring(t, "ipo", "loss.params.beta=1e-30", "eval.every=null", "eval.at_start=false", "eval.at_end=false")
	b.onDisk(func(t *testing.T) {
		var unfit *runner.Unfit
		if _, err := b.through(b.server); !errors.As(err, &unfit) || unfit.Step != 0 || !errors.Is(err, loss.ErrNonFinite) {
			t.Fatalf("got %v", err)
		}
		c := &creates{next: b.server}
		if _, err := b.through(c); !errors.As(err, &unfit) || unfit.Step != 0 || len(unfit.Rows) != 2 || !strings.Contains(err.Error(), "the same rows fail again") || c.n > 0 {
			t.Errorf("got %v; %d creates", err, c.n)
		}
	})
}

// TestSkipBatchHere: under skip_batch such a step is left out in the session that goes on, and the fourth ends the run.
func TestSkipBatchHere(t *testing.T) {
	for _, lookahead := range []int{0, 1} {
		for _, bad := range [][]int{{3}, {0}, {5}, {0, 1, 4}, {0, 1, 2, 4}} {
			t.Run(fmt.Sprintf("lookahead %d, steps %v", lookahead, bad), func(t *testing.T) {
				b, l := programmed(t, simpo, "train.epochs=2", "train.on_non_finite=skip_batch", fmt.Sprintf("train.lookahead=%d", lookahead))
				l.Call = infinite(bad...)
				b.onDisk(func(t *testing.T) {
					_, err := b.through(b.server)
					if len(bad) > 3 {
						var unfit *runner.Unfit
						if !errors.As(err, &unfit) || unfit.Step != bad[3] || !strings.Contains(err.Error(), "has left out 3 steps") {
							t.Fatalf("the run ends with %v", err)
						}
						judge(t, b.dir, b.store, true).hold(t, "the run")
						return
					}
					if err != nil {
						t.Fatal(err)
					}
					left := b.skipped(t)
					for i := range left {
						left[i]--
					}
					if !slices.Equal(left, bad) {
						t.Errorf("left out %v", left)
					}
					if o := judge(t, b.dir, b.store, true); len(o.begun()) != 1 {
						t.Errorf("%d sessions; nothing was rolled back", len(o.begun()))
					}
					if !strings.Contains(b.warned.String(), "non-finite") || !strings.Contains(b.warned.String(), "rows.jsonl:") {
						t.Errorf("warned of %q", b.warned.String())
					}
				})
			})
		}
	}
}

// A run that leaves a step out ends with the same weights wherever it is killed.
func TestSkipBatchHereKilledAtItsRequests(t *testing.T) {
	b, _ := programmed(t, infinite(1), "train.on_non_finite=skip_batch")
	want, points := b.measured(), 0
	for die, over := 1, false; !over; die += sparse(3) {
		b.onDisk(func(t *testing.T) {
			_, n, err := b.life(die, die%2 == 0)
			if over = err == nil && n < die; over {
				return
			}
			points++
			if _, err := b.through(b.server); err != nil {
				t.Fatalf("request %d: resume: %v", die, err)
			}
			judge(t, b.dir, b.store, true).hold(t, "resumed")
			b.compare(t, want)
		})
	}
	if points < fewest(10) {
		t.Errorf("killed at %d points", points)
	}
}

// Held-out rows without a finite loss are a warning, as where the service says so.
func TestAnEvaluationOfOursThatIsNotFinite(t *testing.T) {
	b, l := programmed(t, simpo)
	want := b.measured()
	l.Call = func(ctx context.Context, q []byte) ([]byte, error) {
		if bytes.HasPrefix(q, []byte(`{"use":"eval","step":2,`)) {
			return nil, loss.ErrNonFinite
		}
		return simpo(ctx, q)
	}
	b.onDisk(func(t *testing.T) {
		if _, err := b.through(b.server); err != nil {
			t.Fatal(err)
		}
		if got := b.outcome(t); got.weights != want.weights || !strings.Contains(b.warned.String(), "evaluate: the loss of the held-out rows: command: non-finite") {
			t.Errorf("warned of %q", b.warned.String())
		}
	})
}
