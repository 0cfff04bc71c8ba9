package runner_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"trainer/internal/sandbox"
	"trainer/runner"
)

// failing is a server at which the fifth optimiser step fails: the first session ends behind the checkpoint of step 3.
const failing = "fail:on=optim-step,at=5,code=INTERNAL_ERROR"

// begun are the steps that each session of the journal began with.
func (o *oracle) begun() (from []int) {
	for _, g := range o.generations() {
		from = append(from, g.from)
	}
	return from
}

// reasons are why the sessions were opened.
func (o *oracle) reasons() (why []string) {
	for _, e := range o.records {
		if e.text("type") == "create" && e.text("what") == "session" {
			why = append(why, e.text("reason"))
		}
	}
	return why
}

// TestKillAtEveryRequestOfARollback cuts a run in which a session is given up at each of its requests, resumes it, and
// compares it with the run that nothing disturbed.
func TestKillAtEveryRequestOfARollback(t *testing.T) {
	t.Parallel()
	for _, lookahead := range []int{0, 1, 4} {
		t.Run(fmt.Sprintf("lookahead %d", lookahead), func(t *testing.T) {
			b := newBench(t, fmt.Sprintf("train.lookahead=%d", lookahead))
			b.alter = func(w *runner.World) { w.Restart = true } // where it dies before the first checkpoint
			want, points := b.measured(), 0
			stride := 5
			if lookahead == 1 {
				stride = 2
			}
			for die, over := 1, false; !over; die += sparse(stride) {
				b.against(sandbox.Options{}, func(t *testing.T) {
					point := fmt.Sprintf("request %d (lost %v)", die, die%4 < 2)
					_, n, err := b.life(die, die%4 < 2)
					if over = err == nil && n < die; over {
						return
					}
					points++
					b.resumes(t, point, want.steps)
					b.compare(t, want)
				}, failing)
			}
			t.Logf("%d points", points)
		})
	}
}

// TestThreeCrashesInARow cuts three lives one after another at requests that are drawn, on the way into a rollback and out
// of it.
func TestThreeCrashesInARow(t *testing.T) {
	t.Parallel()
	dice := drawn(t, "fault-seed", *faultSeed)
	for _, lookahead := range []int{0, 1, 4} {
		b := newBench(t, fmt.Sprintf("train.lookahead=%d", lookahead))
		b.alter = func(w *runner.World) { w.Restart = true } // where it dies before the first checkpoint
		want := b.measured()
		for range 8 {
			b.against(sandbox.Options{}, func(t *testing.T) {
				point := fmt.Sprintf("lookahead %d:", lookahead)
				for range 3 {
					die, lost := 1+dice.IntN(90), dice.IntN(2) == 0
					point += fmt.Sprintf(" request %d (lost %v)", die, lost)
					_, _, _ = b.life(die, lost) // how it ends is the next one's business
					judge(t, b.dir, b.store, false).hold(t, point)
				}
				b.resumes(t, point, want.steps)
				b.compare(t, want)
			}, failing)
		}
	}
}

// TestRollbackWithFullWeights: the service has room for one such session, so the old one must be over first.
func TestRollbackWithFullWeights(t *testing.T) {
	b := newBench(t, "lora_config=null")
	want := b.measured()
	b.against(sandbox.Options{}, func(t *testing.T) {
		if _, err := b.through(b.server); err != nil {
			t.Fatal(err)
		}
		b.compare(t, want)
		if got := judge(t, b.dir, b.store, true).begun(); !slices.Equal(got, []int{0, 3}) {
			t.Errorf("the sessions began at %v", got)
		}
	}, failing)
}

// hides answers as if checkpoints were deleted: the newest so many that are asked for, or all.
type hides struct {
	next http.RoundTripper
	most int
	gone []string
}

func (h *hides) RoundTrip(r *http.Request) (*http.Response, error) {
	id := path.Base(r.URL.Path)
	if r.Method != http.MethodGet || path.Base(path.Dir(r.URL.Path)) != "checkpoints" {
		return h.next.RoundTrip(r)
	}
	if !slices.Contains(h.gone, id) {
		if len(h.gone) >= h.most {
			return h.next.RoundTrip(r)
		}
		h.gone = append(h.gone, id)
	}
	return answer(r, http.StatusNotFound, `{"error":{"type":"invalid_request_error","code":"not_found","message":"it was deleted"}}`), nil
}

// TestADeletedCheckpointIsPassedOver: a rollback begins from an older one, or from the start, with the same weights in the
// end; a resume does the first, and the second only where it is told to.
func TestADeletedCheckpointIsPassedOver(t *testing.T) {
	t.Parallel()
	for most, from := range map[int]int{0: 4, 1: 3, 2: 2, forever: 0} {
		b := newBench(t, "checkpoint.every=1", "train.lookahead=0")
		want := b.measured()
		b.against(sandbox.Options{}, func(t *testing.T) {
			if _, err := b.through(&hides{next: b.server, most: most}); err != nil {
				t.Fatal(err)
			}
			b.compare(t, want)
			if got := judge(t, b.dir, b.store, true).begun(); !slices.Equal(got, []int{0, from}) {
				t.Errorf("%d checkpoints are gone: the sessions began at %v", most, got)
			}
		}, failing)
		b.onDisk(func(t *testing.T) {
			if err := b.cutAt(4); err == nil {
				t.Fatal("the life was not cut")
			}
			c := &creates{next: &hides{next: b.server, most: most}}
			_, err := b.through(c)
			if most == forever {
				if !errors.Is(err, runner.ErrUnsaved) || c.n > 0 {
					t.Errorf("with every checkpoint gone: %v, %d resources were asked for", err, c.n)
				}
				b.alter = func(w *runner.World) { w.Restart = true }
				_, err = b.through(c)
				b.alter = nil
			}
			if err != nil {
				t.Fatal(err)
			}
			b.compare(t, want)
			if got := judge(t, b.dir, b.store, true).begun(); len(got) != 2 || got[1] > from {
				t.Errorf("%d checkpoints are gone: the resumed sessions began at %v", most, got)
			}
		})
	}
}

// TestACheckpointThatFailsAtOnceIsPassedOver: a session that fails in its first step may owe that to where it began.
func TestACheckpointThatFailsAtOnceIsPassedOver(t *testing.T) {
	b := newBench(t, "checkpoint.every=1", "train.lookahead=0")
	want := b.measured()
	b.against(sandbox.Options{}, func(t *testing.T) {
		if _, err := b.through(b.server); err != nil {
			t.Fatal(err)
		}
		b.compare(t, want)
		if got := judge(t, b.dir, b.store, true).begun(); !slices.Equal(got, []int{0, 4, 3}) {
			t.Errorf("the sessions began at %v", got)
		}
	}, failing, "fail:on=optim-step,at=6,code=TIMEOUT")
}

// TestRollbacksEnd: what fails in every session ends the run, also where each of them makes again a checkpoint that
// another made before.
func TestRollbacksEnd(t *testing.T) {
	for _, every := range []string{"1", "2", "null"} {
		b := newBench(t, "checkpoint.every="+every, "lr_schedule.type=linear", "lr_schedule.warmup_ratio=0")
		b.onDisk(func(t *testing.T) {
			_, err := b.through(b.curse("INTERNAL_ERROR", 4))
			if err == nil || !strings.Contains(err.Error(), "it was rolled back 3 times without a new checkpoint") || errors.Is(err, runner.ErrHopeless) {
				t.Errorf("every %s: the run ends with %v", every, err)
			}
			o := judge(t, b.dir, b.store, true)
			o.hold(t, "every "+every)
			if got := o.reasons(); !slices.Equal(got, []string{"start", "rollback", "rollback", "rollback"}) {
				t.Errorf("every %s: the sessions were opened for %v", every, got)
			}
			if left := b.ready(); len(left) > 0 {
				t.Errorf("every %s: left running: %v", every, left)
			}
		})
	}
}

// TestAStopDuringARollback: who asks for the end gets it, and a resume goes on.
func TestAStopDuringARollback(t *testing.T) {
	b := newBench(t)
	want := b.measured()
	b.against(sandbox.Options{}, func(t *testing.T) {
		stop, ask := context.WithCancelCause(t.Context())
		defer ask(nil)
		c := client(&liar{next: b.server, match: posts("training-sessions"), at: 2, reach: 1, do: func(r *http.Request, p pass) (*http.Response, error) {
			ask(runner.ErrInterrupted)
			return p()
		}})
		_, err := runner.Run(t.Context(), stop, b.in, b.plan, runner.World{Backend: c, Resources: c, Dir: b.dir, Sandbox: true})
		if !errors.Is(err, runner.ErrInterrupted) {
			t.Fatalf("the life ends with %v", err)
		}
		if left := b.ready(); len(left) > 0 {
			t.Errorf("left running: %v", left)
		}
		b.resumes(t, "a stop", want.steps)
		b.compare(t, want)
	}, failing)
}

// TestLookaheadAfterADisorder: a service that was seen to mix operations up gets one at a time from then on, also in the
// next life.
func TestLookaheadAfterADisorder(t *testing.T) {
	b := newBench(t, "train.lookahead=4", "checkpoint.every=1")
	want := b.measured()
	slow := paceOf(t, "forward-backward=30s,optim-step=1s")
	b.against(sandbox.Options{OpTime: slow}, func(t *testing.T) {
		if _, err := b.through(&liar{next: b.server, match: posts("optim-step"), at: 7, reach: forever, do: says(403, false)}); err == nil {
			t.Fatal("the life was not ended")
		}
		if !strings.Contains(b.warned.String(), "submitted earlier") {
			t.Fatalf("no disorder was noticed: %s", b.warned.String())
		}
		s := &overlaps{next: b.server, known: map[string]bool{}, running: map[string]bool{}}
		if _, err := b.through(s); err != nil {
			t.Fatal(err)
		}
		if s.most > 1 {
			t.Errorf("%d operations were unfinished at a time", s.most)
		}
		b.compare(t, want)
	}, "reorder:on=forward-backward,at=5,after=2s")
}

// overlaps counts the operations that a client has submitted and not yet read the end of.
type overlaps struct {
	next           http.RoundTripper
	known, running map[string]bool
	most           int
}

func (s *overlaps) RoundTrip(r *http.Request) (*http.Response, error) {
	pass := func() (*http.Response, error) { return s.next.RoundTrip(r) }
	dir := path.Dir(r.URL.Path)
	switch {
	case r.Method == http.MethodPost && path.Base(dir) == "operations":
		return altered(func() (*http.Response, error) { return unfinished(r, pass) }, func(b []byte) []byte {
			if id := idOf(b); !s.known[id] { // the first witness is asked for twice
				s.known[id], s.running[id] = true, true
			}
			s.most = max(s.most, len(s.running))
			return b
		})
	case r.Method == http.MethodGet && path.Base(path.Dir(dir)) == "operations":
		return altered(pass, func(b []byte) []byte {
			if !strings.Contains(string(b), "RUNNING") && !strings.Contains(string(b), "QUEUED") && !strings.Contains(string(b), "PENDING") {
				delete(s.running, idOf(b))
			}
			return b
		})
	}
	return pass()
}

func idOf(op []byte) string {
	_, rest, _ := strings.Cut(string(op), `"id":"`)
	id, _, _ := strings.Cut(rest, `"`)
	return id
}

// TestAnOutageIsSatOut: for twenty minutes nobody answers; the run goes on in its session.
func TestAnOutageIsSatOut(t *testing.T) {
	for _, lookahead := range []int{0, 1} {
		b := newBench(t, fmt.Sprintf("train.lookahead=%d", lookahead), "inactive_timeout=1h")
		want := b.measured()
		b.onDisk(func(t *testing.T) {
			var since sync.Map
			out := &liar{next: b.server, match: anything, at: 40, reach: forever, do: func(r *http.Request, p pass) (*http.Response, error) {
				first, _ := since.LoadOrStore("began", time.Now())
				if time.Since(first.(time.Time)) < 20*time.Minute {
					return says(503, false)(r, p)
				}
				return p()
			}}
			if _, _, err := b.patiently(out); err != nil {
				t.Fatal(err)
			}
			b.compare(t, want)
			if got := judge(t, b.dir, b.store, true).begun(); !slices.Equal(got, []int{0}) {
				t.Errorf("lookahead %d: the sessions began at %v", lookahead, got)
			}
		})
	}
}

// TestHarmlessWorkIsAskedForAgain: while nothing is sent behind it, what trains nothing has three tries.
func TestHarmlessWorkIsAskedForAgain(t *testing.T) {
	b := newBench(t, "train.lookahead=0")
	want := b.measured()
	for tries := range 3 {
		b.onDisk(func(t *testing.T) {
			if _, err := b.through(&liar{next: b.server, ops: "training-checkpoint", at: 1, reach: tries, do: fails("INTERNAL_ERROR")}); err != nil {
				t.Fatal(err)
			}
			b.compare(t, want)
			saved := 0
			for _, e := range judge(t, b.dir, b.store, true).records {
				if e.text("type") == "checkpoint" && e.text("kind") == "training" {
					saved++
				}
			}
			if saved != 2 || b.warned.Len() > 0 {
				t.Errorf("after %d failures: %d checkpoints, warned of %q", tries, saved, b.warned.String())
			}
		})
	}
}

// TestASpentRunOpensNothing: behind a limit a failure ends the life, resumable, instead of going on in a new session.
func TestASpentRunOpensNothing(t *testing.T) {
	b := newBench(t, "limits.max_duration=1h")
	b.against(sandbox.Options{OpTime: paceOf(t, "optim-step=14m")}, func(t *testing.T) {
		_, err := b.through(b.server)
		if !errors.Is(err, runner.ErrBudget) || !strings.Contains(err.Error(), "INTERNAL_ERROR") {
			t.Errorf("the life ends with %v", err)
		}
		if got := judge(t, b.dir, b.store, true).begun(); !slices.Equal(got, []int{0}) {
			t.Errorf("the sessions began at %v", got)
		}
	}, failing)
}
