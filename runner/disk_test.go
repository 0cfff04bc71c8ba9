package runner_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"trainer/internal/journal"
	"trainer/runner"
)

// sickness is how a disk fails, from one of its operations on.
type sickness string

const (
	full     sickness = "full"      // no room is left, but for what is removed
	readOnly sickness = "read-only" // nothing can be changed any more
	noSync   sickness = "no sync"   // one sync fails, and tells so once
)

// sick is a disk that falls ill at operation number at.
type sick struct {
	journal.Files
	how sickness
	at  int

	mu    sync.Mutex
	n     int
	room  int // bytes that fit although it is full
	fatal bool
}

// meets counts an operation that writes, and says how it fails.
func (d *sick) meets(sync bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.n++
	if d.at == 0 || d.n < d.at {
		return nil
	}
	switch {
	case d.how == readOnly:
		d.fatal = true
		return syscall.EROFS
	case d.how == noSync && sync && !d.fatal:
		d.fatal = true
		return syscall.EIO
	}
	return nil
}

// fits takes room for n bytes, and says how many there are.
func (d *sick) fits(n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.how != full || d.at == 0 || d.n < d.at {
		return n
	}
	got := min(n, d.room)
	d.room -= got
	d.fatal = d.fatal || got < n
	return got
}

func (d *sick) broke() bool { d.mu.Lock(); defer d.mu.Unlock(); return d.fatal }
func (d *sick) count() int  { d.mu.Lock(); defer d.mu.Unlock(); return d.n }

func (d *sick) OpenFile(path string, flag int, mode fs.FileMode) (journal.File, error) {
	if flag&(os.O_CREATE|os.O_WRONLY) != 0 {
		if err := d.meets(false); err != nil {
			return nil, &fs.PathError{Op: "open", Path: path, Err: err}
		}
	}
	f, err := d.Files.OpenFile(path, flag, mode)
	return &sickFile{d, f}, err
}

func (d *sick) Rename(from, to string) error {
	if err := d.meets(false); err != nil {
		return err
	}
	return d.Files.Rename(from, to)
}

func (d *sick) Remove(path string) error {
	if err := d.meets(false); err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err == nil {
		d.mu.Lock()
		d.room += int(info.Size())
		d.mu.Unlock()
	}
	return d.Files.Remove(path)
}

func (d *sick) SyncFolder(dir string) error {
	if err := d.meets(true); err != nil {
		return err
	}
	return d.Files.SyncFolder(dir)
}

type sickFile struct {
	disk *sick
	journal.File
}

func (f *sickFile) Write(p []byte) (int, error) {
	if err := f.disk.meets(false); err != nil {
		return 0, err
	}
	n := f.disk.fits(len(p))
	got, err := f.File.Write(p[:n])
	if err == nil && n < len(p) {
		err = syscall.ENOSPC
	}
	return got, err
}

func (f *sickFile) Sync() error {
	if err := f.disk.meets(true); err != nil {
		return err
	}
	return f.File.Sync()
}

// TestADiskThatFails: a disk that is full, cannot be written any more, or fails at a sync, from each of its operations on:
// the life ends with that error, leaves nothing running, and the next one, on a disk that is well, comes to the same end.
// A full disk has room left for the last record.
func TestADiskThatFails(t *testing.T) {
	t.Parallel()
	b := newBench(t, "checkpoint.keep_last=1")
	want := b.unbroken()
	for i, how := range []sickness{full, readOnly, noSync} {
		ends, points := 0, 0
		for at, over := 1+i, false; !over; at += sparse(9) {
			b.fresh(func(t *testing.T) {
				d := &sick{how: how, at: at}
				b.alter = func(w *runner.World) { w.Disk = d }
				s, err := b.through(b.server)
				if over = d.count() < at; over {
					return
				}
				points++
				point := fmt.Sprintf("%s from operation %d on", how, at)
				if d.broke() && err == nil && s.Outcome != "complete" {
					t.Errorf("%s: %s without an error", point, s.Outcome)
				}
				if left := b.ready(); len(left) > 0 {
					t.Errorf("%s: left running: %v, told %v (%v)", point, left, s.Unreleased, err)
				}
				if strings.HasSuffix(lastRecord(b.dir), "end") {
					ends++
				} else if last := lastRecord(b.dir); how == full && last != "" && last != "run" { // behind which room is kept
					t.Errorf("%s: the last record is %s (%v)", point, lastRecord(b.dir), err)
				}
				b.alter = func(w *runner.World) { w.Restart = true }
				if s, err := b.through(b.server); err != nil || s.Outcome != "complete" {
					t.Errorf("%s: the next life: %s, %v", point, s.Outcome, err)
				}
				if got := b.steps(); got != want {
					t.Errorf("%s: got\n%swant\n%s", point, got, want)
				}
				if left := b.ready(); len(left) > 0 {
					t.Errorf("%s: the next life left %v", point, left)
				}
			})
		}
		t.Logf("%s: %d points, %d journals with an end", how, points, ends)
		if points < fewest(25) {
			t.Errorf("%s: %d points are too few", how, points)
		}
	}
}

// lastRecord is the type of the last record of the journal in dir, empty where there is none.
func lastRecord(dir string) string {
	records, err := journal.Read(dir)
	if err != nil || len(records) == 0 {
		return ""
	}
	return records[len(records)-1].Type
}

// TestNoRoomToBeginWith: a disk with less room than a run needs is refused before anything is asked for.
func TestNoRoomToBeginWith(t *testing.T) {
	b := newBench(t)
	b.fresh(func(t *testing.T) {
		d := &sick{how: full, at: 1, room: journal.ReserveSize / 2}
		b.alter = func(w *runner.World) { w.Disk = d }
		defer func() { b.alter = nil }()
		_, err := b.through(b.server)
		if !journal.Full(err) || !strings.Contains(err.Error(), filepath.Join(b.dir, "journal.reserve")) {
			t.Error(err)
		}
		for _, r := range b.records(t) {
			if r.Type == "create" {
				t.Errorf("asked for: %s", r.Data)
			}
		}
	})
}
