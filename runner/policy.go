package runner

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// failure is something that went wrong, named as the service or the README has it.
type failure string

// What an operation fails with, and what befalls one that does not end. Codes are the service's, without their prefix.
const (
	nonFinite failure = "NON_FINITE_LOSS"
	invalid   failure = "INVALID_INPUT"
	exhausted failure = "RESOURCE_EXHAUSTED"
	timeout   failure = "TIMEOUT"
	internal  failure = "INTERNAL_ERROR"
	notActive failure = "SESSION_NOT_ACTIVE"
	otherCode failure = "any other code"
	forgotten failure = "404: the operation is not known any more"
	overtime  failure = "`limits.operation_timeout`"
	disorder  failure = "an operation that overtakes another, a step counted twice"
	lost      failure = "a session or resource that is gone"
	unclear   failure = "a request without a clear answer for half an `inactive_timeout`, or whose key is forgotten"
	refused   failure = "a request that is refused: 401, 403, 422 and other 4xx"
)

// action is what a failure costs.
type action int

const (
	giveUp   action = iota // the run stops: saved where the session can be trusted, released, an error
	askAgain               // harmless work is asked for anew, harmlessTries times, while nothing was sent behind it
	settle                 // the session is looked at and what is in doubt is settled, as after a crash
	rollBack               // the session is given up; a new one goes on from the newest checkpoint
)

// rule is a row of the policy: what each failure of it costs, by whether the operation trains. The words beside are the
// README's, where the action alone does not say it all.
type rule struct {
	of               []failure
	trains, harmless action
	words            string
}

// policy is the whole of it. An operation that trains and FAILED always taints its session: what it left there is unknown,
// so it is never asked for again in it.
var policy = []rule{
	{[]failure{nonFinite}, giveUp, askAgain, "stop, and name the rows; `train.on_non_finite: skip_batch`: roll back and leave the step out, three times a run"},
	{[]failure{invalid}, giveUp, askAgain, "stop, and name the rows"},
	{[]failure{exhausted, timeout, internal, otherCode, forgotten}, rollBack, askAgain, ""},
	{[]failure{notActive, lost, overtime}, rollBack, rollBack, ""},
	{[]failure{disorder}, rollBack, rollBack, "roll back, and `train.lookahead` is 0 from then on"},
	{[]failure{unclear}, settle, settle, ""},
	{[]failure{refused}, giveUp, giveUp, ""},
}

// costs looks the action up.
func costs(f failure, trains bool) action {
	for _, r := range policy {
		for _, of := range r.of {
			if of == f && trains {
				return r.trains
			} else if of == f {
				return r.harmless
			}
		}
	}
	return giveUp
}

// coded is a code of the service as a failure.
func coded(code string) failure {
	switch f := failure(code); f {
	case nonFinite, invalid, exhausted, timeout, internal, notActive:
		return f
	}
	return otherCode
}

// failureOf names what err is; empty for what the policy has no row for, such as a fault of ours, which stops.
func failureOf(err error) failure {
	var (
		panicked *Panic
		written  *journalError
		failed   *Failed
		late     *TimedOut
		order    *Disorder
		gone     *Lost
		in       *doubt
		none     *Unclear
		no       *Refused
	)
	switch {
	case err == nil, errors.As(err, &panicked), errors.As(err, &written):
		return ""
	case errors.As(err, &failed):
		return coded(failed.Code)
	case errors.As(err, &late):
		return overtime
	case errors.Is(err, ErrGone):
		return forgotten
	case errors.As(err, &order):
		return disorder
	case errors.As(err, &gone):
		return lost
	case errors.As(err, &in), errors.As(err, &none):
		return unclear
	case errors.As(err, &no):
		return refused
	}
	return ""
}

// verdict is what the error that ended the stages costs. What tainted the session is judged, where it is tainted: other
// errors follow from it.
func (r *run) verdict(ctx context.Context, err error) (action, error) {
	trains := false
	var panicked *Panic
	if t := r.tainted(); t != nil && !errors.As(err, &panicked) {
		err, trains = r.explain(t), true
	}
	f := failureOf(err)
	var unfit *Unfit
	switch {
	case errors.As(err, &unfit) && r.leavesOut(f):
		return rollBack, err
	case errors.Is(err, ErrHopeless):
		return giveUp, err
	case f == refused:
		if gone := r.missing(ctx, err); gone != nil {
			return rollBack, fmt.Errorf("%w (%v)", gone, err)
		}
	}
	return costs(f, trains), err
}

// tainted is why the session holds what is not in the plan, nil while it does not.
func (r *run) tainted() error {
	if r.ledger == nil {
		return nil
	}
	return r.ledger.tainted()
}

// missing looks whether a refusal comes of the session, or of what it runs on, being gone. One that is about the key, the
// project's credit or the pace says nothing of them.
func (r *run) missing(ctx context.Context, err error) error {
	var no *Refused
	if !errors.As(err, &no) || no.Status == 401 || no.Status == 402 || no.Status == 403 || no.Status == 429 || r.lease == nil {
		return nil
	}
	if err := r.lease.lost(ctx); err != nil {
		return err
	}
	if r.session == nil {
		return nil
	}
	return sessionLost(ctx, r.session)
}

// sessionLost says that a session takes no work any more; nil where it does, or where that cannot be seen.
func sessionLost(ctx context.Context, s Session) error {
	st, err := s.State(ctx)
	var no *Refused
	switch {
	case errors.As(err, &no) && no.Status == 404:
		return &Lost{"session", s.ID(), "gone"}
	case err != nil || st.Status == Running || st.Status == Creating:
		return nil
	}
	return lostSession(s, st)
}

func lostSession(s Session, st SessionState) error {
	return &Lost{"session", s.ID(), strings.TrimSpace(fmt.Sprintf("%s %s %s", st.Status, st.ErrorCode, st.ErrorMessage))}
}
