package runner_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"trainer/internal/journal"
	"trainer/runner"
)

// TestADamagedJournalIsSalvaged damages a line of the journal of a run that was killed, each in turn: the run is refused with
// the place, and once it is told to, rolls back to what stands before, leaves nothing running, and comes to the same end.
func TestADamagedJournalIsSalvaged(t *testing.T) {
	b := newBench(t)
	want := b.unbroken()
	damaged := 0
	for bad, over := 1, false; !over; bad += 3 {
		b.fresh(func(t *testing.T) {
			if b.killed(posts("optim-step"), 5) == nil {
				t.Fatal("the life was not cut")
			}
			path := filepath.Join(b.dir, "journal.jsonl")
			whole, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			lines := bytes.SplitAfter(whole, []byte("\n"))
			if over = bad >= len(lines)-2; over {
				return
			}
			damaged++
			lines[bad] = bytes.Replace(lines[bad], []byte(`"type"`), []byte(`"tipe"`), 1)
			write(t, path, string(bytes.Join(lines, nil)))
			b.damaged(t, bad+1, bytes.Join(lines, nil))

			b.alter = func(w *runner.World) { w.Salvage, w.Restart = true, true }
			defer func() { b.alter = nil }()
			s, err := b.through(b.server)
			if err != nil || s.Outcome != "complete" {
				t.Fatalf("line %d: %s, %v\ntold %s", bad+1, s.Outcome, err, b.warned.String())
			}
			if got := b.steps(); got != want {
				t.Errorf("line %d: got\n%swant\n%s", bad+1, got, want)
			}
			for _, left := range b.readyNow(t) {
				if id, _, _ := strings.Cut(left, " "); !strings.Contains(b.warned.String(), id) {
					t.Errorf("line %d: %s is left running, and was not shown", bad+1, left)
				}
			}
		})
	}
	if damaged < 10 {
		t.Errorf("%d lines are too few", damaged)
	}
}

// damaged is a life over a damaged journal, which must change nothing.
func (b *bench) damaged(t *testing.T, line int, whole []byte) {
	t.Helper()
	_, err := b.through(b.server)
	var bad *journal.Damaged
	if !errors.As(err, &bad) || bad.Line != line || !strings.Contains(err.Error(), "`trainer resume --salvage "+b.dir+"`") {
		t.Errorf("line %d is damaged: %v", line, err)
	}
	if after, err := os.ReadFile(filepath.Join(b.dir, "journal.jsonl")); err != nil || !bytes.Equal(after, whole) {
		t.Errorf("line %d: the damaged journal was changed: %v", line, err)
	}
}

// TestTwoRunsFilesAreNotMixed: a lock, and with it a recipe, of another run is refused by name.
func TestTwoRunsFilesAreNotMixed(t *testing.T) {
	b := newBench(t)
	b.fresh(func(t *testing.T) {
		if _, err := b.through(b.server); err != nil {
			t.Fatal(err)
		}
		other, err := os.ReadFile(filepath.Join(b.dir, "lock.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		b.dir = t.TempDir()
		if b.killed(posts("optim-step"), 2) == nil {
			t.Fatal("the life was not cut")
		}
		write(t, filepath.Join(b.dir, "lock.yaml"), string(other))
		if _, err := b.through(b.server); err == nil || !strings.Contains(err.Error(), "are mixed") {
			t.Error(err)
		}
	})
}
