package runner_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"trainer/internal/hub"
	"trainer/internal/sandbox"
	"trainer/internal/together"
	api "trainer/internal/wire"
	"trainer/recipe"
	"trainer/runner"
)

// bench is a recipe, a sandbox and a client between them that can be cut.
type bench struct {
	t      *testing.T
	server *sandbox.Server
	in     *runner.Inputs
	plan   *runner.Plan
	dir    string
	store  string // of the server, where it keeps one
	shape  api.Shape

	warned   strings.Builder // the warnings of the lives of through
	patience time.Duration   // of their clients; 0: a few tries
	alter    func(*runner.World)
}

const rows = `{"messages":[{"role":"user","content":"cat?"},{"role":"assistant","content":"meow"}]}
{"messages":[{"role":"user","content":"dog?"},{"role":"assistant","content":"woof"}]}
{"messages":[{"role":"user","content":"cow?"},{"role":"assistant","content":"moo"}]}
{"messages":[{"role":"user","content":"duck?"},{"role":"assistant","content":"quack"}]}
{"messages":[{"role":"user","content":"bee?"},{"role":"assistant","content":"buzz"}]}
`

func newBench(t *testing.T, set ...string) *bench {
	t.Helper()
	text := "base_model: sandbox/bytes-tiny\nloss: {type: cross_entropy}\nlora_config: {rank: 8, alpha: 16}\n" +
		"dataset: {train: rows.jsonl, validation: rows.jsonl}\noptimizer: {learning_rate: 3.0e-3}\n" +
		"train: {batch_size: 2, epochs: 2}\neval: {every: 2, at_start: true}\ncheckpoint: {every: 3}\n"
	return benchOf(t, map[string]string{"r.yaml": text, "rows.jsonl": rows}, set...)
}

// benchOf is a bench of the recipe r.yaml among files.
func benchOf(t *testing.T, files map[string]string, set ...string) *bench {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "r.yaml")
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r, err := recipe.Load(path, set...)
	if err != nil {
		t.Fatal(err)
	}
	in, err := runner.Open(t.Context(), r, &hub.Hub{}, true)
	if err != nil {
		t.Fatal(err)
	}
	p, err := runner.NewPlan(in)
	if err != nil {
		t.Fatal(err)
	}
	return &bench{t: t, in: in, plan: p}
}

// fresh calls f with an empty run folder and an empty server, in a bubble in which waiting takes no time.
func (b *bench) fresh(f func(t *testing.T)) {
	synctest.Test(b.t, func(t *testing.T) {
		s, err := sandbox.Open(sandbox.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = s.Close() }()
		b.server, b.dir = s, t.TempDir()
		f(t)
	})
}

// life runs until the end, or until request number die: before it reaches the server, or behind it with its answer lost.
func (b *bench) life(die int, lost bool) (runner.Summary, int, error) {
	ctx, cut := context.WithCancelCause(context.Background())
	defer cut(nil)
	line := &wire{next: b.server, die: die, lost: lost, cut: func() { cut(errDead) }}
	c := together.New(together.Options{BaseURL: "http://sandbox", Key: "k", Transport: line, Shape: b.shape})
	w := runner.World{Backend: c, Resources: c, Downloads: c, Dir: b.dir, Version: "test", Sandbox: true}
	if b.alter != nil {
		b.alter(&w)
	}
	s, err := runner.Run(ctx, ctx, b.in, b.plan, w)
	return s, line.count(), err
}

var errDead = errors.New("killed")

// wire is a transport that goes dead at a request, and takes the process with it.
type wire struct {
	next http.RoundTripper
	die  int
	lost bool
	cut  func()

	mu sync.Mutex
	n  int
}

func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	w.mu.Lock()
	w.n++
	n := w.n
	w.mu.Unlock()
	if w.die == 0 || n < w.die {
		return w.next.RoundTrip(r)
	}
	if n == w.die && w.lost {
		if res, err := w.next.RoundTrip(r); err == nil {
			_, _ = io.Copy(io.Discard, res.Body)
			_ = res.Body.Close()
		}
	}
	w.cut()
	return nil, errDead
}

func (w *wire) count() int { w.mu.Lock(); defer w.mu.Unlock(); return w.n }

// steps are the metrics of a run without what a clock or a bill decides.
func (b *bench) steps() string {
	b.t.Helper()
	lines, err := runner.ReadMetrics(b.dir)
	if err != nil {
		b.t.Fatal(err)
	}
	var out bytes.Buffer
	for _, m := range lines {
		maps.DeleteFunc(m, func(k string, _ float64) bool {
			return strings.HasPrefix(k, "time/") || strings.HasPrefix(k, "cost/") || k == "generation"
		})
		fmt.Fprintln(&out, m)
	}
	return out.String()
}

// ready lists what still bills.
func (b *bench) ready() []string {
	b.t.Helper()
	c := together.New(together.Options{BaseURL: "http://sandbox", Key: "k", Transport: b.server})
	rs, _, err := c.Mine(context.Background(), false)
	if err != nil {
		b.t.Fatal(err)
	}
	var ids []string
	for _, r := range rs {
		if r.Status == runner.Ready || r.Status == runner.Pending || r.Status == runner.Creating {
			ids = append(ids, r.ID+" "+r.Status)
		}
	}
	return ids
}

// unbroken is what a run that nothing disturbs measures.
func (b *bench) unbroken() (steps string) {
	b.fresh(func(t *testing.T) {
		if _, _, err := b.life(0, false); err != nil {
			t.Fatal(err)
		}
		steps = b.steps()
	})
	return steps
}

// sameWherever compares a run that is cut at its requests with the unbroken one, by metrics and weights, and returns the steps of that.
func (b *bench) sameWherever(stride, least int, weights func() string) (steps string) {
	var want string
	b.onDisk(func(t *testing.T) {
		if _, _, err := b.life(0, false); err != nil {
			t.Fatal(err)
		}
		steps, want = b.steps(), weights()
	})
	b.cutAtRequests(stride, least, func(t *testing.T, point string) {
		b.resumes(t, point, steps)
		if weights() != want {
			t.Errorf("%s: other weights than those of the unbroken run", point)
		}
	})
	return steps
}

// cutAtRequests cuts a life at its requests, stride apart, on servers that keep their logs, and calls behind with what is left and with
// the name of the point. At least as many points have to be found.
func (b *bench) cutAtRequests(stride, least int, behind func(t *testing.T, point string)) {
	points := 0
	for die, over := 1, false; !over; die += sparse(stride) {
		for _, lost := range ways(die) {
			b.onDisk(func(t *testing.T) {
				_, n, err := b.life(die, lost)
				if over = err == nil && n < die; over {
					return
				}
				points++
				behind(t, fmt.Sprintf("request %d (lost %v)", die, lost))
			})
		}
	}
	if b.t.Logf("%d points", points); points < fewest(least) {
		b.t.Errorf("only %d points", points)
	}
}

// wholeBehind resumes what is left of a run, and holds it to what the unbroken one ended with.
func (b *bench) wholeBehind(want outcome) func(t *testing.T, point string) {
	return func(t *testing.T, point string) {
		if _, err := b.through(b.server); err != nil {
			t.Fatalf("%s: resume: %v", point, err)
		}
		judge(t, b.dir, b.store, true).hold(t, point)
		b.compare(t, want)
		if t.Failed() {
			t.Fatal(point)
		}
	}
}

// TestKillAtEveryRequest cuts a run at each of its requests (at every third where it is not the default lookahead), resumes
// it, and compares it with the unbroken one.
// go test ./runner -run TestKillAtEveryRequest -everywhere -timeout 0 is the long form.
func TestKillAtEveryRequest(t *testing.T) {
	t.Parallel()
	for _, lookahead := range []int{0, 1, 4} {
		t.Run(fmt.Sprintf("lookahead %d", lookahead), func(t *testing.T) {
			b := newBench(t, fmt.Sprintf("train.lookahead=%d", lookahead))
			want, points := b.unbroken(), 0
			stride := 3
			if lookahead == 1 {
				stride = 1
			}
			for die, over := 1, false; !over; die += sparse(stride) {
				for _, lost := range ways(die) {
					b.fresh(func(t *testing.T) {
						_, n, err := b.life(die, lost)
						if over = err == nil && n < die; over {
							return
						}
						points++
						b.resumes(t, fmt.Sprintf("request %d (lost %v)", die, lost), want)
					})
				}
			}
			t.Logf("%d points", points)
		})
	}
}

// resumes continues a run that was cut, and holds it to the unbroken one.
func (b *bench) resumes(t *testing.T, point, want string) {
	t.Helper()
	_, _, err := b.life(0, false)
	if err != nil {
		t.Fatalf("%s: resume: %v", point, err)
	}
	if got := b.steps(); got != want {
		t.Fatalf("%s: got\n%swant\n%s", point, got, want)
	}
	if left := b.ready(); len(left) > 0 {
		t.Fatalf("%s: left running: %v", point, left)
	}
}

// TestStopThenResume ends a run in order at each step and continues it.
func TestStopThenResume(t *testing.T) {
	b := newBench(t)
	want := b.unbroken()
	for at := 1; at < len(b.plan.Rates); at++ {
		b.fresh(func(t *testing.T) {
			stop, ask := context.WithCancelCause(t.Context())
			defer ask(nil)
			c := together.New(together.Options{BaseURL: "http://sandbox", Key: "k", Transport: b.server})
			w := runner.World{Backend: c, Resources: c, Dir: b.dir, Sandbox: true, Sinks: []runner.Sink{&asker{at, func() { ask(runner.ErrInterrupted) }}}}
			s, err := runner.Run(t.Context(), stop, b.in, b.plan, w)
			if err != nil && !errors.Is(err, runner.ErrInterrupted) {
				t.Fatalf("stop at step %d: %v", at, err)
			}
			if left := b.ready(); len(left) > 0 {
				t.Fatalf("stop at step %d: left running: %v", at, left)
			}
			if err != nil && (len(s.Saved) == 0 || s.Saved[0].Done != s.Done) {
				t.Fatalf("stop at step %d: %d steps done, saved %+v", at, s.Done, s.Saved)
			}
			b.resumes(t, fmt.Sprintf("stop at step %d", at), want)
		})
	}
}

// asker asks for an end when a step has landed.
type asker struct {
	at  int
	ask func()
}

func (a *asker) Open(context.Context, runner.RunInfo) error { return nil }
func (a *asker) Close(context.Context) error                { return nil }
func (a *asker) Emit(e runner.Event) {
	if e.Kind == runner.StepEvent && e.Done >= a.at {
		a.ask()
	}
}
