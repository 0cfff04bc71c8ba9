package download

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"trainer/internal/journal"
)

// RecordName is the file of a folder that says what the others are.
const RecordName = "trainer-checkpoint.json"

// partEnd ends the name of a file that is not whole.
const partEnd = ".part"

// record is RecordName. Synced is how many bytes of each part are on disk for certain: what stands behind them may be what
// a power cut has left of it.
type record struct {
	Label
	Files  []entry          `json:"files"`
	Synced map[string]int64 `json:"synced,omitempty"`
}

type entry struct {
	Name string `json:"name"`
	Size int64  `json:"size"`
}

// readRecord reads that of dir; nil when there is none.
func readRecord(dir string) (*record, error) {
	path := filepath.Join(dir, RecordName)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var r record
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	for _, f := range r.Files {
		if why := unsafe(f.Name); why != "" {
			return nil, fmt.Errorf("reading %s: file name %q %s", path, f.Name, why)
		}
	}
	return &r, nil
}

func (r *record) write(dir string) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return journal.WriteFile(filepath.Join(dir, RecordName), append(data, '\n'))
}

// Read says what is in a folder: whole is true where every file of it has its size, which size adds up. A folder without a
// record has the empty label.
func Read(dir string) (label Label, size int64, whole bool, err error) {
	r, err := readRecord(dir)
	if err != nil || r == nil {
		return Label{}, 0, false, err
	}
	whole = true
	for _, f := range r.Files {
		size += f.Size
		info, err := os.Lstat(filepath.Join(dir, f.Name))
		whole = whole && err == nil && info.Mode().IsRegular() && info.Size() == f.Size
	}
	return r.Label, size, whole, nil
}

// Remove takes what its record lists out of a folder, then the record, and the folder where nothing else is in it. A folder
// that is missing, or has no record, is left as it is.
func Remove(dir string) error {
	r, err := readRecord(dir)
	if err != nil || r == nil {
		return err
	}
	if err := r.clear(dir); err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(dir, RecordName)); err != nil {
		return err
	}
	_ = os.Remove(dir) // refused where anything is left, which is then not ours
	return nil
}

// clear removes the files and parts of r.
func (r *record) clear(dir string) error {
	for _, f := range r.Files {
		for _, name := range []string{f.Name, f.Name + partEnd} {
			if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}
