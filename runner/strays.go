package runner

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// lookSession is how long a session is looked for whose create was not answered.
const lookSession = time.Minute

// openAt makes a session from a checkpoint, or the start, and once more where the first create is seen to have made
// nothing, or where sessions of this run held the places.
func (r *run) openAt(ctx, stop context.Context, from origin) (Session, error) {
	var asked error
	var none *Unclear
	cleared := r.past.salvaged != nil
	if cleared { // those of lost records hold places, and may have the names to come
		r.stopStrays(ctx, r.lease.id, "")
	}
	for tries := 0; tries < createTries; tries++ {
		s, rec, err := r.openOnce(ctx, from)
		if err == nil {
			return s, nil
		}
		asked = err
		var no *Refused
		switch {
		case errors.As(err, &none) && ctx.Err() == nil:
			if err := r.settleSession(ctx, stop); err != nil {
				return nil, err
			}
			if g := r.past.last(); g != nil && g.gen == *rec.Gen {
				return r.world.Backend.Join(r.sessionSpec(g), g.id), nil
			}
		case errors.As(err, &no) && no.Status == http.StatusTooManyRequests && !cleared && r.stopStrays(ctx, r.lease.id, "") > 0:
			cleared = true
			tries--
		default:
			return nil, err
		}
	}
	if errors.As(asked, &none) { // it is settled
		return nil, fmt.Errorf("%v; nothing was seen that it has made", asked)
	}
	return nil, asked
}

// openOnce sends one create.
func (r *run) openOnce(ctx context.Context, from origin) (Session, createRecord, error) {
	gen, attempt := r.past.next()
	spec := r.sessionSpec(newGeneration(gen, attempt, from))
	rec := createRecord{What: aSession, Attempt: attempt, Gen: &gen, From: &from, Reason: r.because(), Skip: r.skips(), Body: sessionBodyOf(spec)}
	if err := r.journal.Append(recCreate, rec); err != nil {
		return nil, rec, err
	}
	r.note(func(p *past) {
		p.create(rec)
		r.summary = p.summary(r.world.Dir, len(r.plan.Rates))
	})
	r.clearInflight() // of sessions that are over
	s, err := r.world.Backend.Open(ctx, spec)
	if err != nil {
		return nil, rec, r.notCreated(rec, err)
	}
	return s, rec, r.opened(s.ID(), attempt, "answer")
}

func (r *run) opened(id string, attempt int, how string) error {
	made := createdRecord{What: aSession, Attempt: attempt, ID: id, How: how}
	if err := r.journal.Append(recCreated, made); err != nil {
		return err
	}
	r.note(func(p *past) { p.created(made) })
	return nil
}

// settleSession finds out what a create of a session has made that was not answered: its name is in the list, or it made
// nothing. Where there is no such create it does nothing.
func (r *run) settleSession(ctx, stop context.Context) error {
	c := r.past.open(aSession)
	g := r.past.last()
	if c == nil || g == nil {
		return nil
	}
	if r.past.salvaged != nil { // it may have been trained since
		return r.nothing(*c, "the journal was salvaged")
	}
	name := r.sessionSpec(g).DisplayName
	r.tell(Event{Kind: WarnEvent, Done: r.past.done(), Text: fmt.Sprintf("a session was asked for, and no answer seen: looking for it, for %v at most", lookSession)})
	found, err := r.named(ctx, stop, name)
	if err != nil {
		return err
	}
	if found == "" {
		return r.nothing(*c, whySettled)
	}
	r.tell(Event{Kind: WarnEvent, Done: r.past.done(), Text: fmt.Sprintf("session %s is what a create without an answer has made: it is taken", found)})
	return r.opened(found, c.Attempt, "adopted")
}

// named waits for a session of that name to be seen on the resource; empty: it is not.
func (r *run) named(ctx, stop context.Context, name string) (found string, err error) {
	err = r.sought(stop, lookSession, func() (bool, error) {
		all, err := r.world.Backend.Sessions(ctx, r.lease.id)
		if err != nil {
			return false, fmt.Errorf("list the sessions of resource %s: %w", r.lease.id, err)
		}
		for _, s := range all {
			if s.DisplayName == name && (found == "" || active(s)) {
				found = s.ID
			}
		}
		return found != "", nil
	})
	if err != nil {
		return "", fmt.Errorf("look for what the create of the session has made: %w", err)
	}
	return found, nil
}

// ours says whether a session was made by this run.
func (r *run) ours(s SessionState) bool {
	return strings.HasPrefix(s.DisplayName, r.past.run.RunID+"/")
}

// active sessions hold one of a resource's places.
func active(s SessionState) bool {
	return s.Status == Creating || s.Status == Running || s.Status == Stopping
}

// stopStrays stops the sessions of this run on a resource but for current, and says how many gave back their places: what
// an answer that was lost has left there, or a session that a create has made twice.
func (r *run) stopStrays(ctx context.Context, resource, current string) (stopped int) {
	all, err := r.world.Backend.Sessions(ctx, resource)
	if err != nil {
		return 0
	}
	for _, s := range all {
		if !r.ours(s) || !active(s) || s.ID == current {
			continue
		}
		if r.closeStray(ctx, s.ID) {
			stopped++
		}
	}
	return stopped
}

func (r *run) closeStray(ctx context.Context, id string) bool {
	ctx, cancel := context.WithTimeout(ctx, sessionStop)
	defer cancel()
	_ = r.journal.Add(recStop, stopRecord{What: aSession, ID: id, Why: "not the current one"})
	err := r.world.Backend.Join(SessionSpec{Patience: time.Minute}, id).Close(ctx)
	if err != nil {
		r.tell(Event{Kind: WarnEvent, Done: r.doneSteps(), Text: fmt.Sprintf("stop session %s, which this run has left: %v", id, err)})
		return false
	}
	_ = r.journal.Add(recStopped, stopRecord{What: aSession, ID: id})
	return true
}
