package sandbox

import (
	"math"
	"slices"
	"time"

	"trainer/internal/wire"
)

// resource is a model resource. Its lifecycle is a function of the clock: nothing happens when a state is reached.
type resource struct {
	id       string
	spec     resourceSpec
	created  time.Time
	updated  time.Time
	active   time.Time // the last activity, by the contract's meaning of it
	until    time.Time // what extend-expiry promised
	ended    time.Time // stopped, expired or broken; zero while it lives
	broken   bool      // in ERROR, as its spec says
	sessions []*session
}

func newResource(id string, spec resourceSpec, now time.Time) *resource {
	return &resource{id: id, spec: spec, created: now, updated: now, active: now.Add(spec.Provision)}
}

// queueing is from created to the end of the queue: half of the time to READY unless it was asked for.
func (s resourceSpec) queueing() time.Duration {
	if s.Queue != nil {
		return s.Queue.Time
	}
	return s.Provision / 2
}

// ahead is how many strangers stand before the resource in the queue: those that were asked for leave it one by one.
func (r *resource) ahead(now time.Time) int {
	q := r.spec.Queue
	if q == nil || q.Time <= 0 {
		return 0
	}
	left := 1 - float64(now.Sub(r.created))/float64(q.Time)
	return max(int(math.Ceil(left*float64(q.Position)))-1, 0)
}

// breaks says that it is time for the ERROR that was asked for.
func (r *resource) breaks(now time.Time) bool {
	return r.spec.Error != nil && r.ended.IsZero() && !now.Before(r.created.Add(r.spec.Error.After))
}

func (r *resource) status(now time.Time) wire.ResourceStatus {
	switch {
	case r.broken:
		return wire.ResourceError
	case !r.ended.IsZero() && r.busy():
		return wire.ResourceStopping
	case !r.ended.IsZero():
		return wire.ResourceStopped
	case now.Before(r.created.Add(r.spec.queueing())):
		return wire.ResourcePending
	case now.Before(r.created.Add(r.spec.Provision)):
		return wire.ResourceCreating
	}
	return wire.ResourceReady
}

// reached is when the status of now began, as far as time alone brought it about.
func (r *resource) reached(now time.Time) time.Time {
	at := r.created
	for _, t := range []time.Time{r.created.Add(r.spec.queueing()), r.created.Add(r.spec.Provision)} {
		if !now.Before(t) {
			at = t
		}
	}
	return at
}

// expires never moves earlier: both of its parts only grow.
func (r *resource) expires() time.Time { return later(r.active.Add(r.spec.InactiveTimeout), r.until) }

// due says that the resource has been idle for its timeout. It does not expire while it has anything to run.
func (r *resource) due(now time.Time) bool {
	return r.ended.IsZero() && !now.Before(r.expires()) && !r.busy()
}

func (r *resource) touch(now time.Time) { r.active = later(r.active, now) }

// end releases the resource; an operation that has begun runs to its end first.
func (r *resource) end(now time.Time) {
	if r.ended.IsZero() {
		r.ended, r.updated = now, now
	}
}

// busy: some operation is queued or running.
func (r *resource) busy() bool {
	return slices.ContainsFunc(r.sessions, (*session).busy)
}

// holding counts the sessions that hold a slot.
func (r *resource) holding(now time.Time) int {
	n := 0
	for _, s := range r.sessions {
		if s.holds(now) {
			n++
		}
	}
	return n
}

// slots is the cap on sessions.
func (r *resource) slots() int {
	if r.spec.LoRA {
		return 5
	}
	return 1
}
