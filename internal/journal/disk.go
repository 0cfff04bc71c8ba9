package journal

import (
	"io/fs"
	"os"
)

// Disk is where files are written: Files, or a test's that fails on demand. What is read is read from the file system.
type Disk interface {
	OpenFile(path string, flag int, mode fs.FileMode) (File, error)
	Rename(from, to string) error
	Remove(path string) error
	// SyncFolder brings the names in dir to the disk.
	SyncFolder(dir string) error
}

// File is what is written to.
type File interface {
	Write(p []byte) (int, error)
	Sync() error
	Truncate(size int64) error
	Close() error
}

// Files is the file system as a Disk.
type Files struct{}

// OpenFile implements Disk.
func (Files) OpenFile(path string, flag int, mode fs.FileMode) (File, error) {
	f, err := os.OpenFile(path, flag, mode)
	if err != nil {
		return nil, err
	}
	return f, nil
}

// Rename implements Disk.
func (Files) Rename(from, to string) error { return os.Rename(from, to) }

// Remove implements Disk.
func (Files) Remove(path string) error { return os.Remove(path) }

// SyncFolder implements Disk.
func (Files) SyncFolder(dir string) error { return syncFolder(dir) }
