package runner_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"trainer/internal/journal"
	"trainer/runner"
)

// mounted is a file system of its own of so many bytes.
func mounted(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size+",mode=0700"); err != nil {
		t.Skipf("a small file system cannot be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// filler fills a disk when a step has landed.
type filler struct {
	at   int
	path string
}

func (filler) Open(context.Context, runner.RunInfo) error { return nil }
func (filler) Close(context.Context) error                { return nil }
func (f filler) Emit(e runner.Event) {
	if e.Kind != runner.StepEvent || e.Done != f.at {
		return
	}
	w, err := os.Create(f.path)
	if err != nil {
		panic(err)
	}
	for _, n := range []int{1 << 20, 1 << 12, 1} {
		for chunk := bytes.Repeat([]byte("x"), n); err == nil; {
			_, err = w.Write(chunk)
		}
		err = nil
	}
	_ = w.Close()
}

// TestAFullFileSystem fills a real one under a run at each of its steps: the life ends, with its last record written into
// the room that was kept for it, and nothing running; once there is room again the next life comes to the same end.
func TestAFullFileSystem(t *testing.T) {
	disk := mounted(t, "64m")
	b := newBench(t, "checkpoint.every=1", "train.epochs=5")
	want := b.unbroken()
	failed := 0
	for at := 1; at < 6; at++ {
		b.fresh(func(t *testing.T) {
			b.dir = filepath.Join(disk, "run")
			if err := os.Mkdir(b.dir, 0o700); err != nil {
				t.Fatal(err)
			}
			fill := filepath.Join(disk, "filler")
			b.alter = func(w *runner.World) { w.Sinks = append(w.Sinks, filler{at, fill}) }
			s, err := b.through(b.server)
			if err != nil {
				failed++
				if !journal.Full(err) || lastRecord(b.dir) != "end" {
					t.Errorf("step %d: %v; the last record is %s", at, err, lastRecord(b.dir))
				}
			} else if s.Outcome != "complete" {
				t.Errorf("step %d: %s", at, s.Outcome)
			}
			if left := b.ready(); len(left) > 0 {
				t.Errorf("step %d: left running: %v", at, left)
			}
			if err := os.Remove(fill); err != nil {
				t.Fatal(err)
			}
			b.alter = func(w *runner.World) { w.Restart = true }
			if _, err := b.through(b.server); err != nil || b.steps() != want {
				t.Errorf("step %d: the next life: %v, got\n%swant\n%s", at, err, b.steps(), want)
			}
			if err := os.RemoveAll(b.dir); err != nil {
				t.Fatal(err)
			}
		})
	}
	if failed < 3 {
		t.Errorf("%d lives met the full disk", failed)
	}
}

// TestAFileSystemThatIsTooSmall is refused before anything is asked for.
func TestAFileSystemThatIsTooSmall(t *testing.T) {
	b := newBench(t)
	b.fresh(func(t *testing.T) {
		b.dir = mounted(t, "4m")
		_, err := b.through(b.server)
		if err == nil || !strings.Contains(err.Error(), "has 3 MiB left, and this run writes about 18 MiB to it") {
			t.Error(err)
		}
		if left := b.ready(); len(left) > 0 || len(b.records(t)) > 2 { // the run, and its end
			t.Errorf("left: %v; %d records", left, len(b.records(t)))
		}
	})
}
