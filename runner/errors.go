package runner

import (
	"errors"
	"fmt"
	"time"
)

// Causes that a caller branches on, with errors.Is.
var (
	ErrInterrupted = errors.New("interrupted")
	ErrBudget      = errors.New("limit reached")
	ErrDrift       = errors.New("inputs differ from the lock")
	// ErrHopeless: a resume would meet the same; what is left is to start anew.
	ErrHopeless = errors.New("no resume gets past this")
	// ErrUnsaved: what was trained is in no checkpoint. It is ErrHopeless too, unless the run is told to begin again.
	ErrUnsaved = errors.New("no checkpoint holds any")
	// ErrGone: the service no longer knows the operation (404).
	ErrGone = errors.New("the service no longer knows the operation")
)

// Refused is a request that the service answered with a 4xx that repeating cannot change.
type Refused struct {
	Request string // POST /v1/rl/model-resources
	Status  int    // HTTP
	Type    string // the envelope's type, code and param; empty where it has none
	Code    string
	Param   string
	Message string
}

func (r *Refused) Error() string {
	s := fmt.Sprintf("%s: refused (%d): %s", r.Request, r.Status, r.Message)
	if r.Param != "" {
		s += " [" + r.Param + "]"
	}
	switch r.Status {
	case 401:
		s += "; check TOGETHER_API_KEY"
	case 403:
		s += "; the key has no permission for this"
	}
	return s
}

// Unclear is a POST without an answer that tells whether it was carried out, or an operation that cannot be read: a
// timeout, a reset, a 5xx.
type Unclear struct {
	Request string
	Err     error
}

func (u *Unclear) Error() string { return fmt.Sprintf("%s: no clear answer: %v", u.Request, u.Err) }
func (u *Unclear) Unwrap() error { return u.Err }

// hopeless makes errors.Is(err, ErrHopeless) true.
type hopeless struct{ error }

func (h *hopeless) Unwrap() error        { return h.error }
func (h *hopeless) Is(target error) bool { return target == ErrHopeless }

// TimedOut is an operation that was still running when limits.operation_timeout was over; it goes on at the service.
type TimedOut struct {
	Op    OpName
	ID    string
	After time.Duration
}

func (t *TimedOut) Error() string {
	return fmt.Sprintf("%s %s: still running after %v, which is limits.operation_timeout", t.Op, t.ID, t.After)
}

// Failed is an operation that the service accepted and then gave up. Code has no prefix: NON_FINITE_LOSS.
type Failed struct {
	Op            OpName
	ID            string
	Code, Message string
}

func (f *Failed) Error() string {
	return fmt.Sprintf("%s %s: %s: %s", f.Op, f.ID, f.Code, f.Message)
}

// Unfit is a step that cannot be trained on as it is: the same bytes would fail again. It is ErrHopeless, unless the step
// is left out.
type Unfit struct {
	Step int      // from 0
	Rows []string // places of what was sent, in order; nil where they are not known
	Err  error    // of the operation
}

func (u *Unfit) Error() string { return fmt.Sprintf("step %d%s: %v", u.Step+1, ofRows(u.Rows), u.Err) }

// Unwrap implements errors.
func (u *Unfit) Unwrap() error { return u.Err }

// Is makes errors.Is(err, ErrHopeless) true.
func (u *Unfit) Is(target error) bool { return target == ErrHopeless }

// Disorder is what no document promises and every lookahead relies on, seen broken: that a session carries operations out
// in the order of their submission, each step once.
type Disorder struct{ Text string }

func (d *Disorder) Error() string { return d.Text }

// Lost is a session, or the resource under it, that is gone.
type Lost struct {
	What, ID string // session or resource
	State    string // as the service has it, with its reason; "gone" where it knows none
}

func (l *Lost) Error() string { return fmt.Sprintf("%s %s is %s", l.What, l.ID, l.State) }
