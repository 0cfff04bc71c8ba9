package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

const (
	reserveName = "journal.reserve"
	// ReserveSize is the room that is kept for the last record, in bytes.
	ReserveSize = 1 << 20
)

// Reserve takes room in dir for the last record, which Finish gives back when the disk is full.
func Reserve(d Disk, dir string) error {
	path := filepath.Join(dir, reserveName)
	if info, err := os.Stat(path); err == nil && info.Size() == ReserveSize {
		return nil
	}
	if err := Put(d, path, make([]byte, ReserveSize)); err != nil {
		return fmt.Errorf("reserving room for the end of the journal: %w", err)
	}
	return nil
}

// Unreserve gives the room back.
func Unreserve(d Disk, dir string) error {
	if err := d.Remove(filepath.Join(dir, reserveName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Full says whether err comes of a disk, or a quota, that has no room left.
func Full(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// Finish appends the last record. Where a write fails, or has failed before, because the disk is full, it gives the reserve
// back, cuts off what of that write is in the file, and writes this one: every record that was accepted is before it. After
// any other failure it returns that. Nothing is to be appended behind it.
func (j *Journal) Finish(kind string, v any) error {
	err := j.Append(kind, v)
	if !Full(err) {
		return err
	}
	if err := j.makeRoom(err); err != nil {
		return err
	}
	return j.Append(kind, v)
}

// makeRoom undoes a write for which there was none. After a sync that failed nothing can be undone.
func (j *Journal) makeRoom(full error) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.unsynced {
		return full
	}
	if err := errors.Join(Unreserve(j.disk, filepath.Dir(j.path)), j.file.Truncate(j.size)); err != nil {
		return errors.Join(full, fmt.Errorf("making room for the last record: %w", err))
	}
	j.err = nil
	return nil
}
