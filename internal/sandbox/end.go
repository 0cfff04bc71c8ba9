package sandbox

import (
	"fmt"

	"trainer/internal/wire"
)

// applyEnd is what time alone brings about: an idle resource or a session that was made to expires, a resource breaks.
func (s *state) applyEnd(r *record) error {
	if sess, ok := s.sessions.byID[r.ID]; ok {
		sess.end(r.Until, true)
		return s.cancel(r, "the session expired before the operation began")
	}
	res, ok := s.resources.byID[r.ID]
	if !ok {
		return fmt.Errorf("%s does not exist", r.ID)
	}
	if r.Kind == kindBreak && res.spec.Error == nil {
		return fmt.Errorf("resource %s has no error to end with", r.ID)
	}
	res.end(r.Until)
	res.broken = r.Kind == kindBreak
	for _, sess := range res.sessions {
		if res.broken {
			if !sess.over() {
				sess.fail(r.Until, wire.SessionResourceUnavailable, "its model resource is in ERROR")
			}
			continue
		}
		sess.end(r.Until, true)
	}
	return s.cancel(r, "the model resource ended before the operation began")
}

// cancel fails the operations that had not begun when their session ended.
func (s *state) cancel(r *record, why string) error {
	at := r.T
	if !r.Until.IsZero() {
		at = r.Until
	}
	for _, id := range r.Cancelled {
		op, ok := s.operations[id]
		if !ok {
			return fmt.Errorf("operation %s does not exist", id)
		}
		op.finish(&resultSpec{Code: wire.CodeSessionNotActive, Message: why}, span{}, at)
	}
	return nil
}
