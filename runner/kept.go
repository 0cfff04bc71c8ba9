package runner

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"trainer/internal/journal"
	"trainer/internal/rollout"
)

// keptExt ends the names of the files that hold what operations have sampled, until their batch is stored.
const keptExt = ".out"

func (l *ledger) keptPath(key string) string { return filepath.Join(l.dir, key+keptExt) }

// keep brings what o has sampled to the disk, before its result says so.
func (l *ledger) keep(o *operation) (sha string, err error) {
	b, err := json.Marshal(o.res.Samples)
	if err == nil {
		err = journal.Put(l.disk, l.keptPath(o.key), b)
	}
	if err != nil {
		return "", &journalError{fmt.Errorf("store what %s has sampled: %w", o.slot.kind, err)}
	}
	return hashOf(b), nil
}

// kept is what an operation of an earlier life has sampled. ErrGone where it is not there any more: sampling trains nothing,
// so whoever needs it asks again.
func (l *ledger) kept(key, sha string) ([]rollout.Samples, error) {
	b, err := os.ReadFile(l.keptPath(key))
	if err != nil || hashOf(b) != sha {
		return nil, ErrGone
	}
	var s []rollout.Samples
	if err := json.Unmarshal(b, &s); err != nil {
		return nil, ErrGone
	}
	return s, nil
}

// forget drops what the operations of which names have sampled: it is stored elsewhere now, or of no use any more.
func (l *ledger) forget(which func(slot) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for s, o := range l.ops {
		if s.samples() && o.final() && which(s) {
			o.res.Samples = nil
			_ = l.disk.Remove(l.keptPath(o.key)) // a file left behind does no harm
		}
	}
}
