package sandbox

import (
	"slices"
	"time"

	"trainer/internal/wire"
)

// A sample is in flight from its acceptance until its result is in the log. A PIPELINE weights-sync that is accepted
// meanwhile takes it over: its record in the log names the samples that it takes, and from pipelineTokens on they are
// sampled under its weights. So that no clock and no core decides what a sample answers, the result of one that has no
// time of its own (OpTime) is logged when it is first asked for, not when it is computed: what a client has seen nothing of
// can still be taken over, whatever the speed of the machine. Only order ends that earlier: another weights-sync behind the
// sample, flightOps later operations, or the end of the session. One that has its own time ends when that is over.
const (
	// pipelineTokens is how many tokens of a completion that is taken over are of the older weights.
	pipelineTokens = 8
	// flightOps bounds how long a sample that nobody asks for holds up the session's snapshots.
	flightOps = 64
)

// outcome is what came of a sample, before it is in the log.
type outcome struct {
	result *resultSpec
	output []byte
	spans  bool      // a completion is longer than pipelineTokens
	ends   time.Time // virtual; zero where it has no time of its own
}

// inFlight lists the samples that a weights-sync at index at of the operations would take over.
func (s *session) inFlight(at int) (out []*operation) {
	if s.over() {
		return nil
	}
	for i := at - 1; i >= max(0, at-flightOps); i-- {
		switch op := s.ops[i]; {
		case op.spec.Name == wire.KindWeightsSync:
			return out
		case op.spec.Name == wire.KindSample && op.result == nil:
			out = append(out, op)
		}
	}
	return out
}

// takes are the ids of the samples that a PIPELINE weights-sync takes over where it is accepted now.
func (s *session) takes(spec *opSpec) (ids []string) {
	at := len(s.ops)
	if f := spec.Fault; f != nil && f.Before != "" {
		at = slices.IndexFunc(s.ops, func(o *operation) bool { return o.id == f.Before })
	}
	for _, op := range s.inFlight(at) {
		ids = append(ids, op.id)
	}
	return ids
}

// awaits: the sample may still go over to other weights than those that it began under, or is about to. What it has been
// taken over by and what failed settles that.
func (o *operation) awaits() bool {
	if o.over != nil {
		return o.then == nil && (o.over.result == nil || o.over.result.Code == "")
	}
	return slices.Contains(o.session.inFlight(len(o.session.ops)), o)
}

// fly runs a sample from its place on, and again when it is taken over. It holds no lock; of several at a time a few run.
func (s *Server) fly(sess *session, op *operation, then *serving) {
	for {
		got := s.draw(sess, op, then)
		next := s.land(op, got, then)
		if next == nil {
			return
		}
		then = next
	}
}

// land logs what came of a sample, keeps it while the sample awaits what may still change it, or returns the weights under
// which it goes on. then are those that it went on under already.
func (s *Server) land(op *operation, got outcome, then *serving) *serving {
	for {
		s.mu.Lock()
		turn, now, own := s.turn, s.clock.now(), !got.ends.IsZero()
		open := then == nil && got.spans
		switch {
		case op.result != nil || s.broken != nil:
		case s.full != nil:
			op.begun = false // as in conclude
		case open && op.then != nil && (!own || op.over.ended.Before(got.ends)):
			next := op.then
			s.mu.Unlock()
			return next
		case own && now.Before(got.ends):
			closing := s.closing
			s.mu.Unlock()
			if closing {
				return nil // the next life samples again, and gets the same
			}
			s.wait(turn, got.ends)
			continue
		case open && !own && op.awaits():
			got.result.Ended = now
			op.ready = &got
		default:
			_ = s.conclusion(op, got) // a log that can't be written is told of there
		}
		s.mu.Unlock()
		return nil
	}
}

// conclusion logs what came of a sample, with the lock held.
func (s *Server) conclusion(op *operation, got outcome) error {
	if !got.ends.IsZero() {
		got.result.Ended = got.ends
	}
	op.ready, op.from, op.then = nil, nil, nil
	if op.result != nil {
		return nil
	}
	err := s.commit(&record{Kind: kindResult, ID: op.id, Result: got.result}, got.output)
	op.mark, op.begun = s.written, err == nil
	return err
}

// tell makes what is about to be told of a sample final, with the lock held. One that has been taken over stays open.
func (s *Server) tell(op *operation) error {
	if op.ready == nil || op.over != nil && op.awaits() {
		return nil
	}
	return s.conclusion(op, *op.ready)
}

// release logs the samples that are done and await nothing any more, with the lock held.
func (s *Server) release(sess *session) {
	for _, op := range sess.ops[sess.next:sess.passed()] {
		if op.ready != nil && op.then == nil && !op.awaits() {
			_ = s.conclusion(op, *op.ready) // as in land
		}
	}
}

// takeOver gives the weights that a PIPELINE weights-sync has published to the samples that it takes. The session's
// training lock is held.
func (s *Server) takeOver(sess *session, sync *operation) {
	if len(sync.spec.Takes) == 0 || sess.trained == nil || sess.trained.served == nil {
		return
	}
	next := *sess.trained.served
	s.mu.Lock()
	defer s.mu.Unlock()
	if sync.result == nil || sync.result.Code != "" {
		return
	}
	for _, op := range s.state.untaken(sync) {
		if op.from.version == next.version {
			op.over = nil // nothing was trained between the two
			continue
		}
		op.then = &next
		if op.ready != nil {
			op.ready = nil
			sess.flights.Add(1)
			s.workers.Add(1)
			go s.flight(sess, op, &next)
		}
	}
	s.release(sess)
	s.turnOver()
}

// untaken are the samples that sync takes and that have neither its weights nor a result.
func (s *state) untaken(sync *operation) (out []*operation) {
	for _, id := range sync.spec.Takes {
		if op := s.operations[id]; op.over == sync && op.result == nil && op.then == nil {
			out = append(out, op)
		}
	}
	return out
}

// takeAgain is takeOver in a later life than the one in which sync was carried out.
func (s *Server) takeAgain(sess *session, sync *operation) {
	err := s.catchUp(sess, sess.taken)
	if err == nil {
		s.takeOver(sess, sync)
		return
	}
	s.mu.Lock()
	lost := s.state.untaken(sync)
	s.mu.Unlock()
	for _, op := range lost {
		s.conclude(sess, op, &resultSpec{Code: wire.CodeInternalError, Message: err.Error()}, nil, err)
	}
}
