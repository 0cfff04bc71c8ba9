package runner_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"trainer/internal/journal"
	"trainer/internal/together"
	"trainer/runner"
)

// mine is the one resource that there is.
func (b *bench) mine(t *testing.T) runner.Resource {
	t.Helper()
	rs, _, err := client(b.server).Mine(t.Context(), false)
	if err != nil || len(rs) != 1 {
		t.Fatalf("%d resources, %v", len(rs), err)
	}
	return rs[0]
}

func (b *bench) holdings(t *testing.T) runner.Holdings {
	t.Helper()
	h, err := runner.ReadHoldings(b.dir)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// TestCollect: what a killed run has left is its own by its journal, is stopped once, and the run goes on without it.
func TestCollect(t *testing.T) {
	b := newBench(t, "checkpoint.every=1", "train.lookahead=0")
	want := b.unbroken()
	for name, c := range map[string]struct {
		op  string
		at  int
		why string
	}{
		"killed while it trains":            {"optim-step", 4, "its stop was not seen to end"}, // the client is dead, and the journal still hears of the stop
		"the answer to its create was lost": {"model-resources", 1, "the answer to its create was lost"},
	} {
		b.fresh(func(t *testing.T) {
			if b.killed(posts(c.op), c.at) == nil {
				t.Fatalf("%s: the life was not cut", name)
			}
			res, h := b.mine(t), b.holdings(t)
			if got := h.Reason(res); got != c.why {
				t.Fatalf("%s: %q, want %q", name, got, c.why)
			}
			to := client(b.server)
			if err := runner.Collect(t.Context(), b.dir, res, to); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if left := b.ready(); len(left) > 0 {
				t.Errorf("%s: left running: %v", name, left)
			}
			if err := runner.Collect(t.Context(), b.dir, res, to); err == nil || !strings.Contains(err.Error(), "is not left any more") {
				t.Errorf("%s: again: %v", name, err)
			}
			if h = b.holdings(t); len(h.Held) > 0 || h.Reason(res) != "" {
				t.Errorf("%s: behind it %+v", name, h)
			}
			if s, _, err := b.life(0, false); err != nil || s.Outcome != "complete" || b.steps() != want {
				t.Errorf("%s: the next life: %s, %v", name, s.Outcome, err)
			}
		})
	}
}

// TestCollectLeavesWhatOthersUse: a run that lives, one in another folder's journal, and a resource with a stranger's session.
func TestCollectLeavesWhatOthersUse(t *testing.T) {
	b := newBench(t)
	b.fresh(func(t *testing.T) {
		if b.killed(posts("optim-step"), 4) == nil {
			t.Fatal("the life was not cut")
		}
		res, c := b.mine(t), client(b.server)
		j, _, err := journal.Open(b.dir)
		if err != nil {
			t.Fatal(err)
		}
		var locked *journal.Locked
		if h := b.holdings(t); h.Alive == nil || h.Reason(res) != "" || !strings.HasPrefix(h.Owner(res.ID), "alive") {
			t.Errorf("while somebody works in the folder: %+v", h)
		}
		if err := runner.Collect(t.Context(), b.dir, res, c); !errors.As(err, &locked) {
			t.Errorf("while somebody works in the folder: %v", err)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		spec := runner.SessionSpec{Resource: res.ID, DisplayName: "a stranger's", LoRA: b.in.Recipe.LoRA, Patience: time.Minute}
		s, err := c.Open(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		if err := runner.Collect(t.Context(), b.dir, res, c); !errors.Is(err, runner.ErrInUse) || !strings.Contains(err.Error(), s.ID()) {
			t.Errorf("with a stranger's session: %v", err)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		other := res
		other.ID, other.InactiveTimeout = "00000000-0000-4000-8000-000000000000", res.InactiveTimeout+time.Second // not of our mark
		if err := runner.Collect(t.Context(), b.dir, other, c); err == nil {
			t.Error("what is in no journal was collected")
		}
		if err := runner.Collect(t.Context(), b.dir, res, c); err != nil {
			t.Error(err)
		}
	})
}

// TestARunIsRememberedBeforeItBills: the machine knows of it before the create is sent, and a machine that cannot is said.
func TestARunIsRememberedBeforeItBills(t *testing.T) {
	b := newBench(t)
	for _, fails := range []bool{false, true} {
		b.fresh(func(t *testing.T) {
			made := &creates{next: b.server}
			c := together.New(together.Options{BaseURL: "http://sandbox", Key: "k", Transport: made})
			heard, told := &ears{}, 0
			w := runner.World{Backend: c, Resources: c, Dir: b.dir, Sandbox: true, Sinks: []runner.Sink{heard}, Remember: func(id string) error {
				if told++; made.n > 0 || id == "" {
					t.Errorf("run %q is remembered behind %d creates", id, made.n)
				}
				if fails {
					return errors.New("no such disk")
				}
				return nil
			}}
			if _, err := runner.Run(t.Context(), t.Context(), b.in, b.plan, w); err != nil || told != 1 {
				t.Errorf("%v, remembered %d times", err, told)
			}
			if said := strings.Contains(heard.text, "no such disk"); said != fails {
				t.Errorf("told %q", heard.text)
			}
		})
	}
}

// ears keep the warnings.
type ears struct{ text string }

func (e *ears) Open(context.Context, runner.RunInfo) error { return nil }
func (e *ears) Close(context.Context) error                { return nil }
func (e *ears) Emit(v runner.Event) {
	if v.Kind == runner.WarnEvent {
		e.text += v.Text + "\n"
	}
}
