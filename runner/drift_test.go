package runner_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"trainer/runner"
)

// TestARowThatChangesUnderTheRun: the steps before it are saved, and with the row put back the run is the undisturbed one.
func TestARowThatChangesUnderTheRun(t *testing.T) {
	b := newBench(t, "dataset.validation=[]", "eval={every: null, at_start: false}", "checkpoint.every=null")
	path := filepath.Join(filepath.Dir(b.in.Recipe.Path()), "rows.jsonl")
	lines := strings.SplitAfter(rows, "\n")
	last := b.in.Train.Order(b.in.Seeds.Order, 0)[4] // of step 3
	lines[last] = strings.ReplaceAll(lines[last], "?", "!")
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var want string
	b.fresh(func(t *testing.T) {
		if _, _, err := b.life(0, false); err != nil {
			t.Fatal(err)
		}
		want = b.steps()
	})
	b.fresh(func(t *testing.T) {
		write(strings.Join(lines, ""))
		s, _, err := b.life(0, false)
		if !errors.Is(err, runner.ErrDrift) || !strings.Contains(err.Error(), "rows.jsonl:") {
			t.Fatalf("got %v, want a drift that names the row", err)
		}
		if s.Done != 2 || len(s.Saved) != 1 || s.Saved[0].Done != 2 || len(s.Unreleased) > 0 {
			t.Errorf("got %d steps, checkpoints %v, left %v; want the 2 steps before the row saved, and all released", s.Done, s.Saved, s.Unreleased)
		}
		write(rows)
		if _, _, err := b.life(0, false); err != nil {
			t.Fatal(err)
		}
		if got := b.steps(); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	})
}
