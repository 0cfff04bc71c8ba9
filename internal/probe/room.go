package probe

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"trainer/internal/wire"
	"trainer/recipe"
	"trainer/runner"
)

// Sessions is the part of a runner.Backend that opens and ends sessions.
type Sessions interface {
	Open(ctx context.Context, spec runner.SessionSpec) (runner.Session, error)
	Join(spec runner.SessionSpec, id string) runner.Session
	Sessions(ctx context.Context, resource string) ([]runner.SessionState, error)
}

const (
	// clearing bounds how long a session whose create has no clear answer is looked for.
	clearing = 45 * time.Second
	// closingMax bounds how long the end of the sessions is waited for.
	closingMax = 5 * time.Minute
)

// room is the throwaway session. Its display name is drawn, so that a session that was made without our hearing of it is
// found again, and stopped.
type room struct {
	service Service
	res     wire.Resource
	spec    runner.SessionSpec
	id      string // empty: none known
	asked   bool   // a create was sent
	unclear bool   // and has no clear answer
}

// open makes the session, and waits until it is RUNNING.
func (r *room) open(ctx context.Context) (string, error) {
	r.spec = runner.SessionSpec{Resource: r.res.ID, DisplayName: "probe " + rand.Text()}
	if r.res.LoRAEnabled {
		r.spec.LoRA = &recipe.LoRA{Rank: 8, Alpha: 16, TrainUnembed: true}
	}
	r.asked = true
	s, err := r.service.Open(ctx, r.spec)
	var lost *runner.Unclear
	if r.unclear = errors.As(err, &lost); r.unclear && ctx.Err() == nil {
		s, err = r.find(ctx, err)
	}
	if err != nil {
		return "", r.notOpened(err)
	}
	r.id = s.ID()
	return r.id, r.running(ctx, s)
}

func (r *room) notOpened(err error) error {
	var no *runner.Refused
	if errors.As(err, &no) && no.Status == 429 {
		return fmt.Errorf("model resource %s has no room for one more session: stop one of its sessions, or probe when one has ended: %w", r.res.ID, err)
	}
	return fmt.Errorf("open a session on model resource %s: %w", r.res.ID, err)
}

// find looks for the session of a create that ended in cause.
func (r *room) find(ctx context.Context, cause error) (runner.Session, error) {
	for start := time.Now(); time.Since(start) < clearing; {
		ours, err := r.ours(ctx)
		if err != nil {
			return nil, err
		}
		if len(ours) > 0 {
			r.unclear = false
			return r.service.Join(r.spec, ours[0].ID), nil
		}
		if err := sleep(ctx, 2*time.Second); err != nil {
			return nil, err
		}
	}
	return nil, cause
}

// ours lists the sessions of our name that still hold a place.
func (r *room) ours(ctx context.Context) (ours []runner.SessionState, err error) {
	all, err := r.service.Sessions(ctx, r.res.ID)
	for _, s := range all {
		if s.DisplayName == r.spec.DisplayName && !wire.SessionStatus("TRAINING_SESSION_STATUS_"+s.Status).Final() {
			ours = append(ours, s)
		}
	}
	return ours, err
}

func (r *room) running(ctx context.Context, s runner.Session) error {
	for wait := 10 * time.Millisecond; ; wait = min(wait*2, 2*time.Second) {
		st, err := s.State(ctx)
		switch {
		case err != nil:
			return fmt.Errorf("read session %s: %w", s.ID(), err)
		case st.Status == runner.Running:
			return nil
		case st.Status != runner.Creating:
			return fmt.Errorf("session %s is %s: %s %s", s.ID(), st.Status, st.ErrorCode, st.ErrorMessage)
		}
		if err := sleep(ctx, wait); err != nil {
			return fmt.Errorf("waiting for session %s: %w", s.ID(), err)
		}
	}
}

// close stops every session of ours, with time of its own: one that was made twice, or whose create was never answered, is
// found by its name.
func (r *room) close(ctx context.Context) error {
	if !r.asked {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closingMax)
	defer cancel()
	var all error
	if r.unclear {
		if s, err := r.find(ctx, nil); s != nil {
			r.id = s.ID()
		} else if err != nil {
			all = fmt.Errorf("session %q may have been made on model resource %s: %w", r.spec.DisplayName, r.res.ID, err)
		}
	}
	stop := func(id string) {
		if err := r.service.Join(r.spec, id).Close(ctx); err != nil {
			all = errors.Join(all, fmt.Errorf("session %s may still hold a place on model resource %s: %w", id, r.res.ID, err))
		}
	}
	if r.id != "" {
		stop(r.id)
	}
	rest, err := r.ours(ctx)
	for _, s := range rest {
		if s.ID != r.id {
			stop(s.ID)
		}
	}
	if err != nil && r.id == "" {
		all = errors.Join(all, err)
	}
	return all
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
