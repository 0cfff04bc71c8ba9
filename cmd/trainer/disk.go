package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"syscall"

	"trainer/internal/journal"
	"trainer/runner"
)

// diskAdvice says what to do about a disk that ended a life, nothing where it did not.
func diskAdvice(err error, dir string) []string {
	var refused *runner.Refused
	stored := errors.As(err, &refused) && refused.Status == http.StatusInsufficientStorage
	if _, embedded := os.Stat(sandboxDir(dir)); stored && embedded != nil {
		return []string{"the disk of the sandbox server is full or fails: see to it, and start the server again on its folder, before the next life"}
	}
	switch {
	case journal.Full(err), stored:
		return []string{fmt.Sprintf("the disk of %s is full: free some room there, at least 32 MiB, before the next life", dir)}
	case errors.Is(err, syscall.EROFS), errors.Is(err, fs.ErrPermission):
		return []string{fmt.Sprintf("%s cannot be written: see to its permissions, or to the file system, which a fault may have made read-only", dir)}
	case errors.Is(err, syscall.EIO):
		return []string{fmt.Sprintf("the disk of %s fails: copy the folder to another one, and continue there with --take-over", dir)}
	}
	return nil
}
