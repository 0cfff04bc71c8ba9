// Package runs remembers where on this machine runs have their folders, so that what a dead one has left billing is found
// without knowing where it was started. It keeps one file, $XDG_STATE_HOME/trainer/runs.jsonl, a line a run that was about
// to ask for something that bills. What a run has done is in its journal; here is only where that is.
package runs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Entry is one line. Dir is absolute; Service is the address that the run speaks to, empty for the service's own.
type Entry struct {
	Time    time.Time `json:"time"`
	RunID   string    `json:"run_id"`
	Dir     string    `json:"dir"`
	Service string    `json:"service,omitempty"`
}

// Path is where the file is: under XDG_STATE_HOME where that is absolute, else under ~/.local/state.
func Path(getenv func(string) string) (string, error) {
	state := getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(state) { // the standard has others ignored
		home := getenv("HOME")
		if home == "" {
			return "", errors.New("neither XDG_STATE_HOME nor HOME says where to keep the list of runs")
		}
		state = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(state, "trainer", "runs.jsonl"), nil
}

// Remember appends e, which is on disk when it returns. Several processes may append at once.
func Remember(path string, e Entry) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("remember the run in %s: %w", path, err)
		}
	}()
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	// A line break first: one that a kill has cut then spoils no line but its own. Read passes over empty lines.
	if _, err := f.Write(append(append([]byte{'\n'}, line...), '\n')); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(path))
}

func syncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// List reads the entries, the newest of each folder, in the order in which the folders came first. A file that is missing has
// none; a line that cannot be read is passed over.
func List(path string) ([]Entry, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the list of runs: %w", err)
	}
	var out []Entry
	at := map[string]int{}
	for line := range bytes.Lines(data) {
		var e Entry
		if json.Unmarshal(line, &e) != nil || !filepath.IsAbs(e.Dir) {
			continue
		}
		if i, ok := at[e.Dir]; ok {
			out[i] = e
			continue
		}
		at[e.Dir] = len(out)
		out = append(out, e)
	}
	return out, nil
}
