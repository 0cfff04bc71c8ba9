package runner_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"trainer/internal/hub"
	"trainer/internal/sandbox"
	"trainer/internal/together"
	"trainer/runner"
)

// newDistil is a bench of a student that learns from another model.
func newDistil(t *testing.T, set ...string) *bench {
	t.Helper()
	text := "base_model: sandbox/bytes-tiny\nloss: {type: reverse_kl}\nlora_config: {rank: 8, alpha: 16}\nteacher: {base_model: sandbox/pretrained-tiny}\n" +
		"dataset: {train: rows.jsonl, validation: rows.jsonl}\noptimizer: {learning_rate: 5.0e-3}\n" +
		"rollout: {batch_size: 2, group_size: 4, sampling_params: {max_tokens: 6}}\n" +
		"train: {epochs: 2}\neval: {every: 2, at_start: true, limit: 2}\ncheckpoint: {every: 3}\n"
	return benchOf(t, map[string]string{"r.yaml": text, "rows.jsonl": prompts}, set...)
}

// TestKillDistillationAtRequests cuts a run with a teacher at its requests, resumes it, and compares it with the unbroken one:
// the same losses and divergences, and neither of the two resources left running.
func TestKillDistillationAtRequests(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		stride int
		set    []string
	}{
		{"a resource of its own", 17, nil},
		{"a resource of its own, a step alone", 7, []string{"train.num_steps=1", "train.epochs=null", "eval.every=null", "eval.at_start=false"}},
		{"on the student's resource, a batch ahead", 43, []string{"base_model=sandbox/pretrained-tiny", "teacher.system=Say moo.", "rollout.max_policy_lag=1", "rollout.num_iterations=2"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newDistil(t, c.set...)
			want, points := b.unbroken(), 0
			if !strings.Contains(want, "distill/reverse_kl") {
				t.Fatalf("no divergence is measured:\n%s", want)
			}
			for die, over := 1, false; !over; die += sparse(c.stride) {
				for _, lost := range ways(die) {
					b.fresh(func(t *testing.T) {
						_, n, err := b.life(die, lost)
						if over = err == nil && n < die; over {
							return
						}
						points++
						b.resumes(t, fmt.Sprintf("request %d (lost %v)", die, lost), want)
						if held := b.holdings(t); len(held.Held) > 0 {
							t.Fatalf("request %d (lost %v): the journal holds %+v", die, lost, held.Held)
						}
					})
				}
			}
			t.Logf("%d points", points)
		})
	}
}

// TestATeacherBills: the journal names the resources of both, before each is asked for, and their price is one sum.
func TestATeacherBills(t *testing.T) {
	b := newDistil(t)
	b.against(sandbox.Options{}, func(t *testing.T) {
		c := together.New(together.Options{BaseURL: "http://sandbox", Key: "k", Transport: b.server})
		if err := b.in.Ask(t.Context(), b.plan, c, dear{c}); err != nil {
			t.Fatal(err)
		}
		if got := b.plan.Cost; got.USDPerHour != 24 || got.TeacherUSD != 12 {
			t.Errorf("%+v, want 24 dollars an hour, of which 12 for the teacher", got)
		}
		b.alter = func(w *runner.World) { w.Resources = dear{c} }
		s, _, err := b.life(0, false)
		if err != nil {
			t.Fatal(err)
		}
		if s.CostUSD < 2*12.0/60 {
			t.Errorf("cost %v: two resources have cost a minute at least", s.CostUSD)
		}
		asked := map[string]string{} // what was made, by id
		stopped := 0
		for _, rec := range b.records(t) {
			var v struct{ What, ID string }
			if err := json.Unmarshal(rec.Data, &v); err != nil {
				continue
			}
			switch {
			case rec.Type == "created" && v.What != "session":
				asked[v.ID] = v.What
			case rec.Type == "stopped" && asked[v.ID] != "":
				stopped++
			}
		}
		if len(asked) != 2 || stopped != 2 {
			t.Errorf("made %v, %d of them stopped; want one of the student, one of the teacher, both stopped", asked, stopped)
		}
	})
}

// dear is a service that charges.
type dear struct{ *together.Client }

func (dear) Price(context.Context, runner.ResourceSpec) (float64, error) { return 12, nil }

// ahead calls do before of the request number at, from 1, of those to an operation.
type ahead struct {
	next      http.RoundTripper
	operation string
	at        int
	do        func()

	mu sync.Mutex
	n  int
}

func (m *ahead) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/"+m.operation) {
		m.mu.Lock()
		m.n++
		due := m.n == m.at
		m.mu.Unlock()
		if due {
			m.do()
		}
	}
	return m.next.RoundTrip(r)
}

// TestATeacherThatIsGoneIsMadeAnew takes the teacher's resource, or its session, away between two steps: the run goes back to a
// checkpoint, has another teacher made, and ends as the unbroken one.
func TestATeacherThatIsGoneIsMadeAnew(t *testing.T) {
	for _, what := range []string{"resource", "session"} {
		t.Run(what, func(t *testing.T) {
			b := newDistil(t)
			want := b.unbroken()
			b.fresh(func(t *testing.T) {
				c := client(b.server)
				line := &ahead{next: b.server, operation: "optim-step", at: 2, do: func() { takeTeacher(t, c, what) }}
				s, err := b.through(line)
				if err != nil || s.Outcome != "complete" {
					t.Fatalf("%s, %v: %s", s.Outcome, err, b.warned.String())
				}
				if got := b.steps(); got != want {
					t.Errorf("got\n%swant\n%s", got, want)
				}
				if !strings.Contains(b.warned.String(), "rolling back") {
					t.Errorf("it did not roll back: %s", b.warned.String())
				}
				if left := b.ready(); len(left) > 0 {
					t.Errorf("left running: %v", left)
				}
			})
		})
	}
}

func takeTeacher(t *testing.T, c *together.Client, what string) {
	ctx := context.Background()
	mine, _, err := c.Mine(ctx, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, res := range mine {
		if res.BaseModel != "sandbox/pretrained-tiny" {
			continue
		}
		if what == "resource" {
			_, err = c.Stop(ctx, res.ID, true)
		} else if all, serr := c.Sessions(ctx, res.ID); serr == nil && len(all) == 1 {
			err = c.Join(runner.SessionSpec{Patience: time.Minute}, all[0].ID).Close(ctx)
		} else {
			t.Fatalf("%d sessions of the teacher, %v", len(all), serr)
		}
		if err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Fatal("the teacher has no resource")
}

// TestATeacherHasTheWeightsOfItsCheckpoint: a student that begins where the teacher's checkpoint is samples with exactly the
// log-probabilities that the teacher gives, and one that begins at the base model does not.
func TestATeacherHasTheWeightsOfItsCheckpoint(t *testing.T) {
	b := newDistil(t, "base_model=sandbox/pretrained-tiny", "train.num_steps=2", "train.epochs=null", "eval.every=null", "eval.at_start=false", "eval.at_end=false", "checkpoint.every=2")
	apart := func(t *testing.T) float64 {
		t.Helper()
		if _, err := b.through(b.server); err != nil {
			t.Fatal(err)
		}
		return math.Abs(b.metric(t, "distill/reverse_kl")[1])
	}
	b.onDisk(func(t *testing.T) {
		teach(t, b, "teacher={base_model: sandbox/pretrained-tiny, system: Say moo.}")
		apart(t)
		b.forkable(t)
		trained := b.dir
		const short = "train.num_steps=1"
		for _, c := range []struct {
			name, teacher, start string
			same                 bool
		}{
			{"the run as teacher of the base model", "init_from: {run: " + trained + "}", "null", false},
			{"the run as teacher of itself", "init_from: {run: " + trained + ", step: 2}", "{run: " + trained + "}", true},
			{"the base model as teacher of the run", "init_from: null", "{run: " + trained + "}", false},
		} {
			teach(t, b, "teacher={base_model: sandbox/pretrained-tiny, "+c.teacher+"}", "init_from="+c.start, short)
			b.dir = t.TempDir()
			// a service gives float32, and a scoring pass sums otherwise than sampling does
			if kl := apart(t); (kl < 1e-4) != c.same {
				t.Errorf("%s: the two are %v nats a token apart, want the same weights: %v", c.name, kl, c.same)
			}
		}
		s, err := runner.TeacherOf(b.loaded(t, "teacher.init_from.run="+trained))
		if err != nil {
			t.Fatal(err)
		}
		teach(t, b, "teacher={base_model: sandbox/pretrained-tiny, init_from: {checkpoint_id: "+s.CheckpointID+"}}", "init_from={run: "+trained+"}", short)
		b.dir = t.TempDir()
		if kl := apart(t); kl >= 1e-4 {
			t.Errorf("by its id: the two are %v nats a token apart, want the same weights", kl)
		}
	})
}

// teach gives the bench's later lives another recipe.
func teach(t *testing.T, b *bench, set ...string) {
	t.Helper()
	r := b.loaded(t, append([]string{"base_model=sandbox/pretrained-tiny", "train.num_steps=2", "train.epochs=null", "eval.every=null",
		"eval.at_start=false", "eval.at_end=false", "checkpoint.every=2"}, set...)...)
	in, err := runner.Open(t.Context(), r, &hub.Hub{}, true)
	if err != nil {
		t.Fatal(err)
	}
	if in.Start, err = runner.StartOf(r); err != nil {
		t.Fatal(err)
	}
	if in.Teacher, err = runner.TeacherOf(r); err != nil {
		t.Fatal(err)
	}
	p, err := runner.NewPlan(in)
	if err != nil {
		t.Fatal(err)
	}
	b.in, b.plan = in, p
}
