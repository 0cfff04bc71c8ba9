package journal

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// disk is a file in memory that tells of its writes, can hold a sync back, and fails on demand.
type disk struct {
	mu       sync.Mutex
	data     []byte
	synced   []byte
	syncs    int
	room     int   // bytes that still fit
	syncErr  error // of the next sync and all after it
	wrote    chan struct{}
	entered  chan struct{}
	released chan struct{}
}

func newDisk() *disk { return &disk{room: 1 << 30} }

func (d *disk) Write(p []byte) (int, error) {
	d.mu.Lock()
	fits := min(len(p), d.room)
	d.data = append(d.data, p[:fits]...)
	d.room -= fits
	d.mu.Unlock()
	if fits < len(p) {
		return fits, syscall.ENOSPC
	}
	if d.wrote != nil {
		d.wrote <- struct{}{}
	}
	return len(p), nil
}

func (d *disk) Sync() error {
	d.mu.Lock()
	now := bytes.Clone(d.data) // what is written meanwhile is not in this sync
	d.mu.Unlock()
	if d.entered != nil {
		d.entered <- struct{}{}
		<-d.released
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.syncs++
	if d.syncErr == nil {
		d.synced = now
	}
	return d.syncErr
}

func (d *disk) Close() error { return nil }

func (d *disk) Truncate(size int64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.data = d.data[:size]
	return nil
}

// state counts the syncs, and the records that were written and that are on disk.
func (d *disk) state() (syncs, written, synced int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.syncs, len(parse(d.data).records), len(parse(d.synced).records)
}

// holds asks for that state.
func (d *disk) holds(t *testing.T, when string, syncs, written, synced int) {
	t.Helper()
	if a, b, c := d.state(); a != syncs || b != written || c != synced {
		t.Errorf("%s: %d syncs, %d records written, %d on disk; want %d, %d, %d", when, a, b, c, syncs, written, synced)
	}
}

func on(d *disk) *Journal { return &Journal{path: "journal.jsonl", file: d, crc: firstCRC} }

func TestAppendReturnsWhenItsRecordIsOnDisk(t *testing.T) {
	d := newDisk()
	j := on(d)
	for i := range 5 {
		appendTo(t, j, "note", nil)
		d.holds(t, "after an append", i+1, i+1, i+1)
	}
}

func TestConcurrentAppendsShareASync(t *testing.T) {
	d := newDisk()
	d.wrote, d.entered, d.released = make(chan struct{}), make(chan struct{}), make(chan struct{})
	j := on(d)
	var all sync.WaitGroup
	all.Go(func() { appendTo(t, j, "first", nil) })
	<-d.wrote
	<-d.entered // the first is being synced; ten more are written behind it
	for i := range 10 {
		all.Go(func() { appendTo(t, j, "more", note{Step: i}) })
		<-d.wrote
	}
	d.released <- struct{}{}
	<-d.entered
	d.released <- struct{}{}
	all.Wait()
	d.holds(t, "after 11 appends", 2, 11, 11)
}

func TestConcurrentAppendsKeepTheChain(t *testing.T) {
	dir := t.TempDir()
	j := mustOpen(t, dir, 0)
	var all sync.WaitGroup
	for w := range 8 {
		all.Go(func() {
			for i := range 25 {
				write := j.Append
				if i%3 == 0 {
					write = j.Add
				}
				if err := write("note", note{fmt.Sprint(w), i}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	mustClose(t, j)
	mustClose(t, mustOpen(t, dir, 200))
}

func TestAddIsOnDiskWithinASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk()
		j := on(d)
		for range 2 {
			if err := j.Add("note", nil); err != nil {
				t.Fatal(err)
			}
		}
		d.holds(t, "at once", 0, 2, 0)
		time.Sleep(time.Second)
		synctest.Wait()
		d.holds(t, "after a second", 1, 2, 2)
		appendTo(t, j, "note", nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		d.holds(t, "when nothing is due", 2, 3, 3)
	})
}

func TestAddIsOnDiskWithTheNextAppend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk()
		j := on(d)
		if err := j.Add("note", nil); err != nil {
			t.Fatal(err)
		}
		appendTo(t, j, "note", nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		d.holds(t, "a minute after an append", 1, 2, 2)
	})
}

// An add that is written while a sync runs is not in that sync, and must not lose its own to those who wait behind it and
// find their records on disk.
func TestAddBehindARunningSyncIsOnDiskWithinASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk()
		d.wrote, d.entered, d.released = make(chan struct{}), make(chan struct{}), make(chan struct{})
		j := on(d)
		appends := func() { appendTo(t, j, "note", nil) }
		go appends()
		<-d.wrote
		<-d.entered // the first append is in its sync, two more come to wait for the next
		for range 2 {
			go appends()
			<-d.wrote
		}
		d.released <- struct{}{}
		<-d.entered // one of the two has the sync for both
		go func() {
			if err := j.Add("note", nil); err != nil {
				t.Error(err)
			}
		}()
		<-d.wrote
		d.released <- struct{}{}
		<-d.entered // the one of the add
		d.holds(t, "after the appends", 2, 4, 3)
		d.released <- struct{}{}
		synctest.Wait()
		d.holds(t, "a second later", 3, 4, 4)
	})
}

func TestCloseBringsAddsToTheDisk(t *testing.T) {
	d := newDisk()
	j := on(d)
	if err := j.Add("note", nil); err != nil {
		t.Fatal(err)
	}
	mustClose(t, j)
	d.holds(t, "after Close", 1, 1, 1)
	mustClose(t, j)
	if err := j.Append("note", nil); !errors.Is(err, os.ErrClosed) {
		t.Errorf("append after Close: %v", err)
	}
}

func TestAFullDiskEndsTheJournal(t *testing.T) {
	whole := journalOf(t, 1)
	for room := range len(whole) {
		d := newDisk()
		j := on(d)
		appendTo(t, j, "note", nil)
		d.room = min(room, 30)
		first := j.Append("note", note{"does not fit", 1})
		if !errors.Is(first, syscall.ENOSPC) {
			t.Fatalf("room for %d bytes: %v", room, first)
		}
		d.room = 1 << 30
		if err := j.Append("note", nil); !errors.Is(err, syscall.ENOSPC) || err.Error() != first.Error() {
			t.Fatalf("the next append says %v, want %v", err, first)
		}
		if err := j.Add("note", nil); !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("the next add says %v", err)
		}
		if p := parse(d.data); len(p.records) != 1 || p.damage != nil {
			t.Fatalf("the file holds %d records, damage %v", len(p.records), p.damage)
		}
		mustClose(t, j) // the one record that was accepted is on disk
	}
}

func TestAFailedSyncEndsTheJournal(t *testing.T) {
	d := newDisk()
	j := on(d)
	appendTo(t, j, "note", nil)
	d.syncErr = syscall.EIO
	if err := j.Append("note", nil); !errors.Is(err, syscall.EIO) {
		t.Fatalf("append over a failed sync: %v", err)
	}
	d.syncErr = nil
	// The kernel may have dropped the pages: a sync that succeeds now proves nothing.
	if err := j.Append("note", nil); !errors.Is(err, syscall.EIO) {
		t.Errorf("the append after it: %v", err)
	}
	if err := j.Close(); !errors.Is(err, syscall.EIO) {
		t.Errorf("Close: %v", err)
	}
}

func TestAFailedSyncOfAnAddIsToldByTheNextCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk()
		d.syncErr = syscall.EIO
		j := on(d)
		if err := j.Add("note", nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if err := j.Add("note", nil); !errors.Is(err, syscall.EIO) {
			t.Errorf("the next add says %v", err)
		}
	})
}

func TestWriteFileReplacesAsAWhole(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "body.json")
	for _, want := range []string{"first", "", "a longer third"} {
		if err := WriteFile(path, []byte(want)); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Fatalf("got %q, %v; want %q", got, err, want)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
	if err := WriteFile(filepath.Join(dir, "none", "x"), nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("into a missing folder: %v", err)
	}
}

func TestWriteFileLeavesNothingWhenItCannotReplace(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "taken")
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := WriteFile(path, []byte("x")); err == nil {
		t.Fatal("a folder was replaced by a file")
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

// TestSweepTakesWhatAWriterThatDiedHasLeft, and nothing else.
func TestSweepTakesWhatAWriterThatDiedHasLeft(t *testing.T) {
	dir := t.TempDir()
	stay := []string{".body.json", ".body.json.tmp-", ".body.json.tmp-12", ".tmp", "body.json", "body.json.tmp-0123456789abcdef"}
	for _, name := range append([]string{".body.json.tmp-0123456789abcdef", ".a.tmp-b.tmp-00000000000000ff"}, stay...) {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	Sweep(Files{}, dir)
	Sweep(Files{}, filepath.Join(dir, "none"))
	var got []string
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if err != nil || !slices.Equal(got, stay) {
		t.Errorf("left: %q, %v; want %q", got, err, stay)
	}
}

func TestPutAllWritesEachAsAWhole(t *testing.T) {
	dir := t.TempDir()
	want := map[string][]byte{"a": []byte("one"), "b": {}, "c": bytes.Repeat([]byte("x"), 1<<20)}
	for range 2 { // the second time in place of the first
		if err := PutAll(Files{}, dir, want); err != nil {
			t.Fatal(err)
		}
	}
	for name, data := range want {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !bytes.Equal(got, data) {
			t.Errorf("%s: %d bytes, %v; want %d", name, len(got), err, len(data))
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != len(want) {
		t.Errorf("%d names in the folder, %v; want %d", len(left), err, len(want))
	}
	if err := os.Mkdir(filepath.Join(dir, "taken"), 0o700); err != nil {
		t.Fatal(err)
	}
	err := PutAll(Files{}, dir, map[string][]byte{"a": []byte("two"), "taken": []byte("x")})
	if err == nil || !strings.Contains(err.Error(), filepath.Join(dir, "taken")) {
		t.Errorf("got %v, want an error that names the file", err)
	}
	if err := PutAll(Files{}, filepath.Join(dir, "none"), nil); err != nil {
		t.Errorf("nothing to write: %v", err)
	}
}
