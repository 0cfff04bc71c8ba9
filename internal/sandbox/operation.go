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
	// overtaken: a later operation runs before this one.
	overtaken bool
	started   time.Time // virtual; zero until it has begun in this life
	ended     time.Time // virtual; zero until it is final
	// A sample: see flight.go.
	from  *serving   // what it began under
	over  *operation // the PIPELINE weights-sync that takes it over; nil: none
	then  *serving   // the weights that it goes over to; nil: they are not there
	ready *outcome   // it is done, and may still be taken over
	mark  int64      // of the record of its result

	result *resultSpec // nil: not final
	output span        // JSON; size 0 unless it completed
}

// finish makes the operation final and lets the session's position move past it.
func (o *operation) finish(r *resultSpec, output span, now time.Time) {
	o.result, o.output, o.ended, o.work, o.body.held = r, output, now, nil, nil
	s := o.session
	for s.next < len(s.ops) && s.ops[s.next].result != nil {
		s.next++
	}
	s.updated = later(s.updated, now)
	s.resource.touch(now)
}

// waits: it was held to be overtaken, and has not been.
func (o *operation) waits() bool {
	return o.spec.Fault != nil && o.spec.Fault.Hold > 0 && !o.overtaken && !o.begun && o.result == nil
}

// forgotten: it has ended, and reads do not find it any more.
func (o *operation) forgotten(now time.Time) bool {
	f := o.spec.Fault
	return f != nil && f.Remembered != nil && o.result != nil && !now.Before(o.ended.Add(*f.Remembered))
}

// keyForgotten: a request with its key is a new one.
func (o *operation) keyForgotten(now time.Time) bool {
	f := o.spec.Fault
	return f != nil && f.KeyLives != nil && !now.Before(o.accepted.Add(*f.KeyLives))
}

// publishLag is from the end of a weights-sync until the generators serve its weights. A synchronous one ends then.
func (o *operation) publishLag() time.Duration {
	switch {
	case !o.result.Defer:
		return 0
	case o.spec.Fault != nil && o.spec.Fault.Publish > 0:
		return o.spec.Fault.Publish
	}
	return publishLag
}
