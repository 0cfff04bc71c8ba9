package runner_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"trainer/internal/diag"
	"trainer/runner"
)

// cursed stands between client and server and lets every optimiser step of some steps fail with a code, in whatever
// session, as bad rows do. It knows a step by its learning rate.
type cursed struct {
	next  http.RoundTripper
	rates []float64
	code  string

	mu  sync.Mutex
	ids map[string]bool
}

func (b *bench) curse(code string, steps ...int) *cursed {
	c := &cursed{next: b.server, code: code, ids: map[string]bool{}}
	for _, s := range steps {
		c.rates = append(c.rates, b.plan.Rates[s])
	}
	return c
}

func (c *cursed) RoundTrip(r *http.Request) (*http.Response, error) {
	pass := func() (*http.Response, error) { return c.next.RoundTrip(r) }
	switch {
	case posts("optim-step")(r):
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		var sent struct {
			Adam struct {
				LearningRate float64 `json:"learning_rate"`
			} `json:"adam_params"`
		}
		bad := json.Unmarshal(body, &sent) == nil && slices.Contains(c.rates, sent.Adam.LearningRate)
		return altered(func() (*http.Response, error) { return unfinished(nil, pass) }, func(b []byte) []byte {
			var op struct{ ID string }
			if json.Unmarshal(b, &op) == nil && bad {
				c.mu.Lock()
				c.ids[op.ID] = true
				c.mu.Unlock()
			}
			return b
		})
	case reads("optim-step")(r):
		c.mu.Lock()
		bad := c.ids[path.Base(r.URL.Path)]
		c.mu.Unlock()
		if bad {
			return fails(c.code)(r, pass)
		}
	}
	return pass()
}

// without is what a run trains that leaves a step out: the lineage of the unbroken one, less what is of the step.
func (b *bench) without(lineage string, steps ...int) string {
	var kept []string
	for i, line := range strings.Split(lineage, "\n") {
		if !slices.Contains(steps, i/2) { // a forward_backward and an optim_step each
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "\n")
}

// skipped are the steps that metrics.jsonl marks, counted from 1, and holds every line to its number and its rate.
func (b *bench) skipped(t *testing.T) (steps []int) {
	t.Helper()
	lines, err := runner.ReadMetrics(b.dir)
	if err != nil {
		t.Fatal(err)
	}
	lines = slices.DeleteFunc(lines, func(m map[string]float64) bool { return m["step"] == 0 })
	for i, m := range lines {
		if int(m["step"]) != i+1 || m["learning_rate"] != b.plan.Rates[i] {
			t.Errorf("line %d is of step %v at rate %v", i+1, m["step"], m["learning_rate"])
		}
		_, trained := m["train/loss"]
		if trained == (m["skipped"] == 1) {
			t.Errorf("step %d: %v", i+1, m)
		}
		if m["skipped"] == 1 {
			steps = append(steps, i+1)
		}
	}
	if len(lines) != len(b.plan.Rates) {
		t.Errorf("%d lines for %d steps", len(lines), len(b.plan.Rates))
	}
	return steps
}

// TestSkipBatch: a step whose loss is not finite is left out, in the same life, and everything else is trained as in the
// run without it; the fourth such step ends the run.
func TestSkipBatch(t *testing.T) {
	t.Parallel()
	for _, lookahead := range []int{0, 1, 4} {
		for _, bad := range [][]int{{4}, {0}, {5}, {1, 2, 4}, {0, 1, 2, 4}} {
			t.Run(fmt.Sprintf("lookahead %d, steps %v", lookahead, bad), func(t *testing.T) {
				b := newBench(t, fmt.Sprintf("train.lookahead=%d", lookahead), "train.on_non_finite=skip_batch", "lr_schedule.type=linear", "lr_schedule.warmup_ratio=0")
				want := b.measured()
				b.onDisk(func(t *testing.T) {
					_, err := b.through(b.curse("NON_FINITE_LOSS", bad...))
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
					got := b.outcome(t)
					if want := b.without(want.lineage, bad...); got.lineage != want {
						t.Errorf("trained with\n%s\nwant\n%s", got.lineage, want)
					}
					left := b.skipped(t)
					for i := range left {
						left[i]--
					}
					if !slices.Equal(left, bad) {
						t.Errorf("left out are %v; %s", left, b.warned.String())
					}
				})
			})
		}
	}
}

// TestSkipStep: a step that failed for what is in it ends the run with its rows named, and a resume is refused until it is
// told to leave that step out, which is then left out in every later session.
func TestSkipStep(t *testing.T) {
	for _, code := range []string{"NON_FINITE_LOSS", "INVALID_INPUT"} {
		b := newBench(t, "lr_schedule.type=linear", "lr_schedule.warmup_ratio=0")
		want := b.measured()
		b.onDisk(func(t *testing.T) {
			c := b.curse(code, 4)
			var unfit *runner.Unfit
			for range 2 {
				_, err := b.through(c)
				if !errors.As(err, &unfit) || unfit.Step != 4 || !errors.Is(err, runner.ErrHopeless) {
					t.Fatalf("%s: the run ends with %v", code, err)
				}
				if len(unfit.Rows) == 0 || !strings.Contains(err.Error(), unfit.Rows[0]) || !strings.Contains(unfit.Rows[0], "rows.jsonl:") {
					t.Errorf("%s: %v does not name the rows %v", code, err, unfit.Rows)
				}
			}
			b.alter = func(w *runner.World) { w.SkipStep = 4 }
			var list diag.List
			if _, err := b.through(c); !errors.As(err, &list) || !strings.Contains(err.Error(), "step 5 is the one that failed") {
				t.Errorf("%s: another step is left out: %v", code, err)
			}
			b.alter = func(w *runner.World) { w.SkipStep = 5 }
			// It dies on the way; the next life needs no word.
			if _, err := b.through(&liar{next: c, match: posts("optim-step"), at: 2, reach: forever, do: says(403, false)}); err == nil || errors.As(err, &unfit) {
				t.Fatalf("the life ends with %v", err)
			}
			b.alter = nil
			if _, err := b.through(c); err != nil {
				t.Fatalf("%s: without the step: %v", code, err)
			}
			if got, want := b.outcome(t).lineage, b.without(want.lineage, 4); got != want {
				t.Errorf("%s: trained with\n%s\nwant\n%s", code, got, want)
			}
			if got := b.skipped(t); !slices.Equal(got, []int{5}) {
				t.Errorf("%s: left out %v", code, got)
			}
			if data, err := os.ReadFile(filepath.Join(b.dir, "journal.jsonl")); err != nil || !strings.Contains(string(data), `"why":`+strconv.Quote(code)) {
				t.Errorf("%s: the step's record does not say why it was left out: %v", code, err)
			}
		})
	}
}

// TestSkipStepOfWhatDidNotFail: it is refused, and nothing is sent.
func TestSkipStepOfWhatDidNotFail(t *testing.T) {
	b := newBench(t)
	b.fresh(func(t *testing.T) {
		if err := b.cutAt(3); err == nil {
			t.Fatal("the life was not cut")
		}
		b.alter = func(w *runner.World) { w.SkipStep = 2 }
		c := &creates{next: b.server}
		var list diag.List
		if _, err := b.through(c); !errors.As(err, &list) || !strings.Contains(err.Error(), "no step of this run has failed") || c.n > 0 {
			t.Errorf("got %v, %d resources were asked for", err, c.n)
		}
	})
}
