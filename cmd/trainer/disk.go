package main

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"trainer/internal/journal"
)

// diskAdvice says what to do about a disk that ended a life, nothing where it did not.
func diskAdvice(err error, dir string) []string {
	switch {
	case journal.Full(err):
		return []string{fmt.Sprintf("the disk of %s is full: free some room there, at least 32 MiB, before the next life", dir)}
	case errors.Is(err, syscall.EROFS), errors.Is(err, fs.ErrPermission):
		return []string{fmt.Sprintf("%s cannot be written: see to its permissions, or to the file system, which a fault may have made read-only", dir)}
	case errors.Is(err, syscall.EIO):
		return []string{fmt.Sprintf("the disk of %s fails: copy the folder to another one, and continue there with --take-over", dir)}
	}
	return nil
}
