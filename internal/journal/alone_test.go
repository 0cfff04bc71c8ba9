package journal

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
)

func TestAloneIsHeldByOneAtATime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b.lock")
	free, err := Alone(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	why := errors.New("enough")
	ctx, stop := context.WithCancelCause(t.Context())
	stop(why)
	if _, err := Alone(ctx, path); !errors.Is(err, why) || !strings.Contains(err.Error(), path) {
		t.Errorf("while another holds it: %v", err)
	}
	got := make(chan error)
	go func() {
		again, err := Alone(t.Context(), path)
		if err == nil {
			again()
		}
		got <- err
	}()
	free()
	if err := <-got; err != nil {
		t.Error(err)
	}
	if _, err := Alone(t.Context(), filepath.Join(path, "c.lock")); err == nil {
		t.Error("a file took the place of the folder, and nobody minded")
	}
}
