package journal

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
)

// WriteFile writes data to path so that after a crash at any instant path holds either what it held or all of data, and
// returns when it is on disk: a temporary file in the same folder, sync, rename, sync of the folder. Mode 0600. Safe for
// concurrent use; of two writers of one path the last to rename wins whole.
func WriteFile(path string, data []byte) error {
	if err := replace(path, data); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

// WriteFiles writes each of files, by its name in dir, as WriteFile does. They are brought to the disk together, with one
// sync of the folder: what waits for several files waits about as long as for one. After an error some may be there,
// each of them whole.
func WriteFiles(dir string, files map[string][]byte) error {
	names := slices.Sorted(maps.Keys(files))
	errs := make([]error, len(names))
	var wg sync.WaitGroup
	for i, name := range names {
		wg.Go(func() {
			if err := place(filepath.Join(dir, name), files[name]); err != nil {
				errs[i] = fmt.Errorf("writing %s: %w", filepath.Join(dir, name), err)
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil || len(names) == 0 {
		return err
	}
	if err := syncFolder(dir); err != nil {
		return fmt.Errorf("writing into %s: %w", dir, err)
	}
	return nil
}

func replace(path string, data []byte) error {
	if err := place(path, data); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(path))
}

// place does all of it but the sync of the folder.
func place(path string, data []byte) error {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, "."+filepath.Base(path)+".tmp-*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// syncFolders brings the name of a file in dir to the disk, and the name of dir itself.
func syncFolders(dir string) error {
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("bringing the run folder to the disk: %w", err)
	}
	for _, d := range []string{absolute, filepath.Dir(absolute)} {
		if err := syncFolder(d); err != nil {
			return fmt.Errorf("bringing the run folder to the disk: %w", err)
		}
	}
	return nil
}
