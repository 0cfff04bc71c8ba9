package runner_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"trainer/loss"
	"trainer/recipe"
	"trainer/runner"
)

// simpo answers as a program would that computes this loss.
func simpo(_ context.Context, question []byte) ([]byte, error) {
	var q struct {
		Rows []struct {
			Weights, Logprobs []float64
			Group             int
		}
	}
	if err := json.Unmarshal(question, &q); err != nil {
		return nil, err
	}
	var now [][]float64
	var step []loss.Datum
	for _, r := range q.Rows {
		now, step = append(now, r.Logprobs), append(step, loss.Datum{Weights: r.Weights, Group: r.Group})
	}
	r, err := (&loss.SimPO{Beta: 2, Gamma: 0.5}).Eval(now, step)
	if err != nil {
		return json.Marshal(map[string]string{"error": err.Error()})
	}
	return json.Marshal(map[string]any{"loss": r.Value, "grads": r.Grads, "metrics": r.Metrics})
}

// programmed is a bench whose loss is a program that may be asked.
func programmed(t *testing.T, call func(context.Context, []byte) ([]byte, error), set ...string) (*bench, *loss.Command) {
	text := "base_model: sandbox/bytes-tiny\nloss: {type: command, params: {command: [./simpo], rows: pairs}}\nlora_config: {rank: 8, alpha: 16}\n" +
		"dataset: {train: rows.jsonl, validation: rows.jsonl}\noptimizer: {learning_rate: 3.0e-3}\n" +
		"train: {batch_size: 2, epochs: 1, gradient_accumulation: 2}\neval: {every: 2, at_start: true}\ncheckpoint: {every: 2}\n"
	b := benchOf(t, map[string]string{"r.yaml": text, "rows.jsonl": pairRows, "simpo": "1"}, set...)
	l := b.in.Recipe.Loss.Params.(*loss.Command)
	l.Call = call
	return b, l
}

// A run whose loss is a program ends with the weights of the unbroken one, wherever it is killed: what a step was scored is
// stored, so a program that answers alike is asked the same again.
func TestAProgramsRunKilledAtItsRequests(t *testing.T) {
	t.Parallel()
	b, _ := programmed(t, simpo)
	want := b.measured()
	if built := preferring(t, "simpo", "train.epochs=1", "checkpoint.every=2").measured(); built.weights != want.weights {
		t.Error("the program's weights are not those of the loss that it computes")
	}
	b.cutAtRequests(3, 10, b.wholeBehind(want))
}

// A program that is down ends the life, saved, and the next goes on where it was; one that says something wrong of a step ends
// the run, with the rows of the step.
func TestAProgramThatFailsInTheMiddle(t *testing.T) {
	down, bad := errors.New("down"), ""
	b, l := programmed(t, simpo, "checkpoint.every=1")
	want := b.measured()
	call := func(ctx context.Context, q []byte) ([]byte, error) {
		if strings.HasPrefix(string(q), `{"use":"train","step":1,`) {
			if bad == "" {
				return nil, down
			}
			return []byte(bad), nil
		}
		return simpo(ctx, q)
	}
	b.onDisk(func(t *testing.T) {
		l.Call = call
		if _, err := b.through(b.server); !errors.Is(err, down) || errors.Is(err, runner.ErrHopeless) || !strings.Contains(err.Error(), "r.yaml:2:") || !strings.Contains(err.Error(), ": loss.params.command: the loss of step 2: ") {
			t.Fatalf("got %v", err)
		}
		l.Call = simpo
		if _, err := b.through(b.server); err != nil {
			t.Fatal(err)
		}
		b.compare(t, want)
	})
	bad = `{"loss":0.5,"grads":[]}`
	b.onDisk(func(t *testing.T) {
		l.Call = call
		_, err := b.through(b.server)
		var unfit *runner.Unfit
		if !errors.As(err, &unfit) || unfit.Step != 1 || len(unfit.Rows) != 2 || !errors.Is(err, loss.ErrInvalid) || !strings.Contains(err.Error(), "grads of 0 rows for a step of 4") {
			t.Errorf("got %v", err)
		}
		if left := b.ready(); len(left) > 0 {
			t.Errorf("left running: %v", left)
		}
	})
}

func TestAProgramThatMayNotRunTrainsNothing(t *testing.T) {
	b, l := programmed(t, nil)
	b.onDisk(func(t *testing.T) {
		if _, err := b.through(b.server); err == nil || !strings.Contains(err.Error(), "the loss of the recipe is not open") {
			t.Error(err)
		}
	})
	if unchecked, err := runner.OpenLoss(b.in.Recipe, nil, true); err != nil || !strings.Contains(unchecked, "./simpo") {
		t.Errorf("%q, %v", unchecked, err)
	}
	if _, err := runner.OpenLoss(b.in.Recipe, nil, false); err == nil || !strings.Contains(err.Error(), "r.yaml:2:") || !strings.Contains(err.Error(), "--allow-exec") {
		t.Error(err)
	}
	if err := b.in.TryLoss(t.Context()); err != nil || l.Call != nil {
		t.Error(err)
	}
}

// The lock has the bytes of the files that the arguments name, and not where they are.
func TestTheLockHasTheProgram(t *testing.T) {
	lock := func(program string, set ...string) runner.Lock {
		b, _ := programmed(t, nil, set...)
		if err := os.WriteFile(filepath.Join(b.in.Recipe.ProgramDir("loss.params", "."), "simpo"), []byte(program), 0o600); err != nil {
			t.Fatal(err)
		}
		p, err := runner.NewPlan(b.in)
		if err != nil {
			t.Fatal(err)
		}
		return p.Lock
	}
	first := lock("1")
	if first["loss.params.command.0"] == "" {
		t.Fatalf("%v", first)
	}
	if diff := first.Compare(lock("1", "loss.params.timeout=9s")); len(diff) > 0 {
		t.Errorf("in another folder: %v", diff)
	}
	if diff := first.Compare(lock("2")); len(diff) != 1 || diff[0].Name != "loss.params.command.0" {
		t.Errorf("of another program: %v", diff)
	}
	if diff := first.Compare(lock("1", "loss.params.params={fast: true}")); len(diff) != 1 || diff[0].Name != "recipe" {
		t.Errorf("with other parameters: %v", diff)
	}
}

func TestAProgramRunsWhereItsCommandStands(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "base"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "base", "base.yaml"), "base_model: sandbox/bytes-tiny\ndataset: {train: a.jsonl}\nloss: {type: command, params: {command: [./l]}}\n")
	write(t, filepath.Join(dir, "child.yaml"), "extends: [base/base.yaml]\nloss: {params: {rows: pairs}}\n")
	write(t, filepath.Join(dir, "apart.yaml"), "extends: [base/base.yaml]\nloss: {params: {dir: other}}\n")
	for name, want := range map[string]string{"base/base.yaml": "base", "child.yaml": "base", "apart.yaml": "other"} {
		r, err := recipe.Load(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		l := r.Loss.Params.(*loss.Command)
		if got := r.ProgramDir("loss.params", l.Dir); got != filepath.Join(dir, want) {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}
