//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package journal

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// tryLock takes the file's lock, which belongs to the open file and dies with it; false when someone else has it.
func tryLock(f *os.File) (bool, error) {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case errors.Is(err, syscall.EWOULDBLOCK):
			return false, nil
		case err != nil:
			return false, os.NewSyscallError("flock", err)
		}
		return true, nil
	}
}

// Folder returns what tells dir from a copy of it. A copied run folder has other numbers than its journal remembers.
func Folder(dir string) (device, inode uint64, err error) {
	info, err := os.Stat(dir)
	if err != nil {
		return 0, 0, fmt.Errorf("identifying the run folder: %w", err)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0, fmt.Errorf("identifying the run folder %s: the system does not tell its inode", dir)
	}
	return uint64(stat.Dev), uint64(stat.Ino), nil
}

func syncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
