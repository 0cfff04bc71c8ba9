package runner

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"trainer/internal/journal"
)

// nextName holds the resolved recipe of a life that changes it, until the lock speaks of it.
const nextName = "resolved.next.yaml"

// bind brings the lock into the folder, and with it the recipe where this life changes it. The lock decides: before it is
// written the old recipe counts, behind it the new one, whatever happens between.
func (r *run) bind() error {
	next := filepath.Join(r.world.Dir, nextName)
	if r.world.Resolved != nil {
		if err := journal.Put(r.disk, next, r.world.Resolved); err != nil {
			return err
		}
	}
	if err := r.plan.Lock.write(r.disk, r.world.Dir, r.past.run.RunID); err != nil {
		return err
	}
	if r.world.Resolved == nil {
		return nil
	}
	err := r.disk.Rename(next, filepath.Join(r.world.Dir, ResolvedName))
	if err == nil {
		err = r.disk.SyncFolder(r.world.Dir)
	}
	if err != nil {
		return fmt.Errorf("writing the resolved recipe: %w", err)
	}
	return nil
}

// Rebind makes the resolved recipe of a run folder the one that its lock speaks of, where a life ended between the two.
// hash reads a recipe's file. A folder that somebody works in is left alone.
func Rebind(dir string, hash func(path string) (string, error)) error {
	next := filepath.Join(dir, nextName)
	if _, err := os.Stat(next); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	free, err := journal.Hold(dir)
	var locked *journal.Locked
	if errors.As(err, &locked) {
		return nil // it is its writer's
	}
	if err != nil {
		return err
	}
	defer free()
	lock, err := ReadLock(dir)
	if err != nil {
		return err
	}
	if got, err := hash(next); err == nil && got == lock["recipe"] {
		return os.Rename(next, filepath.Join(dir, ResolvedName))
	}
	return os.Remove(next)
}
