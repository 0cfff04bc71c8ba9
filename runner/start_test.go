package runner_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"trainer/internal/journal"
	"trainer/recipe"
	"trainer/runner"
)

// forkable makes the folder of the bench's recipe one that a fork reads.
func (b *bench) forkable(t *testing.T) {
	t.Helper()
	write(t, filepath.Join(b.dir, runner.ResolvedName), string(b.in.Recipe.Resolved()))
}

// behind is what metrics of the steps behind done are.
func behind(steps string, done int) string {
	var out []string
	for l := range strings.Lines(steps) {
		var n int
		if i := strings.Index(l, "step:"); i >= 0 {
			_, _ = fmt.Sscanf(l[i:], "step:%d", &n)
		}
		if n > done {
			out = append(out, l)
		}
	}
	return strings.Join(out, "")
}

// begins has the bench's later lives begin at a checkpoint.
func (b *bench) begins(t *testing.T, s *runner.Start) {
	t.Helper()
	in := *b.in
	in.Start = s
	p, err := runner.NewPlan(&in)
	if err != nil {
		t.Fatal(err)
	}
	b.in, b.plan = &in, p
}

// TestAForkGoesOnAsTheRunDid: behind the step that it begins from, a fork without changes measures what the run measured,
// and ends with its weights, bit for bit; also where it is killed at any of its requests and resumed.
func TestAForkGoesOnAsTheRunDid(t *testing.T) {
	t.Parallel()
	for _, at := range []int{3, 6} {
		b := newBench(t, "train.epochs=3")
		whole := *b
		for die, over := 0, false; !over; die += sparse(5) {
			b.in, b.plan = whole.in, whole.plan
			b.onDisk(func(t *testing.T) {
				if _, err := b.through(b.server); err != nil {
					t.Fatal(err)
				}
				b.forkable(t)
				want := behind(b.steps(), at)
				weights := judge(t, b.dir, b.store, false).weights(t, b.store)
				s, err := runner.Fork(b.dir, at)
				if err != nil {
					t.Fatal(err)
				}
				b.begins(t, s)
				b.dir = t.TempDir()
				_, n, err := b.life(die, die%2 == 0)
				if over = die > 0 && n < die; over || die == 0 {
					if err != nil {
						t.Fatal(err)
					}
				} else if _, err := b.through(b.server); err != nil {
					t.Fatalf("from %d, request %d: %v", at, die, err)
				}
				if got := b.steps(); got != want || want == "" {
					t.Errorf("from %d, request %d: got\n%swant\n%s", at, die, got, want)
				}
				if got := judge(t, b.dir, b.store, false).weights(t, b.store); got != weights {
					t.Errorf("from %d, request %d: other weights than those of the run", at, die)
				}
				if left := b.readyNow(t); len(left) > 0 {
					t.Errorf("from %d, request %d: left running: %v", at, die, left)
				}
			})
		}
	}
}

// TestARunBeginsFromWeightsAlone: the first evaluation is that of the checkpoint, the rates are those of a first step, and
// the optimizer's state is taken only where it is asked for.
func TestARunBeginsFromWeightsAlone(t *testing.T) {
	b := newBench(t)
	whole, last := *b, map[bool]string{}
	for _, optimizer := range []bool{false, true} {
		b.in, b.plan = whole.in, whole.plan
		b.onDisk(func(t *testing.T) {
			if _, err := b.through(b.server); err != nil {
				t.Fatal(err)
			}
			b.forkable(t)
			evals := b.metric(t, "eval/loss")
			r := b.loaded(t, fmt.Sprintf("init_from={run: %s, step: 6, load_optimizer: %v}", b.dir, optimizer))
			s, err := runner.StartOf(r)
			if err != nil {
				t.Fatal(err)
			}
			b.begins(t, s)
			b.dir = t.TempDir()
			if _, err := b.through(b.server); err != nil {
				t.Fatal(err)
			}
			if got := b.metric(t, "eval/loss"); got[0] != evals[6] {
				t.Errorf("optimizer %v: the first evaluation is %v, the checkpoint had %v", optimizer, got[0], evals[6])
			}
			if got := b.metric(t, "learning_rate"); got[1] != b.plan.Rates[0] {
				t.Errorf("optimizer %v: the first rate is %v, want %v", optimizer, got[1], b.plan.Rates[0])
			}
			o := judge(t, b.dir, b.store, false)
			last[optimizer] = o.weights(t, b.store)
			if p, _ := o.records[0]["parent"].(map[string]any); p["done"] != 0.0 || p["checkpoint_id"] != s.CheckpointID {
				t.Errorf("optimizer %v: parent %v", optimizer, p)
			}
		})
	}
	if last[true] == last[false] {
		t.Error("the optimizer's state makes no difference")
	}
}

// loaded is the bench's recipe with other values.
func (b *bench) loaded(t *testing.T, set ...string) *recipe.Recipe {
	t.Helper()
	r, err := recipe.Load(b.in.Recipe.Path(), set...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// metric is a value of the lines of metrics.jsonl that have it, by step.
func (b *bench) metric(t *testing.T, name string) map[int]float64 {
	t.Helper()
	lines, err := runner.ReadMetrics(b.dir)
	if err != nil {
		t.Fatal(err)
	}
	out := map[int]float64{}
	for _, m := range lines {
		if v, ok := m[name]; ok {
			out[int(m["step"])] = v
		}
	}
	return out
}

// TestAStartThatIsGoneCostsNothing: a resume of a run whose beginning is gone from the service says so before it buys
// anything, and one that has a checkpoint of its own does not need it.
func TestAStartThatIsGoneCostsNothing(t *testing.T) {
	b := newBench(t)
	b.onDisk(func(t *testing.T) {
		if _, err := b.through(b.server); err != nil {
			t.Fatal(err)
		}
		b.forkable(t)
		s, err := runner.Fork(b.dir, 3)
		if err != nil {
			t.Fatal(err)
		}
		s.CheckpointID = "00000000-0000-4000-8000-000000000000"
		b.begins(t, s)
		b.dir = t.TempDir()
		_, err = b.through(b.server)
		if err == nil || !strings.Contains(err.Error(), "which the run begins from, is gone") {
			t.Error(err)
		}
		for _, r := range b.records(t) {
			if r.Type == "create" {
				t.Errorf("asked for: %s", r.Data)
			}
		}
	})
}

func (b *bench) records(t *testing.T) []journal.Record {
	t.Helper()
	records, err := journal.Read(b.dir)
	if err != nil {
		t.Fatal(err)
	}
	return records
}

// TestTheLockSaysWhereARunBegins, and is read back as it was.
func TestTheLockSaysWhereARunBegins(t *testing.T) {
	b := newBench(t)
	for _, want := range []runner.Start{
		{CheckpointID: "c", LoadOptimizer: false},
		{CheckpointID: "c", LoadOptimizer: true, RunID: "r", Step: 7},
		{CheckpointID: "c", LoadOptimizer: true, RunID: "r", Step: 3, Done: 3, Updates: 2},
	} {
		in := *b.in
		in.Start = &want
		p, err := runner.NewPlan(&in)
		if err != nil {
			t.Fatal(err)
		}
		got, err := p.Lock.Start()
		if err != nil || got.String() != want.String() || got.Done != want.Done || got.Updates != want.Updates {
			t.Errorf("got %+v, %v, want %+v", got, err, want)
		}
	}
	if s, err := b.plan.Lock.Start(); s != nil || err != nil {
		t.Errorf("of the base model: %+v, %v", s, err)
	}
	if _, err := (runner.Lock{"start": "c", "start.done": "x"}).Start(); err == nil {
		t.Error("a start.done that is no number was read")
	}
}
