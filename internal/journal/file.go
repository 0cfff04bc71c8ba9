package journal

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// WriteFile writes data to path so that after a crash at any instant path holds either what it held or all of data, and
// returns when it is on disk: a temporary file in the same folder, sync, rename, sync of the folder. Mode 0600. Safe for
// concurrent use; of two writers of one path the last to rename wins whole.
func WriteFile(path string, data []byte) error { return Put(Files{}, path, data) }

// Put is WriteFile on a disk.
func Put(d Disk, path string, data []byte) error {
	err := place(d, path, data)
	if err == nil {
		err = d.SyncFolder(filepath.Dir(path))
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

// PutAll writes each of files, by its name in dir, as Put does. They are brought to the disk together, with one sync of the
// folder: what waits for several files waits about as long as for one. After an error some may be there, each of them whole.
func PutAll(d Disk, dir string, files map[string][]byte) error {
	names := slices.Sorted(maps.Keys(files))
	errs := make([]error, len(names))
	var wg sync.WaitGroup
	for i, name := range names {
		wg.Go(func() {
			if err := place(d, filepath.Join(dir, name), files[name]); err != nil {
				errs[i] = fmt.Errorf("writing %s: %w", filepath.Join(dir, name), err)
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil || len(names) == 0 {
		return err
	}
	if err := d.SyncFolder(dir); err != nil {
		return fmt.Errorf("writing into %s: %w", dir, err)
	}
	return nil
}

// place does all of it but the sync of the folder.
func place(d Disk, path string, data []byte) error {
	temporary := filepath.Join(filepath.Dir(path), fmt.Sprintf(temporaryName, filepath.Base(path), rand.Uint64()))
	f, err := d.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = d.Rename(temporary, path)
	}
	if err != nil {
		_ = d.Remove(temporary) // the first error says more
	}
	return err
}

const temporaryName = ".%s.tmp-%016x"

// Sweep removes from dir what processes that died in the middle of a Put have left there. Nobody may write into dir
// meanwhile. What cannot be removed stays, and does no harm.
func Sweep(d Disk, dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if isTemporary(e.Name()) {
			_ = d.Remove(filepath.Join(dir, e.Name()))
		}
	}
}

func isTemporary(name string) bool {
	at := strings.LastIndex(name, ".tmp-")
	if at < 1 || name[0] != '.' {
		return false
	}
	n, err := strconv.ParseUint(name[at+len(".tmp-"):], 16, 64)
	return err == nil && name == fmt.Sprintf(temporaryName, name[1:at], n)
}

// syncFolders brings the name of a file in dir to the disk, and the name of dir itself.
func syncFolders(d Disk, dir string) error {
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("bringing the run folder to the disk: %w", err)
	}
	for _, folder := range []string{absolute, filepath.Dir(absolute)} {
		if err := d.SyncFolder(folder); err != nil {
			return fmt.Errorf("bringing the run folder to the disk: %w", err)
		}
	}
	return nil
}
