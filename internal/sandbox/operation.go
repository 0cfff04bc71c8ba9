package sandbox

import "time"

// operation is one thing asked of a session: accepted once, run once, remembered for ever. The server's lock guards it.
type operation struct {
	id       string
	spec     opSpec
	session  *session
	accepted time.Time
	body     span  // the request's
	work     *work // the body decoded, until it has run; nil after a restart
	begun    bool
	result   *resultSpec // nil: not final
	output   span        // JSON; size 0 unless it completed
}

// finish makes the operation final and lets the session's position move past it.
func (o *operation) finish(r *resultSpec, output span, now time.Time) {
	o.result, o.output, o.work, o.body.held = r, output, nil, nil
	s := o.session
	for s.next < len(s.ops) && s.ops[s.next].result != nil {
		s.next++
	}
	s.updated = later(s.updated, now)
	s.resource.touch(now)
}
