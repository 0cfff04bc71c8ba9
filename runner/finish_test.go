package runner

import (
	"errors"
	"testing"
)

// A save whose every try has failed, in this life or before, is never taken for one that was made.
func TestASaveThatHasSpentItsTriesIsAnError(t *testing.T) {
	l := &ledger{ops: map[slot]*operation{}}
	for try := range saveTries {
		s := slot{step: 4, kind: kindTraining, attempt: try}
		o := &operation{slot: s, err: &Failed{Op: OpTrainingCheckpoint, Code: "INTERNAL_ERROR"}, done: make(chan struct{})}
		close(o.done)
		l.ops[s] = o
	}
	r := &run{ledger: l, tell: func(Event) {}}
	var failed *Failed
	if err := r.save(t.Context(), 4, 4, false); !errors.As(err, &failed) {
		t.Errorf("got %v, want the last failure", err)
	}
}
