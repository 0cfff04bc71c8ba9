//go:build unix

package hub

import (
	"context"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func TestAPipeIsRefusedWithoutReadingIt(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := (&Hub{}).Open(context.Background(), "pipe", dir)
	if want := "pipe: not a regular file; rows are read more than once, so write them to a file first"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
