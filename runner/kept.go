package runner

import (
	"encoding/json"
	"fmt"
	"os"

	"trainer/internal/journal"
	"trainer/internal/rollout"
)

// What operations have sampled is in files beside the stored requests, as JSON, until their batch is stored.

// keepSamples brings what o has sampled to the disk, before its result says so.
func (l *ledger) keepSamples(o *operation) (sha string, err error) {
	b, err := json.Marshal(o.res.Samples)
	if err == nil {
		err = journal.Put(l.disk, l.outPath(o.key), b)
	}
	if err != nil {
		return "", &journalError{fmt.Errorf("store what %s has sampled: %w", o.slot.kind, err)}
	}
	return hashOf(b), nil
}

// keptSamples is what an operation of an earlier life has sampled. ErrGone where it is not there any more: sampling trains nothing,
// so whoever needs it asks again.
func (l *ledger) keptSamples(key, sha string) ([]rollout.Samples, error) {
	b, err := os.ReadFile(l.outPath(key))
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
			_ = l.disk.Remove(l.outPath(o.key)) // a file left behind does no harm
		}
	}
}
