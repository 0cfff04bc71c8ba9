package runner

import (
	"context"
	"errors"
	"slices"
	"time"
)

// end waits until o is final, and through a time in which nobody answers, as long as patience lasts.
func (l *ledger) end(ctx context.Context, o *operation) (Result, error) {
	deadline := time.Time{}
	for {
		res, err := l.session.Wait(ctx, o.op, o.id)
		var none *Unclear
		if !errors.As(err, &none) {
			return res, err
		}
		if deadline.IsZero() {
			deadline = time.Now().Add(l.patience)
		}
		if time.Now().After(deadline) {
			return res, err
		}
		if cut := sleep(ctx, askedAgain); cut != nil {
			return res, cut
		}
	}
}

// fail journals what befell o, and taints the session where the policy says that it cannot be trained on after it. Where
// only the wait for o has ended, it may still end well, and is left open.
func (l *ledger) fail(o *operation, rec resultRecord) error {
	var failed *Failed
	var late *TimedOut
	given := errors.As(o.err, &failed)
	err, taints := o.err, false
	if given || errors.As(err, &late) || errors.Is(err, ErrGone) {
		if taints = o.slot.mutating() || costs(failureOf(err), false) == rollBack; taints {
			err = &spoiling{o.slot, o.err}
		}
	}
	first := taints && l.mark(err)
	if given {
		rec.Status, rec.Code = "FAILED", failed.Code
		if jerr := l.journal.Append(recResult, rec); jerr != nil {
			return errors.Join(err, &journalError{jerr})
		}
	}
	if first {
		l.announce(err)
	}
	return err
}

// taint says that the session holds, or may hold, what is not in the plan: nothing more is sent to it.
func (l *ledger) taint(err error) {
	if l.mark(err) {
		l.announce(err)
	}
}

// mark taints the session for this process; first is false where it was tainted before.
func (l *ledger) mark(err error) (first bool) {
	l.gate.Lock()
	defer l.gate.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	first = l.spoiled == nil
	if first {
		l.spoiled = err
	}
	return first
}

// announce tells the stages, and the journal so that a later life knows it too; where the disk refuses, this one ends all
// the same.
func (l *ledger) announce(err error) {
	why := whyTainted
	if failureOf(err) == disorder {
		why = whyDisorder
	}
	_ = l.journal.Append(recStop, stopRecord{What: aSession, ID: l.session.ID(), Why: why + err.Error()})
	l.mu.Lock()
	tell := l.onSpoil
	l.mu.Unlock()
	if tell != nil {
		tell()
	}
}

// lose taints the session and ends every wait for it: it will not answer.
func (l *ledger) lose(err error) {
	l.taint(err)
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, o := range slices.Concat(l.order, l.beside) {
		o.cut(err)
	}
}

// asksAgain says whether o is asked for anew: it is harmless, and its end is known before anything is sent behind it.
func (l *ledger) asksAgain(o *operation) bool {
	return l.serial && !o.slot.mutating() && o.slot.attempt < harmlessTries-1 && o.final() &&
		costs(failureOf(o.err), false) == askAgain && l.tainted() == nil
}
