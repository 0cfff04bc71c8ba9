package sandbox

import "time"

// Clock tells the time that the server's own, virtual time advances with. Safe for concurrent use.
type Clock interface{ Now() time.Time }

type realClock struct{}

func (realClock) Now() time.Time { return time.Now() }

// tick is how far virtual time may run ahead of the log. A server that was killed starts again this much after the last
// time it wrote down, so that no client ever sees time go back.
const tick = 250 * time.Millisecond

// virtual is a clock that stood still while the server was down. Callers hold the server's lock.
type virtual struct {
	source Clock
	base   time.Time // virtual time when source said opened
	opened time.Time
	last   time.Time
}

func startClock(source Clock, base time.Time) virtual {
	now := source.Now()
	if base.IsZero() {
		base = now
	}
	return virtual{source: source, base: base.UTC(), opened: now}
}

// now is UTC in whole microseconds, so that a record and the answer made from it agree; it never goes back.
func (v *virtual) now() time.Time {
	t := v.base.Add(v.source.Now().Sub(v.opened)).Truncate(time.Microsecond)
	if t.After(v.last) {
		v.last = t
	}
	return v.last
}
