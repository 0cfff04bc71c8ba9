// Package sandbox serves the post-training API from this machine, with a small real transformer that really trains.
//
// A Server is an http.Handler and an http.RoundTripper over the same state, so a client cannot tell it from the service:
// there is no way in past the wire. Nothing runs while nobody asks: lifecycles are functions of the clock, expiry is
// decided when a request comes, and a session has a goroutine only while it has operations to run.
//
// With a folder the state is durable. One append-only log, each record chained to the one before by a checksum, holds
// every accepted change with its body and is on disk before the change is acknowledged; the state is what the log says,
// replayed in order, and weights are a snapshot plus the operations after it, run again. Training is a pure function of
// the log: no draw depends on a key, an id or the time, so weights after a replay are bit-equal, and each replayed
// operation is compared with the output that it had. Time is virtual: it stands still while the server is down.
//
// A session's operations run one after the other, in the order of acceptance. Samples alone run beside them: one gets its
// weights, those of the last weights-sync before it, in its turn, and what it answers is a function of these, its body, and
// the weights of the PIPELINE weights-sync that took it over while it was in flight, if one did (flight.go).
//
// It misbehaves on request: package fault decides, the door (door.go) does what befalls a request on its way, and what
// befalls a resource, a session, an operation or a job is decided before it is logged (afflict.go), so that a replay
// repeats it.
package sandbox
