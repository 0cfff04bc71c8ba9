package runner

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"trainer/internal/journal"
)

const lockName = "lock.yaml"

// Hash is over all entries, in order of their names.
func (l Lock) Hash() string { return hashOf(l.text()) }

// text is one `name: value` a line: YAML, for people and for ReadLock.
func (l Lock) text() []byte {
	var b bytes.Buffer
	for _, k := range slices.Sorted(maps.Keys(l)) {
		fmt.Fprintf(&b, "%s: %s\n", k, l[k])
	}
	return b.Bytes()
}

// write brings the lock into the folder of a run.
func (l Lock) write(d journal.Disk, dir, runID string) error {
	l = maps.Clone(l)
	l[lockRun] = runID
	if got, err := ReadLock(dir); err == nil && maps.Equal(got, l) {
		return nil
	}
	return journal.Put(d, filepath.Join(dir, lockName), l.text())
}

// lockRun is the entry that says whose lock it is. It decides no result, so no hash covers it.
const lockRun = "run"

// ReadLock reads the lock of a run folder; nil when there is none.
func ReadLock(dir string) (Lock, error) {
	b, err := os.ReadFile(filepath.Join(dir, lockName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	l, err := parseLock(b)
	if err != nil {
		return nil, fmt.Errorf("%s:%w", filepath.Join(dir, lockName), err)
	}
	return l, nil
}

// Drift is what differs between a lock and what the inputs are now.
type Drift struct {
	Dir  string   // of the run, or the file of the lock
	Diff []string // name: was, is
	Way  string   // out; empty: of a run
}

func (d *Drift) Error() string {
	way := d.Way
	if way == "" {
		way = "put the inputs back, or start anew with `trainer run`"
	}
	return fmt.Sprintf("%v of %s:\n  %s\n%s", ErrDrift, d.Dir, strings.Join(d.Diff, "\n  "), way)
}

// Is makes errors.Is(err, ErrDrift) true.
func (d *Drift) Is(target error) bool { return target == ErrDrift }

// free are the entries that may differ between two lives of a run: recipe, because resume has compared it key by key; wire,
// because either shape of a request says the same, and what was sent is sent again as it was.
var free = []string{"recipe", lockBinary, "wire", lockRun}

// drift compares the lock of dir with now.
func (p *past) drift(dir string, now Lock) error {
	was, err := ReadLock(dir)
	if err != nil {
		return fmt.Errorf("read the lock: %w", err)
	}
	if of, ok := was[lockRun]; ok && p.run != nil && of != p.run.RunID {
		return fmt.Errorf("%s is of run %s, and the journal beside it of run %s: the recipe and the journal of two runs are mixed; put back those of one", filepath.Join(dir, lockName), of, p.run.RunID)
	}
	d := &Drift{Dir: dir}
	for _, k := range slices.Sorted(maps.Keys(was)) {
		if was[k] != now[k] && !slices.Contains(free, k) {
			d.Diff = append(d.Diff, fmt.Sprintf("%s: was %s, is %s", k, was[k], now[k]))
		}
	}
	if len(d.Diff) == 0 {
		return nil
	}
	return d
}

// elsewhere refuses a copy of a run folder, and one from another machine: the run that it was copied from may live, and two
// that train from one journal are what it is there to prevent. The device counts while the machine has not started anew.
func (p *past) elsewhere(dir string) error {
	was, now := p.life, journal.Owner()
	if was == nil {
		return nil
	}
	device, inode, err := journal.Folder(dir)
	if err != nil {
		return err
	}
	moved := was.Folder.Inode != inode || was.Folder.Device != device && was.BootID == now.BootID
	if was.Host == now.Host && !moved {
		return nil
	}
	what := "is a copy of the folder that the run was started in"
	if was.Host != now.Host {
		what = "was last worked in on " + was.Host + ", this is " + now.Host
	}
	return fmt.Errorf("%s %s: where the run goes on there too, both would train; if it does not, continue here with `trainer resume --take-over %s`", dir, what, dir)
}

// seed derives a seed for one purpose from the recipe's: the first 8 bytes of a SHA-256, without the sign.
func seed(purpose string, from int64) int64 {
	h := sha256.Sum256(fmt.Appendf(nil, "trainer-seed-1\n%s\n%d", purpose, from))
	v := int64(0)
	for _, b := range h[:8] {
		v = v<<8 | int64(b)
	}
	return v & (1<<63 - 1)
}
