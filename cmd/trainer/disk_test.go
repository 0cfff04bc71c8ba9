package main

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"trainer/internal/journal"
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
		{&fs.PathError{Op: "open", Path: "runs/x/metrics.jsonl", Err: fs.ErrNotExist}, "runs/x is gone: put it back"},
		{errors.New("other"), ""},
		{nil, ""},
	} {
		got := strings.Join(diskAdvice(c.err, "runs/x"), "\n")
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%v: got %q, want %q", c.err, got, c.want)
		}
	}
}

// TestAQuotaIsNotTheRoom: where there is room, it is something else that is full.
func TestAQuotaIsNotTheRoom(t *testing.T) {
	dir := t.TempDir()
	if free, known := journal.Space(dir); !known || free < roomAgain {
		t.Skip("there is no room here, or nobody knows how much")
	}
	got := strings.Join(diskAdvice(syscall.EDQUOT, dir), "\n")
	if !strings.Contains(got, "see to its quota") || strings.Contains(got, "is full") {
		t.Errorf("got %q", got)
	}
	if got := diskAdvice(&fs.PathError{Op: "open", Path: "x", Err: fs.ErrNotExist}, dir); got != nil {
		t.Errorf("got %q of a folder that is there", got)
	}
}
