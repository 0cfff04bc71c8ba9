package runner_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"trainer/internal/sandbox"
	"trainer/internal/together"
	"trainer/runner"
)

// against calls f as fresh does, with a server that things go wrong at.
func (b *bench) against(o sandbox.Options, f func(t *testing.T), faults ...string) {
	for _, text := range faults {
		r, err := sandbox.ParseFault(text)
		if err != nil {
			b.t.Fatal(err)
		}
		o.Faults = append(o.Faults, r)
	}
	synctest.Test(b.t, func(t *testing.T) {
		b.store = t.TempDir()
		b.warned.Reset()
		o.Dir = b.store
		s, err := sandbox.Open(o)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = s.Close() }()
		b.server, b.dir = s, t.TempDir()
		f(t)
	})
}

// mostLives bounds how often a run is resumed.
const mostLives = 20

// lives runs and resumes until the run is complete; errs is what ended each life before the last. A run that could save
// nothing before its session was gone can't be resumed, and says so: then it is not complete.
func (b *bench) lives(t *testing.T) (errs []error, complete bool) {
	t.Helper()
	for range mostLives {
		_, err := b.through(b.server)
		if err == nil {
			return errs, true
		}
		if strings.Contains(err.Error(), "no checkpoint holds any of the") {
			return append(errs, err), false
		}
		if errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("life %d ended by a time limit: %v", len(errs)+1, err)
		}
		errs = append(errs, err)
	}
	t.Fatalf("%d lives and not complete: %v", mostLives, errs)
	return nil, false
}

// outcome is what a run leaves: what it measured, what the server trained, and with what.
type outcome struct{ steps, lineage, weights string }

// measured is the outcome of a run that nothing disturbs.
func (b *bench) measured() (want outcome) {
	b.onDisk(func(t *testing.T) {
		if _, err := b.through(b.server); err != nil {
			t.Fatal(err)
		}
		want = b.outcome(t)
	})
	return want
}

// outcome holds the run to the protocol on the way.
func (b *bench) outcome(t *testing.T) outcome {
	t.Helper()
	o := judge(t, b.dir, b.store, false)
	o.hold(t, "the run")
	return outcome{b.steps(), strings.Join(o.lineage(), "\n"), o.weights(t, b.store)}
}

// compare holds a run to one that nothing disturbed.
func (b *bench) compare(t *testing.T, want outcome) {
	t.Helper()
	got := b.outcome(t)
	if strings.Contains(b.warned.String(), "evaluate: ") { // one that failed under lookahead is left out, with a warning
		evals := regexp.MustCompile(`map\[(eval/\S+ )+step:0\]\n| eval/\S+`)
		got.steps, want.steps = evals.ReplaceAllString(got.steps, ""), evals.ReplaceAllString(want.steps, "")
	}
	if got.steps != want.steps {
		t.Errorf("metrics\n%swant\n%s", got.steps, want.steps)
	}
	if got.lineage != want.lineage {
		t.Errorf("trained with\n%s\nwant\n%s", got.lineage, want.lineage)
	}
	if got.weights != want.weights {
		t.Error("other weights than those of the unbroken run")
	}
}

// readyNow asks the server itself, past its faults.
func (b *bench) readyNow(t *testing.T) (ids []string) {
	t.Helper()
	c := together.New(together.Options{BaseURL: "http://sandbox", Key: "k", Transport: b.server})
	rs, _, err := c.Mine(context.Background(), false)
	for tries := 0; err != nil && tries < 20; tries++ {
		rs, _, err = c.Mine(context.Background(), false)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rs {
		ids = append(ids, r.ID+" "+r.Status)
	}
	return ids
}

// TestAFifthOfTheRequestsFail lets one request in five go wrong in one of many ways, and one operation in twenty. A run
// must then be what it is when nothing goes wrong: in one life, unless the policy ends it.
func TestAFifthOfTheRequestsFail(t *testing.T) {
	t.Parallel()
	ends := regexp.MustCompile(`rolled back 3 times|refused \((429|401)\)|nothing was seen that it has made`)
	for _, lookahead := range []int{0, 1, 4} {
		t.Run(fmt.Sprintf("lookahead %d", lookahead), func(t *testing.T) {
			b := newBench(t, fmt.Sprintf("train.lookahead=%d", lookahead), "checkpoint.every=1")
			b.alter = func(w *runner.World) { w.Restart = true }
			b.patience = b.in.Recipe.InactiveTimeout / 2 // as the command has it: of so many requests one would meet eight faults in a row
			want := b.measured()
			runs := 8
			if testing.Short() {
				runs = 2
			}
			dice, resumed, rolled := drawn(t, "fault-seed", *faultSeed), 0, 0
			for range runs {
				seed := dice.Uint64()
				b.against(sandbox.Options{FaultSeed: seed}, func(t *testing.T) {
					ended, complete := b.lives(t)
					if !complete {
						t.Fatalf("seed %d: after %v: it can't be resumed", seed, ended)
					}
					for _, err := range ended {
						if resumed++; !ends.MatchString(err.Error()) {
							t.Errorf("seed %d: a life ended with %v", seed, err)
						}
					}
					rolled += len(judge(t, b.dir, b.store, false).begun()) - 1
					b.compare(t, want)
					if left := b.readyNow(t); len(left) > 0 {
						t.Errorf("seed %d: after %v: left running: %v", seed, ended, left)
					}
				},
					"drop:rate=0.03", "drop:rate=0.03,when=after",
					"server-error:rate=0.03,status=503,retry_after=2s", "server-error:rate=0.03,when=after,status=500",
					"truncate:rate=0.03", "too-many-requests:rate=0.05,retry_after=1500ms",
					"latency:rate=0.2,exponential=2s", "slow-body:rate=0.05,uniform=1s..30s",
					"fail:rate=0.02,code=INTERNAL_ERROR,leaves=gradient", "fail:rate=0.02,code=TIMEOUT,leaves=step,on=optim-step",
					"forget-operation:rate=0.01", "expire-session:rate=0.01,on=operations")
			}
			t.Logf("%d runs, %d sessions were given up, %d lives ended", runs, rolled, resumed)
		})
	}
}

// TestTheRunnerUnderEachFault lets one thing go wrong that a run can't see coming, and says how it may end the life that
// meets it; the lives behind it must make the run whole.
func TestTheRunnerUnderEachFault(t *testing.T) {
	t.Parallel()
	for i, tt := range []struct {
		name  string
		fault string
		o     sandbox.Options
		rolls string // a pattern of the warning that tells of a rollback; empty: there is none
		ends  string // a pattern of the first life's error; empty: it is complete in one life
	}{
		{"a forward-backward fails and leaves nothing", "fail:on=forward-backward,at=10,code=INTERNAL_ERROR", sandbox.Options{}, "INTERNAL_ERROR", ""},
		{"a forward-backward fails and leaves a gradient", "fail:on=forward-backward,at=10,code=TIMEOUT,leaves=gradient", sandbox.Options{}, "TIMEOUT", ""},
		{"an optim-step fails", "fail:on=optim-step,at=5,code=RESOURCE_EXHAUSTED", sandbox.Options{}, "RESOURCE_EXHAUSTED", ""},
		{"an optim-step fails that was applied", "fail:on=optim-step,at=5,leaves=step", sandbox.Options{}, "INTERNAL_ERROR", ""},
		{"a session expires with work queued", "expire-session:on=optim-step,at=5", sandbox.Options{}, "SESSION_NOT_ACTIVE|EXPIRED", ""},
		{"finished optim-steps are forgotten", "forget-operation:on=optim-step,at=5", sandbox.Options{OpTime: paceOf(t, "optim-step=1s")}, "no longer knows the operation", ""},
		{"the key is withdrawn and comes back", "unauthorized:on=operations,at=20", sandbox.Options{}, "", "401"},
		{"the queue is long", "queue:uniform=1h..9h,position=40", sandbox.Options{}, "", ""},
		{"steps count from zero after a resume", "step-zero", sandbox.Options{}, "", ""},
		{"session.step lags", "lagging-step:by=3", sandbox.Options{}, "", ""},
		{"keys are forgotten at once", "forget-key", sandbox.Options{}, "", ""},
		{"the stop is refused", "refuse-stop:on=stop-resource,at=1", sandbox.Options{}, "", ""},
		{"the session is created twice", "double-create:on=create-session,at=1", sandbox.Options{}, "", ""},
		{"operations are held, and nothing overtakes them", "reorder:on=weights-sync+training-checkpoint", sandbox.Options{}, "", ""},
		{"operations take their time", "latency:rate=0", sandbox.Options{OpTime: profileOf(t, "b200-8b")}, "", ""},
		{"time runs fast", "latency:rate=0", sandbox.Options{Speed: 50}, "", ""},
	} {
		for k, lookahead := range []int{0, 1, 4} {
			if strings.HasPrefix(tt.fault, "reorder") && lookahead > 0 || !inTurn(i, k, 3) {
				continue // the next one overtakes what is held, which is the subject of another test
			}
			t.Run(fmt.Sprintf("%s, lookahead %d", tt.name, lookahead), func(t *testing.T) {
				// A session that is left running must be judged by what the journal knows of it.
				b := newBench(t, fmt.Sprintf("train.lookahead=%d", lookahead), "keep_resources=on_failure")
				want := b.measured()
				b.against(tt.o, func(t *testing.T) {
					ended, complete := b.lives(t)
					switch {
					case !complete:
						t.Fatalf("it can't be resumed: %v", ended)
					case tt.ends == "" && len(ended) > 0:
						t.Errorf("it took more than one life: %v", ended)
					case tt.ends != "" && (len(ended) == 0 || !regexp.MustCompile(tt.ends).MatchString(ended[0].Error())):
						t.Errorf("the lives ended by %v, want the first by %s", ended, tt.ends)
					}
					rolled := strings.Contains(b.warned.String(), "rolling back")
					if rolled != (tt.rolls != "") || !regexp.MustCompile(tt.rolls).MatchString(b.warned.String()) {
						t.Errorf("warned of %q, want a rollback by %q", b.warned.String(), tt.rolls)
					}
					b.compare(t, want)
					if left := b.readyNow(t); len(left) > 0 {
						t.Errorf("after %v: left running: %v", ended, left)
					}
				}, tt.fault)
			})
		}
	}
}

func profileOf(t *testing.T, name string) sandbox.OpTime {
	t.Helper()
	p, err := sandbox.FindGPUProfile(name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func paceOf(t *testing.T, text string) sandbox.OpTime {
	t.Helper()
	p, err := sandbox.OpTime{}.With(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestACapacityTimeoutEndsTheRun: nothing was paid for, and the error names the code.
func TestACapacityTimeoutEndsTheRun(t *testing.T) {
	b := newBench(t)
	b.against(sandbox.Options{}, func(t *testing.T) {
		_, _, err := b.life(0, false)
		if err == nil || !strings.Contains(err.Error(), "CAPACITY_WAIT_TIMEOUT") || errors.Is(err, runner.ErrInterrupted) {
			t.Errorf("got %v, want CAPACITY_WAIT_TIMEOUT", err)
		}
		if left := b.readyNow(t); len(left) > 0 {
			t.Errorf("left running: %v", left)
		}
	}, "queue:fixed=48h", "resource-error:code=CAPACITY_WAIT_TIMEOUT,after=24h")
}

// TestOperationsOutOfOrderAreNoticed: an optimiser step that overtakes its gradient spoils the session, which is then not
// trained on; with lookahead 0 nothing can overtake.
func TestOperationsOutOfOrderAreNoticed(t *testing.T) {
	slow := paceOf(t, "forward-backward=30s")
	for lookahead := range 2 {
		b := newBench(t, fmt.Sprintf("train.lookahead=%d", lookahead))
		want := b.measured()
		b.against(sandbox.Options{OpTime: slow}, func(t *testing.T) {
			ended, complete := b.lives(t)
			noticed := strings.Contains(b.warned.String(), "which was submitted earlier: rolling back")
			if !complete || len(ended) > 0 || noticed != (lookahead > 0) {
				t.Errorf("lookahead %d: ended by %v, warned of %q", lookahead, ended, b.warned.String())
			}
			b.compare(t, want)
		}, "reorder:on=forward-backward,at=10,after=2s")
	}
}

// TestLookaheadKeepsSimulatedGPUsBusy: by operations of stated length a run's share of busy time can be measured, and
// lookahead raises it.
func TestLookaheadKeepsSimulatedGPUsBusy(t *testing.T) {
	pace := paceOf(t, "forward-backward=400ms,forward-only=100ms,optim-step=100ms,weights-sync=100ms,training-checkpoint=1s")
	var took [2]time.Duration
	for lookahead := range took {
		b := newBench(t, fmt.Sprintf("train.lookahead=%d", lookahead))
		steps := time.Duration(len(b.plan.Rates))
		b.against(sandbox.Options{OpTime: pace}, func(t *testing.T) {
			start := time.Now()
			if _, _, err := b.life(0, false); err != nil {
				t.Fatal(err)
			}
			took[lookahead] = time.Since(start)
		})
		if least := steps * 500 * time.Millisecond; took[lookahead] < least {
			t.Errorf("lookahead %d: took %v, less than its steps alone, %v", lookahead, took[lookahead], least)
		}
	}
	if took[1] >= took[0] {
		t.Errorf("lookahead 1 took %v, lookahead 0 %v", took[1], took[0])
	}
	t.Logf("lookahead 0: %v, lookahead 1: %v", took[0], took[1])
}
