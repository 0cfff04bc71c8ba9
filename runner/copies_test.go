package runner_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"trainer/internal/download"
	"trainer/internal/sandbox"
	"trainer/runner"
)

// states are the checkpoints of a run folder, as "kind step state why".
func (b *bench) states() string {
	b.t.Helper()
	c, err := runner.ReadCheckpoints(b.dir)
	if err != nil {
		b.t.Fatal(err)
	}
	text := ""
	for _, m := range c.Made {
		text += strings.TrimSpace(fmt.Sprintf("%s %d %s %s", m.Kind, m.Done, m.State, m.Why)) + "\n"
		if m.Session == "" || m.ID == "" || m.CreatedAt.IsZero() || m.Verified == (m.State == runner.StateUnverified) {
			b.t.Errorf("%+v", m)
		}
	}
	return text
}

// resolve puts the recipe into the run folder, where a command line's run has it.
func (b *bench) resolve(t *testing.T) {
	t.Helper()
	write(t, filepath.Join(b.dir, runner.ResolvedName), string(b.in.Recipe.Resolved()))
}

// copied are the copies in the run folder, whole or not, by folder.
func (b *bench) copied(t *testing.T) string {
	t.Helper()
	dirs, err := filepath.Glob(filepath.Join(b.dir, "checkpoints", "*"))
	if err != nil {
		t.Fatal(err)
	}
	text := ""
	for _, d := range dirs {
		_, size, whole, err := download.Read(d)
		if err != nil || size == 0 {
			t.Errorf("%s: %d bytes, %v", d, size, err)
		}
		text += fmt.Sprintf("%s %v\n", filepath.Base(d), whole)
	}
	return text
}

// tensors are the bytes of the copies' tensors, behind the names.
func (b *bench) tensors(t *testing.T) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(b.dir, "checkpoints", "*", "*.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	text := ""
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		text += strings.TrimPrefix(f, b.dir) + " " + string(data)
	}
	return text
}

var cadence = []string{"checkpoint.every=1", "checkpoint.inference_every=2", "checkpoint.keep_last=2", "checkpoint.keep_best={metric: eval/loss, mode: max}"}

// TestWhatIsKept: the oldest are forgotten as the run goes on, but for the best, whose evaluation ends behind it.
func TestWhatIsKept(t *testing.T) {
	b := newBench(t, cadence...)
	want := "training 1 forgotten checkpoint.keep_last 2\ntraining 2 kept keep_best\ninference 2 kept keep_best\ntraining 3 forgotten checkpoint.keep_last 2\n" +
		"training 4 forgotten checkpoint.keep_last 2\ninference 4 kept keep_last\ntraining 5 kept keep_last\ntraining 6 kept newest\ninference 6 kept newest\n"
	requests := 0
	b.fresh(func(t *testing.T) {
		b.resolve(t)
		_, n, err := b.life(0, false)
		if requests = n; err != nil {
			t.Fatal(err)
		}
		if got := b.states(); got != want {
			t.Errorf("got\n%swant\n%s", got, want)
		}
	})
	for die := 20; die < requests; die += 9 {
		b.fresh(func(t *testing.T) {
			b.resolve(t)
			if _, _, err := b.life(die, true); err == nil {
				return // it asked for fewer things, since it polls by the clock
			}
			b.states()
			if _, _, err := b.life(0, false); err != nil {
				t.Fatalf("request %d: %v", die, err)
			}
			if got := lineage(b.states()); got != want {
				t.Errorf("request %d: got\n%swant\n%s", die, got, want)
			}
		})
	}
}

// lineage leaves out what a life that was cut has saved twice.
func lineage(states string) (text string) {
	for line := range strings.Lines(states) {
		if !strings.Contains(line, runner.StateUnverified) && !strings.Contains(line, runner.StateAbandoned) {
			text += line
		}
	}
	return text
}

// paced is fresh with a server whose operations take a time.
func (b *bench) paced(pace string, f func(t *testing.T)) {
	synctest.Test(b.t, func(t *testing.T) {
		times, err := sandbox.OpTime{}.With(pace)
		if err != nil {
			t.Fatal(err)
		}
		s, err := sandbox.Open(sandbox.Options{OpTime: times})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = s.Close() }()
		b.server, b.dir = s, t.TempDir()
		f(t)
	})
}

// watcher notes when requests are sent, by the last part of their path.
type watcher struct {
	next http.RoundTripper
	on   func(r *http.Request)

	mu    sync.Mutex
	start time.Time
	posts map[string][]time.Duration
}

func (w *watcher) RoundTrip(r *http.Request) (*http.Response, error) {
	w.mu.Lock()
	if w.start.IsZero() {
		w.start, w.posts = time.Now(), map[string][]time.Duration{}
	}
	if name := filepath.Base(r.URL.Path); r.Method == http.MethodPost {
		w.posts[name] = append(w.posts[name], time.Since(w.start))
	}
	w.mu.Unlock()
	if w.on != nil {
		w.on(r)
	}
	return w.next.RoundTrip(r)
}

// TestASlowCheckpointHoldsNoSubmissionUp: the steps behind an inference checkpoint are queued while it is being made, as
// many as the lookahead allows.
func TestASlowCheckpointHoldsNoSubmissionUp(t *testing.T) {
	for _, lookahead := range []int{1, 3} {
		b := newBench(t, "checkpoint.inference_every=1", "eval.every=null", "eval.at_start=false", "checkpoint.every=null", fmt.Sprintf("train.lookahead=%d", lookahead))
		b.paced("inference-checkpoint=100s,forward-backward=1s,optim-step=1s", func(t *testing.T) {
			w := &watcher{next: b.server}
			if _, err := b.through(w); err != nil {
				t.Fatal(err)
			}
			saves, steps := w.posts["inference-checkpoint"], w.posts["optim-step"]
			if len(saves) != 6 || len(steps) != 6 {
				t.Fatalf("%d checkpoints, %d steps", len(saves), len(steps))
			}
			for i := 1; i+lookahead < len(steps); i++ { // step i+lookahead is sent before the checkpoint of step i ends
				if late := steps[i+lookahead-1] - saves[i-1]; late > 110*time.Second*time.Duration(max(0, i-1)) {
					t.Errorf("lookahead %d: step %d was sent %v after the checkpoint behind step %d", lookahead, i+lookahead, late, i)
				}
			}
			if late := steps[lookahead] - saves[0]; late > time.Second {
				t.Errorf("lookahead %d: step %d was sent %v after the checkpoint behind step 1, which takes 100 s", lookahead, lookahead+1, late)
			}
		})
	}
}

// TestSavingByTime: the step that a checkpoint falls on by the clock is in the journal with its intent, so that a later life,
// whose clock begins anew, has the same ones.
func TestSavingByTime(t *testing.T) {
	b := newBench(t, "checkpoint.every=null", "checkpoint.every_duration=25s", "train.lookahead=0", "checkpoint.inference_at_end=false", "eval.every=null")
	const pace = "optim-step=10s"
	want := "training 3 kept keep_last\ntraining 6 kept newest\n"
	b.paced(pace, func(t *testing.T) {
		b.resolve(t)
		if _, _, err := b.life(0, false); err != nil {
			t.Fatal(err)
		}
		if got := b.states(); got != want {
			t.Errorf("got\n%swant\n%s", got, want)
		}
	})
	b.paced(pace, func(t *testing.T) {
		b.resolve(t)
		if b.killed(posts("training-checkpoint"), 1) == nil {
			t.Fatal("the life was not cut")
		}
		if _, _, err := b.life(0, false); err != nil {
			t.Fatal(err)
		}
		if got := b.states(); !strings.HasPrefix(got, "training 3 kept") {
			t.Errorf("the checkpoint whose answer was lost is not verified: got\n%s", got)
		}
	})
}

// TestCopies: what is kept is copied beside the training, and never holds it up; what is final is copied when nothing bills
// any more.
func TestCopies(t *testing.T) {
	took := map[string]time.Duration{}
	for _, mode := range []string{"none", "final", "kept"} {
		b := newBench(t, append([]string{"checkpoint.download=" + mode}, cadence...)...)
		b.paced("optim-step=1s", func(t *testing.T) {
			b.resolve(t)
			var files, ready atomic.Int64
			w := &watcher{next: b.server, on: func(r *http.Request) {
				if strings.HasPrefix(r.URL.Path, "/files/") {
					time.Sleep(3 * time.Second)
					files.Add(1)
					ready.Add(int64(len(b.ready())))
				}
			}}
			steps := &lastStep{}
			c := client(w)
			world := runner.World{Backend: c, Resources: c, Downloads: c, Dir: b.dir, Version: "test", Sandbox: true, Sinks: []runner.Sink{steps}}
			began := time.Now()
			if _, err := runner.Run(t.Context(), t.Context(), b.in, b.plan, world); err != nil {
				t.Fatal(err)
			}
			took[mode] = steps.at.Sub(began)
			want := map[string]string{"none": "", "final": "step-6-adapter true\n", "kept": "step-2-adapter true\nstep-4-adapter true\nstep-6-adapter true\n"}[mode]
			if got := b.copied(t); got != want {
				t.Errorf("%s: got\n%swant\n%s", mode, got, want)
			}
			if mode == "final" && (ready.Load() > 0 || files.Load() == 0) {
				t.Errorf("%s: %d files were fetched, while %d resources billed", mode, files.Load(), ready.Load())
			}
		})
	}
	if took["kept"] > took["none"]+time.Second || took["final"] > took["none"]+time.Second {
		t.Errorf("the steps took %v", took)
	}
}

// killed is a life whose process ends behind request number at of those that match: it is carried out, its answer is lost,
// and nothing is sent after it. nil: there were fewer.
func (b *bench) killed(match func(*http.Request) bool, at int) error {
	return b.cut(b.t, &killer{next: b.server, match: match, at: at})
}

// cut is a life whose process ends where k says; nil: it came to its end before.
func (b *bench) cut(t *testing.T, k *killer) error {
	ctx, cut := context.WithCancelCause(t.Context())
	defer cut(nil)
	k.cut = func() { cut(errDead) }
	c := client(k)
	_, err := runner.Run(ctx, ctx, b.in, b.plan, runner.World{Backend: c, Resources: c, Downloads: c, Dir: b.dir, Version: "test", Sandbox: true})
	if !k.dead {
		return nil
	}
	return errors.Join(errDead, err)
}

type killer struct {
	next  http.RoundTripper
	match func(*http.Request) bool
	at    int
	cut   func()

	mu   sync.Mutex
	dead bool
}

func (k *killer) RoundTrip(r *http.Request) (*http.Response, error) {
	k.mu.Lock()
	if !k.dead && k.match(r) {
		k.at--
		k.dead = k.at == 0
		if k.dead {
			defer k.cut()
			if res, err := k.next.RoundTrip(r); err == nil {
				_ = res.Body.Close()
			}
		}
	}
	dead := k.dead
	k.mu.Unlock()
	if dead {
		return nil, errDead
	}
	return k.next.RoundTrip(r)
}

// lastStep is when the last step landed.
type lastStep struct{ at time.Time }

func (l *lastStep) Open(context.Context, runner.RunInfo) error { return nil }
func (l *lastStep) Close(context.Context) error                { return nil }
func (l *lastStep) Emit(e runner.Event) {
	if e.Kind == runner.StepEvent {
		l.at = e.Time
	}
}

// TestKillAtEveryRequestOfADownload cuts a run at each request for a file or its addresses, also behind the release, resumes
// it, and holds the copies to those of the unbroken run, bit for bit.
func TestKillAtEveryRequestOfADownload(t *testing.T) {
	for _, mode := range []string{"final", "kept"} {
		b := newBench(t, "checkpoint.download="+mode, "checkpoint.inference_every=3", "checkpoint.keep_last=1", "train.lookahead=0")
		want, steps := "", ""
		b.fresh(func(t *testing.T) {
			if _, _, err := b.life(0, false); err != nil {
				t.Fatal(err)
			}
			want, steps = b.tensors(t), b.steps()
			if got := b.copied(t); got != "step-6-adapter true\n" {
				t.Fatalf("%s: got\n%s", mode, got)
			}
		})
		points := 0
		for at, over := 1, false; !over; at += sparse(1) {
			b.fresh(func(t *testing.T) {
				files := func(r *http.Request) bool {
					return strings.HasPrefix(r.URL.Path, "/files/") || strings.HasSuffix(r.URL.Path, "/download")
				}
				if over = b.killed(files, at) == nil; over {
					return
				}
				points++
				s, _, err := b.life(0, false)
				if err != nil || s.Outcome != "complete" {
					t.Fatalf("%s, request %d: resume: %s, %v", mode, at, s.Outcome, err)
				}
				if got := b.copied(t); got != "step-6-adapter true\n" || b.tensors(t) != want || b.steps() != steps {
					t.Errorf("%s, request %d: got\n%s", mode, at, got)
				}
			})
		}
		t.Logf("%s: %d points", mode, points)
		if points < fewest(3) {
			t.Errorf("%s: only %d points", mode, points)
		}
	}
}

// TestADownloadThatFailsIsSaid: the run is complete, and its error says what is missing; the next life fetches it and trains
// nothing.
func TestADownloadThatFailsIsSaid(t *testing.T) {
	b := newBench(t, "checkpoint.download=final")
	b.fresh(func(t *testing.T) {
		gone := &liar{next: b.server, at: 1, reach: forever, match: func(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, "/files/") },
			do: func(*http.Request, pass) (*http.Response, error) {
				return &http.Response{StatusCode: 404, Header: http.Header{}, Body: http.NoBody}, nil
			}}
		s, err := b.through(gone)
		var refused *runner.Refused
		if s.Outcome != "complete" || !errors.As(err, &refused) || !strings.Contains(err.Error(), "download the inference checkpoint of step 6") {
			t.Fatalf("%s, %v", s.Outcome, err)
		}
		if left := b.ready(); len(left) > 0 {
			t.Errorf("left running: %v", left)
		}
		made := &creates{next: b.server}
		if s, err = b.through(made); err != nil || s.Idle || made.n > 0 {
			t.Errorf("the next life: %+v, %v, %d resources", s, err, made.n)
		}
		if got := b.copied(t); got != "step-6-adapter true\n" {
			t.Errorf("got\n%s", got)
		}
		quiet := &watcher{next: b.server}
		if s, err = b.through(quiet); err != nil || !s.Idle || !quiet.start.IsZero() {
			t.Errorf("the life behind it: %+v, %v", s, err)
		}
	})
}
