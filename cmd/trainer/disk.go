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

// roomAgain is what a life that a full disk has ended needs, in bytes.
const roomAgain = 32 << 20

// gone says that a life has ended because its folder is not there any more.
func gone(err error, dir string) bool {
	_, stat := os.Stat(dir)
	return errors.Is(err, fs.ErrNotExist) && errors.Is(stat, fs.ErrNotExist)
}

// diskAdvice says what to do about a disk that ended a life, nothing where it did not.
func diskAdvice(err error, dir string) []string {
	var refused *runner.Refused
	stored := errors.As(err, &refused) && refused.Status == http.StatusInsufficientStorage
	if _, embedded := os.Stat(sandboxDir(dir)); stored && embedded != nil {
		return []string{"the disk of the sandbox server is full or fails: see to it, and start the server again on its folder, before the next life"}
	}
	free, known := journal.Space(dir)
	switch {
	case gone(err, dir):
		return []string{fmt.Sprintf("%s is gone: put it back, to resume; else start anew with `trainer run`, and see `trainer resources list`", dir)}
	case (journal.Full(err) || stored) && known && free >= roomAgain:
		return []string{fmt.Sprintf("the disk of %s takes no more, although %d MiB are free: see to its quota, or to the number of its files, before the next life", dir, free>>20)}
	case journal.Full(err), stored:
		return []string{fmt.Sprintf("the disk of %s is full: free some room there, at least %d MiB, before the next life", dir, roomAgain>>20)}
	case errors.Is(err, syscall.EROFS), errors.Is(err, fs.ErrPermission):
		return []string{fmt.Sprintf("%s cannot be written: see to its permissions, or to the file system, which a fault may have made read-only", dir)}
	case errors.Is(err, syscall.EIO):
		return []string{fmt.Sprintf("the disk of %s fails: copy the folder to another one, and continue there with --take-over", dir)}
	}
	return nil
}
