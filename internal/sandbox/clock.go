package sandbox

import "time"

// Clock tells the time that the server's own, virtual time advances with. Safe for concurrent use.
type Clock interface{ Now() time.Time }

type realClock struct{}

func (realClock) Now() time.Time { return time.Now() }

// tick is how far virtual time may run ahead of the log. A server that was killed starts again this much after the last
// time it wrote down, so that no client ever sees time go back.
const tick = 250 * time.Millisecond

// MaxSpeed is the most that Options.Speed can be; with maxGone it keeps virtual time where a duration can hold it.
const (
	MaxSpeed = 1e5
	maxGone  = 250 * 365 * 24 * time.Hour
)

// tick is what the constant is at the server's speed.
func (s *Server) tick() time.Duration {
	return time.Duration(float64(tick) * max(s.options.Speed, 1))
}

// real is the time on the machine's clock that a virtual duration takes.
func (s *Server) real(d time.Duration) time.Duration {
	return time.Duration(float64(d) / s.options.Speed)
}

// virtual is a clock that stood still while the server was down. Callers hold the server's lock.
type virtual struct {
	source Clock
	speed  float64
	base   time.Time // virtual time when source said opened
	opened time.Time
	last   time.Time
}

func startClock(source Clock, base time.Time, speed float64) virtual {
	now := source.Now()
	if base.IsZero() {
		base = now
	}
	return virtual{source: source, speed: speed, base: base.UTC(), opened: now}
}

// now is UTC in whole microseconds, so that a record and the answer made from it agree; it never goes back.
func (v *virtual) now() time.Time {
	gone := v.source.Now().Sub(v.opened)
	if v.speed != 1 {
		gone = time.Duration(min(float64(gone)*v.speed, float64(maxGone)))
	}
	if t := v.base.Add(gone).Truncate(time.Microsecond); t.After(v.last) {
		v.last = t
	}
	return v.last
}

// turnOver wakes whoever waits for a change of the state or of the time, with the lock held.
func (s *Server) turnOver() {
	close(s.turn)
	s.turn = make(chan struct{})
}

// wait returns at the virtual time at, or when turn is closed: the caller then looks again. A clock of the caller's own has
// no alarm: there a request makes the time be looked at again.
func (s *Server) wait(turn <-chan struct{}, at time.Time) {
	s.mu.Lock()
	left := at.Sub(s.clock.now())
	s.mu.Unlock()
	var alarm <-chan time.Time
	if _, ok := s.options.Clock.(realClock); ok {
		t := time.NewTimer(s.real(left) + time.Microsecond)
		defer t.Stop()
		alarm = t.C
	}
	select {
	case <-turn:
	case <-alarm:
	}
}
