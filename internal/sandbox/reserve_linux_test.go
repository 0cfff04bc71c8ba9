package sandbox

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestTheReserveOfALog fills a real file system: what has no body still fits, and the log is whole.
func TestTheReserveOfALog(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m,mode=0700"); err != nil {
		t.Skipf("a small file system cannot be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	d, _, err := openDisk(dir, func([]byte, span) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	kept := 0
	for err == nil {
		if _, _, err = d.append([]byte(`{}`), make([]byte, 10_000)); err == nil {
			kept++
		}
	}
	if !noRoom(err) {
		t.Fatalf("got %v, want that there is no room", err)
	}
	for range 100 {
		_, mark, err := d.append([]byte(`{}`), nil)
		if err == nil {
			err = d.sync(mark)
		}
		if err != nil {
			t.Fatal(err)
		}
		kept++
	}
	if err := d.close(); err != nil {
		t.Fatal(err)
	}
	found := 0
	d, cut, err := openDisk(dir, func([]byte, span) error { found++; return nil })
	if err == nil {
		err = d.close()
	}
	if err != nil || cut != 0 || found != kept {
		t.Errorf("%d records, %d bytes cut, %v; want %d", found, cut, err, kept)
	}
	if _, err := os.Stat(filepath.Join(dir, reserveName)); err == nil {
		t.Error("a folder that nobody serves keeps a reserve")
	}
}
