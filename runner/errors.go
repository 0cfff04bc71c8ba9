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

// Unclear is a POST without an answer that tells whether it was carried out: a timeout, a reset, a 5xx.
type Unclear struct {
	Request string
	Err     error
}

func (u *Unclear) Error() string { return fmt.Sprintf("%s: no clear answer: %v", u.Request, u.Err) }
func (u *Unclear) Unwrap() error { return u.Err }

// TimedOut is an operation that was still running when limits.operation_timeout was over; it goes on at the service.
type TimedOut struct {
	Op    OpName
	ID    string
	After time.Duration
}

func (t *TimedOut) Error() string {
	return fmt.Sprintf("%s %s: still running after %v, which is limits.operation_timeout", t.Op, t.ID, t.After)
}

// Codes of a failed operation that a repetition meets again, since they come of what is sent.
const (
	codeNonFinite = "NON_FINITE_LOSS"
	codeInvalid   = "INVALID_INPUT"
)

// Failed is an operation that the service accepted and then gave up. Code has no prefix: NON_FINITE_LOSS.
type Failed struct {
	Op            OpName
	ID            string
	Code, Message string
}

func (f *Failed) Error() string {
	return fmt.Sprintf("%s %s: %s: %s", f.Op, f.ID, f.Code, f.Message)
}
