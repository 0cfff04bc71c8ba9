package main

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"trainer/runner"
)

func TestDiskAdvice(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{&fs.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}, "is full: free some room"},
		{fmt.Errorf("journal: %w", syscall.EDQUOT), "is full: free some room"},
		{syscall.EROFS, "cannot be written"},
		{syscall.EACCES, "cannot be written"},
		{errors.Join(errors.New("other"), syscall.EIO), "fails: copy the folder to another one"},
		{fmt.Errorf("waiting: %w", &runner.Refused{Status: 507}), "the disk of the sandbox server is full"},
		{&runner.Refused{Status: 403}, ""},
		{errors.New("other"), ""},
		{nil, ""},
	} {
		got := strings.Join(diskAdvice(c.err, "runs/x"), "\n")
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%v: got %q, want %q", c.err, got, c.want)
		}
	}
}
