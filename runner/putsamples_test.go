package runner

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"trainer/internal/journal"
)

// names is a disk that tells what was brought to it: files by their moves, folders by their syncs.
type names struct {
	journal.Files
	told []string
}

func (d *names) OpenFile(path string, flag int, mode fs.FileMode) (journal.File, error) {
	d.told = append(d.told, "open in "+filepath.Base(filepath.Dir(path)))
	return d.Files.OpenFile(path, flag, mode)
}

func (d *names) SyncFolder(dir string) error {
	d.told = append(d.told, "sync "+filepath.Base(dir))
	return d.Files.SyncFolder(dir)
}

// TestTheFolderOfSamplesIsOnTheDiskBeforeItsFiles, also where it is found: who has made it may not have come to its sync.
func TestTheFolderOfSamplesIsOnTheDiskBeforeItsFiles(t *testing.T) {
	for _, found := range []bool{false, true} {
		dir := filepath.Join(t.TempDir(), "run")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if found {
			if err := os.Mkdir(filepath.Join(dir, samplesName), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		d := &names{}
		r := &run{world: World{Dir: dir}, disk: d}
		for _, name := range []string{"a", "b"} {
			if err := r.putSamples(samplesName+"/"+name, []byte("x")); err != nil {
				t.Fatal(err)
			}
		}
		want := []string{"sync run", "open in samples", "sync samples", "open in samples", "sync samples"}
		if !slices.Equal(d.told, want) {
			t.Errorf("found %v: got %q, want %q", found, d.told, want)
		}
	}
}
