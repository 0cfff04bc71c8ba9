package sandbox

import (
	"slices"
	"sync"
	"time"

	"trainer/internal/wire"
)

// publishLag is how long the deferred ways of weights-sync take until the new weights are live.
const publishLag = 100 * time.Millisecond

// session is one training session. All but trained is guarded by the server's lock.
type session struct {
	id       string
	spec     sessionSpec
	resource *resource
	from     *checkpoint // nil: the base model
	created  time.Time
	updated  time.Time
	ended    time.Time // stopped or expired; zero while it lives
	expired  bool
	failure  string // why it is in ERROR
	code     wire.FaultCode
	failed   time.Time
	doomed   time.Time // when it will have been made to expire; zero: never

	// Versions count optimiser steps since this session's start; step is the durable counter and goes on after a resume.
	step, trainerStep, target int64
	start                     int64     // what step was at first
	applied                   int64     // before live
	live                      time.Time // when target is what the generators serve

	checkpoints []*checkpoint
	ops         []*operation // in the order of acceptance, which is the order of execution
	next        int          // of ops: the first without a result
	working     bool         // a goroutine runs ops

	taken    int            // of ops: those before it have had their turn in this life
	flights  sync.WaitGroup // samples that run
	training sync.Mutex     // guards trained; taken before the server's lock, never with it held
	trained  *trained       // nil until the first operation
}

func newSession(id string, spec sessionSpec, res *resource, now time.Time) *session {
	return &session{id: id, spec: spec, resource: res, created: now, updated: now}
}

func (s *session) status(now time.Time) wire.SessionStatus {
	switch {
	case s.failure != "":
		return wire.SessionError
	case s.expired:
		return wire.SessionExpired
	case !s.ended.IsZero() && s.next < len(s.ops):
		return wire.SessionStopping
	case !s.ended.IsZero():
		return wire.SessionStopped
	case now.Before(s.created.Add(s.spec.Provision)):
		return wire.SessionCreating
	}
	return wire.SessionRunning
}

// holds: it occupies one of its resource's slots.
func (s *session) holds(now time.Time) bool {
	return !s.status(now).Final()
}

// end stops the session. What had not begun was cancelled before; an operation that has begun runs to its end.
func (s *session) end(now time.Time, expired bool) {
	if s.ended.IsZero() && s.failure == "" {
		s.ended, s.expired, s.updated = now, expired, now
	}
}

func (s *session) fail(now time.Time, code wire.FaultCode, why string) {
	if s.failure == "" {
		s.failure, s.code, s.failed, s.updated = why, code, now, now
	}
}

// passed is how many operations have had their turn: they have a result, or a sample of them is running.
func (s *session) passed() int { return max(s.next, s.taken) }

// starts is when the operation at i begins in virtual time: when it is accepted, and nothing before it runs that it waits
// for. Nothing waits for a sample here.
func (s *session) starts(i int) time.Time {
	for j := i - 1; j >= 0; j-- {
		if before := s.ops[j]; before.spec.Name != wire.KindSample {
			return later(s.ops[i].accepted, before.ended)
		}
	}
	return s.ops[i].accepted
}

// rootSeed is what a session's dropout is drawn from: the seed of the first session of its line.
func (s *session) rootSeed() uint64 {
	for s.from != nil {
		s = s.from.session
	}
	if s.spec.LoRA == nil || s.spec.LoRA.Seed == nil {
		return 0
	}
	return uint64(*s.spec.LoRA.Seed)
}

// busy: some operation is queued or running. A sample that is done and not asked for yet is neither.
func (s *session) busy() bool {
	return slices.ContainsFunc(s.ops[s.next:], func(op *operation) bool { return op.result == nil && op.ready == nil })
}

// waiting lists the operations that have not begun.
func (s *session) waiting() []string {
	var ids []string
	for _, op := range s.ops[s.next:] {
		if op.result == nil && !op.begun {
			ids = append(ids, op.id)
		}
	}
	return ids
}

// publish promises the trainer's weights to the generators, which serve them when lag is over.
func (s *session) publish(now time.Time, lag time.Duration) {
	if !now.Before(s.live) {
		s.applied = s.target
	}
	s.target, s.live = s.trainerStep, now.Add(lag)
	if lag == 0 {
		s.applied = s.target
	}
}

// doom makes the session expire at a time, or earlier where it was to expire earlier.
func (s *session) doom(at time.Time) {
	if s.doomed.IsZero() || at.Before(s.doomed) {
		s.doomed = at
	}
}

// enqueue puts an operation behind those that were accepted before it, but for one that it overtakes.
func (s *session) enqueue(op *operation) {
	at := len(s.ops)
	if op.spec.Fault != nil && op.spec.Fault.Before != "" {
		if i := slices.IndexFunc(s.ops, func(o *operation) bool { return o.id == op.spec.Fault.Before }); i >= s.next {
			at = i
			s.ops[i].overtaken = true
		}
	}
	s.ops = slices.Insert(s.ops, at, op)
}

// held is an operation that waits to be overtaken; nil when there is none.
func (s *session) held() *operation {
	for _, op := range s.ops[s.next:] {
		if op.waits() {
			return op
		}
	}
	return nil
}

// serving is the version that the generators serve, and whether a later one is on its way.
func (s *session) serving(now time.Time) (applied int64, pending bool) {
	if now.Before(s.live) {
		return s.applied, true
	}
	return s.target, false
}

// checkpoint is weights in a file, and for training the optimizer's state too.
type checkpoint struct {
	id        string
	session   *session
	inference bool
	step      int64
	created   time.Time
	artifact  string
	revision  string
}

func (c *checkpoint) file() string { return "checkpoints/" + c.id + ".safetensors" }

// adapter: it is registered as an adapter on the base model's own weights.
func (c *checkpoint) adapter() bool {
	return c.session.spec.LoRA != nil && c.session.resource.spec.BaseWeightsRef == ""
}
