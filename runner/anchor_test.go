package runner_test

import (
	"fmt"
	"math"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	"trainer/internal/sandbox"
	"trainer/runner"
)

// same32 says that two numbers are the same to a float32.
func same32(a, b float64) bool { return math.Abs(a-b) <= 1e-6*(1+math.Abs(b)) }

// TestTheReferenceBeside: what trains is given the log-probabilities of the reference as they are on the disk, in the loss; in
// the reward the advantage of each token is A + coef·(mean − (q − ρ)). The first batch is sampled under the reference itself.
func TestTheReferenceBeside(t *testing.T) {
	const coef = 0.25
	for _, set := range [][]string{{"loss.params.beta=0.1"}, {"advantage.kl_coef=0.25"}, {"loss.params.beta=0.1", "advantage.kl_coef=0.25"}} {
		t.Run(strings.Join(set, " "), func(t *testing.T) {
			given, paid := strings.Contains(set[0], "beta"), strings.Contains(set[len(set)-1], "kl_coef")
			b := newRollouts(t, append(set, "eval.every=null", "eval.at_start=false", "eval.limit=null")...)
			b.onDisk(func(t *testing.T) {
				line := &listening{next: b.server, path: "/forward-backward"}
				if s, err := b.through(line); err != nil || s.Outcome != "complete" {
					t.Fatalf("%s, %v: %s", s.Outcome, err, b.warned.String())
				}
				judge(t, b.dir, b.store, true).hold(t, "the run")
				moved := false
				trained := line.trained(t)
				for _, batch := range b.completions(t) {
					batch = slices.DeleteFunc(batch, func(c kept) bool { return !c.Trained })
					if len(batch) == 0 {
						continue
					}
					mean, n := 0.0, 0
					for _, c := range batch {
						for i, ref := range c.Ref {
							mean += c.Logprobs[i] - ref
							n++
						}
					}
					mean /= float64(n)
					moved = moved || mean != 0
					if len(trained) == 0 || len(trained[0]) != len(batch) {
						t.Fatalf("%d completions are not trained in one request", len(batch))
					}
					for i, x := range trained[0] {
						c := batch[i]
						lead := len(x.Tokens) - len(c.Tokens)
						if given != (x.RefLogprobs != nil) || len(c.Ref) != len(c.Tokens) {
							t.Fatalf("reference_logprobs %v; on the disk %v", x.RefLogprobs, c.Ref)
						}
						for j, ref := range c.Ref {
							want := c.Advantage
							if paid {
								want += coef * (mean - (c.Logprobs[j] - ref))
							}
							if got := x.Advantages[lead+j]; !same32(got, want) {
								t.Errorf("advantage %v, want %v", got, want)
							}
							if given && !same32(x.RefLogprobs[lead+j], ref) {
								t.Errorf("reference %v, on the disk %v", x.RefLogprobs[lead+j], ref)
							}
						}
					}
					trained = trained[1:]
				}
				if len(trained) != 0 || !moved {
					t.Errorf("%d requests more; the policy moved: %v", len(trained), moved)
				}
				lines, err := runner.ReadMetrics(b.dir)
				if err != nil || math.Abs(lines[0]["kl/reference"]) > 1e-6 || math.Abs(lines[len(lines)-1]["kl/reference"]) < 1e-4 {
					t.Errorf("kl/reference %v at first, %v at last, %v", lines[0]["kl/reference"], lines[len(lines)-1]["kl/reference"], err)
				}
			})
		})
	}
}

// anchors are the ids of the sessions of the reference, and stepped says what else than a forward pass went to one of them.
func (o *oracle) anchors() (ids, stepped []string) {
	for _, e := range o.records {
		if e.text("type") == "created" && e.text("what") == "reference session" {
			ids = append(ids, e.text("id"))
		}
	}
	for _, e := range o.records {
		if e.text("type") == "intent" && slices.Contains(ids, e.text("session")) && e.text("kind") != "reference" {
			stepped = append(stepped, e.text("kind"))
		}
	}
	return ids, stepped
}

// TestTheReferenceNeverSteps: nothing but forward passes goes to its session, which is over when the run is.
func TestTheReferenceNeverSteps(t *testing.T) {
	b := newRollouts(t, "loss.params.beta=0.1")
	b.onDisk(func(t *testing.T) {
		line := &listening{next: b.server, path: ""}
		if _, err := b.through(line); err != nil {
			t.Fatal(err)
		}
		o := judge(t, b.dir, b.store, true)
		o.hold(t, "the run")
		ids, stepped := o.anchors()
		if len(ids) != 1 || len(stepped) > 0 {
			t.Fatalf("sessions of the reference %v, which did %v", ids, stepped)
		}
		scored, stopped := 0, 0
		for i, at := range line.at {
			switch {
			case !strings.Contains(at, ids[0]):
			case path.Base(at) == "stop":
				stopped++
			case path.Base(at) == "forward-backward" && strings.Contains(string(line.bodies[i]), `"forward_only":true`):
				scored++
			default:
				t.Errorf("%s: %.200s", at, line.bodies[i])
			}
		}
		if scored == 0 || stopped != 1 {
			t.Errorf("scored %d times, stopped %d", scored, stopped)
		}
	})
}

// TestTheReferenceIsLost: a session of the reference that is gone is replaced, and the run is the one that nothing disturbed.
func TestTheReferenceIsLost(t *testing.T) {
	b := newRollouts(t, "loss.params.beta=0.1", "advantage.kl_coef=0.1")
	want := b.measured()
	for _, at := range []int{1, 2, 4} {
		b.onDisk(func(t *testing.T) {
			line := &rival{next: b.server, at: at}
			if s, err := b.through(line); err != nil || s.Outcome != "complete" {
				t.Fatalf("scoring %d: %s, %v: %s", at, s.Outcome, err, b.warned.String())
			}
			o := judge(t, b.dir, b.store, true)
			o.hold(t, fmt.Sprint(at))
			ids, stepped := o.anchors()
			if len(ids) != 2 || len(stepped) > 0 || len(o.generations()) != 1 {
				t.Errorf("scoring %d: sessions of the reference %v, which did %v; %d trained: %s", at, ids, stepped, len(o.generations()), b.warned.String())
			}
			b.compare(t, want)
		})
	}
}

// rival stops the session of the reference before its scoring number at reaches it.
type rival struct {
	next http.RoundTripper
	at   int

	mu        sync.Mutex
	reference string // its session
	n         int
}

func (l *rival) RoundTrip(r *http.Request) (*http.Response, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if dir, op := path.Split(r.URL.Path); r.Method == http.MethodPost && op == "forward-backward" && strings.Contains(dir, l.reference) && l.reference != "" {
		if l.n++; l.n == l.at {
			stop, err := http.NewRequest(http.MethodPost, "http://sandbox"+strings.TrimSuffix(dir, "/operations/")+"/stop", nil)
			if err != nil {
				return nil, err
			}
			res, err := l.next.RoundTrip(stop)
			if err != nil || res.StatusCode != http.StatusOK {
				return nil, fmt.Errorf("stop: %v, %v", res, err)
			}
		}
	}
	res, err := l.next.RoundTrip(r)
	if err == nil && r.Method == http.MethodPost && path.Base(r.URL.Path) == "training-sessions" {
		res, err = altered(func() (*http.Response, error) { return res, err }, func(b []byte) []byte {
			if l.reference == "" && strings.Contains(string(b), " reference") {
				l.reference = idOf(b)
			}
			return b
		})
	}
	return res, err
}

// TestTheReferenceIsWhereTrainingStarts: a run that begins at a checkpoint compares with that; its fork with that too, which
// goes on as the run did; and one that names another compares with it from the first batch on.
func TestTheReferenceIsWhereTrainingStarts(t *testing.T) {
	b := newRollouts(t, "loss.params.beta=0.1", "eval.every=null", "eval.at_start=false", "eval.limit=null")
	whole := *b
	b.onDisk(func(t *testing.T) {
		first := func(m map[string]float64) float64 { return m["kl/reference"] }
		run := func() []map[string]float64 {
			t.Helper()
			b.dir = t.TempDir()
			b.forkable(t)
			if s, err := b.through(b.server); err != nil || s.Outcome != "complete" {
				t.Fatalf("%s, %v: %s", s.Outcome, err, b.warned.String())
			}
			lines, err := runner.ReadMetrics(b.dir)
			if err != nil || len(lines) == 0 {
				t.Fatal(err)
			}
			return lines
		}
		run()
		made, err := runner.ReadCheckpoints(b.dir)
		if err != nil {
			t.Fatal(err)
		}
		b.begins(t, &runner.Start{CheckpointID: made.Made[0].ID})
		if lines := run(); math.Abs(first(lines[0])) > 1e-6 || math.Abs(first(lines[len(lines)-1])) < 1e-4 {
			t.Errorf("begun at a checkpoint, %v at the first step, %v at the last", first(lines[0]), first(lines[len(lines)-1]))
		}
		want := behind(b.steps(), 3)
		s, err := runner.Fork(b.dir, 3)
		if err != nil {
			t.Fatal(err)
		}
		b.begins(t, s)
		run()
		if got := behind(b.steps(), 3); got != want || want == "" {
			t.Errorf("the fork measures\n%swant\n%s", got, want)
		}
		b.in, b.plan = whole.in, whole.plan
		rec := *b.in.Recipe
		b.in.Recipe = &rec
		ref := *rec.Reference
		ref.CheckpointID = &made.Made[0].ID
		rec.Reference = &ref
		b.begins(t, nil)
		if lines := run(); math.Abs(first(lines[0])) < 1e-4 {
			t.Error("the checkpoint that the recipe names is not compared with")
		}
	})
}

// TestTheReferenceIsCreatedOnce: a create without an answer is looked for by its name and taken, or sent once more where it made
// nothing.
func TestTheReferenceIsCreatedOnce(t *testing.T) {
	b := newRollouts(t, "loss.params.beta=0.1")
	want := b.measured()
	for fault, asked := range map[string]int{"drop:on=create-session,at=2,when=after": 1, "drop:on=create-session,at=2,when=before": 2} {
		b.against(sandbox.Options{}, func(t *testing.T) {
			if s, err := b.through(b.server); err != nil || s.Outcome != "complete" {
				t.Fatalf("%s: %s, %v: %s", fault, s.Outcome, err, b.warned.String())
			}
			o := judge(t, b.dir, b.store, true)
			o.hold(t, fault)
			n := 0
			for _, e := range o.records {
				if e.text("type") == "create" && e.text("what") == "reference session" {
					n++
				}
			}
			if ids, _ := o.anchors(); n != asked || len(ids) != 1 {
				t.Errorf("%s: asked for %d times, %v", fault, n, ids)
			}
			b.compare(t, want)
		}, fault)
	}
}

// TestTheReferenceIsLeftNowhere: on a resource that outlives the run no session of the reference is left, also of a life that
// was killed.
func TestTheReferenceIsLeftNowhere(t *testing.T) {
	b := newRollouts(t, "loss.params.beta=0.1", "keep_resources=always")
	for _, die := range []int{0, 30, 60} {
		b.fresh(func(t *testing.T) {
			if _, _, err := b.life(die, true); (err == nil) != (die == 0) {
				t.Fatalf("request %d: %v", die, err)
			}
			if die > 0 {
				if _, _, err := b.life(0, false); err != nil {
					t.Fatal(err)
				}
			}
			c := client(b.server)
			mine, _, err := c.Mine(t.Context(), false)
			if err != nil || len(mine) != 1 {
				t.Fatal(mine, err)
			}
			all, err := c.Sessions(t.Context(), mine[0].ID)
			if err != nil || len(all) < 2 {
				t.Fatal(all, err)
			}
			for _, s := range all {
				if s.Status == runner.Running || s.Status == runner.Creating {
					t.Errorf("request %d: %s is %s", die, s.DisplayName, s.Status)
				}
			}
		})
	}
}
