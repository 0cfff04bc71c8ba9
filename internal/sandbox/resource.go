package sandbox

import (
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
	ended    time.Time // stopped or expired; zero while it lives
	sessions []*session
}

func newResource(id string, spec resourceSpec, now time.Time) *resource {
	return &resource{id: id, spec: spec, created: now, updated: now, active: now.Add(spec.Provision)}
}

// status: half of the time to READY is queueing, half is loading the model.
func (r *resource) status(now time.Time) wire.ResourceStatus {
	switch {
	case !r.ended.IsZero() && r.busy():
		return wire.ResourceStopping
	case !r.ended.IsZero():
		return wire.ResourceStopped
	case now.Before(r.created.Add(r.spec.Provision / 2)):
		return wire.ResourcePending
	case now.Before(r.created.Add(r.spec.Provision)):
		return wire.ResourceCreating
	}
	return wire.ResourceReady
}

// reached is when the status of now began, as far as time alone brought it about.
func (r *resource) reached(now time.Time) time.Time {
	at := r.created
	for _, t := range []time.Time{r.created.Add(r.spec.Provision / 2), r.created.Add(r.spec.Provision)} {
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

// busy: some operation has no result yet.
func (r *resource) busy() bool {
	for _, s := range r.sessions {
		if s.next < len(s.ops) {
			return true
		}
	}
	return false
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
