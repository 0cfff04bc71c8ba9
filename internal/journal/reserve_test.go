package journal

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestFinishHasRoomOnAFullDisk: whatever write found no room, and however much of it is in the file, the last record is
// behind all that were accepted, and nothing else.
func TestFinishHasRoomOnAFullDisk(t *testing.T) {
	for room := range 400 {
		dir := t.TempDir()
		if err := Reserve(Files{}, dir); err != nil {
			t.Fatal(err)
		}
		d := newDisk()
		d.room = room
		j := &Journal{path: filepath.Join(dir, fileName), disk: Files{}, file: roomy{d, dir}, crc: firstCRC}
		accepted := 0
		for j.Append("note", note{"a note", accepted}) == nil && accepted < 5 {
			accepted++
		}
		if err := j.Finish("end", nil); err != nil {
			t.Fatalf("%d bytes: %v", room, err)
		}
		p := parse(d.synced)
		if n := len(p.records); n != accepted+1 && accepted < 5 || p.records[n-1].Type != "end" || p.damage != nil || int(p.end) != len(d.synced) {
			t.Errorf("%d bytes: %d records after %d accepted, %+v", room, len(p.records), accepted, p.damage)
		}
	}
}

// roomy is a disk in memory that has room again once the reserve is gone.
type roomy struct {
	*disk
	dir string
}

func (r roomy) Write(p []byte) (int, error) {
	if _, err := os.Stat(filepath.Join(r.dir, reserveName)); errors.Is(err, os.ErrNotExist) {
		r.room = 1 << 20
	}
	return r.disk.Write(p)
}

// TestFinishAfterAnotherFailure writes nothing: behind a failed sync it may stand where a record is missing.
func TestFinishAfterAnotherFailure(t *testing.T) {
	d := newDisk()
	j := on(d)
	d.syncErr = syscall.EIO
	if err := j.Append("note", nil); !errors.Is(err, syscall.EIO) {
		t.Fatal(err)
	}
	d.syncErr = nil
	if err := j.Finish("end", nil); !errors.Is(err, syscall.EIO) {
		t.Errorf("after a sync error: %v", err)
	}
	d = newDisk()
	j = on(d)
	d.syncErr = syscall.ENOSPC // as file systems say that reserve room late
	if err := j.Append("note", nil); !Full(err) {
		t.Fatal(err)
	}
	if err := j.Finish("end", nil); !Full(err) {
		t.Errorf("after a sync without room: %v", err)
	}
}
