package runner_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"trainer/internal/sandbox"
	"trainer/runner"
)

// without names the guard that the runner lives without, in a binary that is built with guards that can be taken out.
const without = "RUNNER_TEST_WITHOUT"

// guards are what keeps a run exactly once, each with the change to the source that takes it out, the test that must then
// fail, and what that must say. The service is at fault in each of these tests; with the guard the run gets past it.
var guards = []struct {
	name    string
	changes []change
	test    string
	says    string
}{
	{"taint", []change{
		{"ended.go", "func (l *ledger) mark(err error) (first bool) {\n", "func (l *ledger) mark(err error) (first bool) {\n\tif without(%q) {\n\t\treturn false\n\t}\n"},
		{"ended.go", "return l.serial && !o.slot.mutating() && ", "return l.serial && (without(%q) || !o.slot.mutating()) && "},
		{"ledger.go", "err != nil && it.slot.mutating() {", "err != nil && it.slot.mutating() && !without(%q) {"},
	}, "TestTheRunnerUnderEachFault/a_forward-backward_fails_and_leaves_a_gradient,_lookahead_0", "other weights than those of the unbroken run"},
	{"order watch", []change{
		{"ledger.go", "func (l *ledger) watch(ctx context.Context, o *operation) error {\n", "func (l *ledger) watch(ctx context.Context, o *operation) error {\n\tif without(%q) {\n\t\treturn nil\n\t}\n"},
	}, "TestOperationsOutOfOrderAreNoticed", "other weights than those of the unbroken run"},
	{"one request at a time", []change{
		{"ledger.go", "	for _, i := range fresh {\n		if err := l.tainted()", `	if without(%q) {
		var wg sync.WaitGroup
		for _, i := range fresh {
			wg.Go(func() { ops[i], _ = l.send(ctx, items[i]) })
		}
		wg.Wait()
		return ops, nil
	}
	for _, i := range fresh {
		if err := l.tainted()`},
	}, "TestFaults/lookahead_1/a_forward_backward_that_never_arrives", "was accepted behind pos"},
	{"witness", []change{
		{"ledger.go", "func (l *ledger) vouch(ctx context.Context) error {\n", "func (l *ledger) vouch(ctx context.Context) error {\n\tif without(%q) {\n\t\treturn nil\n\t}\n"},
	}, "TestFaults/lookahead_1/keys_are_forgotten,_an_answer_is_lost_for_long", `the service counts \d+ optimiser steps, expected`},
	{"inference", []change{
		{"settle.go", "if s.kind == kindOptimStep && at >= in.Expect {", "if s.kind == kindOptimStep && at >= in.Expect && !without(%q) {"},
	}, "TestAnAppliedStepIsInferred", "its key was executed before"},
	{"version of samples", []change{
		{"draw.go", "if err = r.fits(res.Samples, op, q.under.version); err == nil {", "if err = r.fits(res.Samples, op, q.under.version); err == nil || without(%q) {"},
	}, "TestSamplingFaults/a_sample_is_of_other_weights", "a completion is of version 7, the batch of"},
	{"another writer", []change{
		{"settle.go", "	case at > sent:\n", "	case at > sent && !without(%q):\n"},
	}, "TestAnotherWriterIsNoticed", "the run goes on beside another writer"},
}

// change replaces text of a file; %q in it is the guard's name.
type change struct{ file, old, new string }

// TestGuardsAreNeeded builds this package with its guards made removable, takes out one after another, and sees the test
// fail that the guard lets pass: a guard that nothing needs, or a test that sees nothing, would show here.
func TestGuardsAreNeeded(t *testing.T) {
	if testing.Short() || os.Getenv(without) != "" {
		t.Skip("builds the package anew")
	}
	binary := removable(t)
	for _, g := range guards {
		t.Run(g.name, func(t *testing.T) {
			cmd := exec.Command(binary, "-test.run", "^"+strings.ReplaceAll(g.test, "/", "$/^")+"$")
			cmd.Env = append(os.Environ(), without+"="+g.name)
			out, err := cmd.CombinedOutput()
			if err == nil || !regexp.MustCompile(g.says).Match(out) {
				t.Errorf("without it %s ends with %v and does not say %q:\n%.3000s", g.test, err, g.says, out)
			}
		})
	}
}

// removable builds the tests of this package from a source in which an environment variable takes a guard out.
func removable(t *testing.T) (binary string) {
	t.Helper()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	texts := map[string]string{"without.go": fmt.Sprintf("package runner\n\nimport \"os\"\n\nfunc without(guard string) bool { return os.Getenv(%q) == guard }\n", without)}
	for _, g := range guards {
		for _, c := range g.changes {
			if texts[c.file] == "" {
				data, err := os.ReadFile(c.file)
				if err != nil {
					t.Fatal(err)
				}
				texts[c.file] = string(data)
			}
			if n := strings.Count(texts[c.file], c.old); n != 1 {
				t.Fatalf("%s has %d times %q, which is the guard %q; follow it there", c.file, n, c.old, g.name)
			}
			texts[c.file] = strings.Replace(texts[c.file], c.old, fmt.Sprintf(c.new, g.name), 1)
		}
	}
	replace := map[string]string{}
	for name, text := range texts {
		replace[filepath.Join(here, name)] = filepath.Join(dir, name)
		write(t, filepath.Join(dir, name), text)
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "overlay.json"), string(overlay))
	binary = filepath.Join(dir, "guards.test")
	if out, err := exec.Command("go", "test", "-c", "-overlay", filepath.Join(dir, "overlay.json"), "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return binary
}

// TestAnAppliedStepIsInferred: a crash takes the answer of an optimiser step that the service has carried out, and then the
// service forgets the step's key. Its counter says that the step is done, so it is not sent again, and the session goes on.
func TestAnAppliedStepIsInferred(t *testing.T) {
	b := newBench(t)
	want := b.measured()
	b.against(sandbox.Options{}, func(t *testing.T) {
		b.dieAt(t, &liar{match: posts("optim-step"), at: 4, reach: 1, do: after})
		time.Sleep(time.Minute) // the service comes to its end with it
		if _, err := b.through(b.server); err != nil {
			t.Fatal(err)
		}
		b.compare(t, want)
		o := judge(t, b.dir, b.store, true)
		if got := o.begun(); !slices.Equal(got, []int{0}) {
			t.Errorf("the sessions began at %v", got)
		}
		inferred := 0
		for _, e := range o.records {
			if e.text("how") == "inferred" {
				inferred++
			}
		}
		if inferred == 0 {
			t.Error("nothing was inferred")
		}
	}, "forget-key:on=optim-step")
}

// TestAnotherWriterIsNoticed: a session that has more optimiser steps than this run has sent is not trained on.
func TestAnotherWriterIsNoticed(t *testing.T) {
	b := newBench(t)
	b.onDisk(func(t *testing.T) {
		b.dieAt(t, &liar{match: posts("optim-step"), at: 3, reach: 1, do: before})
		session := ""
		for _, e := range judge(t, b.dir, b.store, false).records {
			if e.text("type") == "session" {
				session = e.text("id")
			}
		}
		for range 3 {
			b.stepFrom(t, session)
		}
		time.Sleep(time.Minute)
		_, err := b.through(b.server)
		if err == nil {
			t.Error("the run goes on beside another writer")
		} else if !strings.Contains(err.Error(), "another writer trains it") {
			t.Errorf("the life ends with %v", err)
		}
	})
}

// dieAt is a life that dies where l strikes: nothing that it sends from then on arrives.
func (b *bench) dieAt(t *testing.T, l *liar) {
	t.Helper()
	ctx, cut := context.WithCancelCause(context.Background())
	defer cut(nil)
	line, do, dead := &severed{next: b.server}, l.do, false
	l.next = line
	l.do = func(r *http.Request, p pass) (*http.Response, error) {
		_, _ = do(r, p)
		dead = true
		line.cut.Store(true)
		cut(errDead)
		return nil, errDead
	}
	c := client(l)
	_, err := runner.Run(ctx, ctx, b.in, b.plan, runner.World{Backend: c, Resources: c, Dir: b.dir, Sandbox: true})
	if err == nil || !dead {
		t.Fatalf("the life did not die: %v", err)
	}
}

// severed carries requests until it is cut.
type severed struct {
	next http.RoundTripper
	cut  atomic.Bool
}

func (s *severed) RoundTrip(r *http.Request) (*http.Response, error) {
	if s.cut.Load() {
		return nil, errDead
	}
	return s.next.RoundTrip(r)
}

// stepFrom takes an optimiser step in a session behind the run's back.
func (b *bench) stepFrom(t *testing.T, session string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://sandbox/v1/rl/training-sessions/"+session+"/operations/optim-step", strings.NewReader(`{"adam_params":{"learning_rate":1e-4}}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer k")
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", uuid.NewString())
	res, err := b.server.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	if body, _ := io.ReadAll(res.Body); res.StatusCode > 299 {
		t.Fatalf("%s: %s", res.Status, body)
	}
}
