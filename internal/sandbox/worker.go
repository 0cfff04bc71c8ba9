package sandbox

import (
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"trainer/internal/wire"
)

// wake gives a session with operations to run a goroutine, with the lock held. It ends when there are none left, or when
// the server closes.
func (s *Server) wake(sess *session) {
	if sess.working || s.closing || sess.passed() == len(sess.ops) {
		return
	}
	sess.working = true
	s.workers.Add(1)
	go s.run(sess)
}

// run runs a session's operations in the order of acceptance: one at a time, but for samples, which get their weights in
// their turn and then run beside what follows.
func (s *Server) run(sess *session) {
	defer s.workers.Done()
	sess.training.Lock()
	defer sess.training.Unlock()
	for {
		op, held := s.begin(sess)
		switch {
		case held != nil:
			s.wait(held.turn, held.until)
		case op == nil:
			return
		case op.result != nil:
			s.takeAgain(sess, op)
		case op.spec.Name == wire.KindSample:
			s.startSample(sess, op)
		default:
			s.runOne(sess, op)
		}
	}
}

// hold is what a session waits for before its next operation may begin.
type hold struct {
	turn  <-chan struct{}
	until time.Time
}

// begin takes the next operation that has no result, or says what to wait for first; with neither the goroutine ends.
func (s *Server) begin(sess *session) (*operation, *hold) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		at := sess.passed()
		if s.closing || s.broken != nil || s.full != nil || at == len(sess.ops) {
			sess.working = false
			if sess.over() {
				sess.trained = nil
			}
			return nil, nil
		}
		op, now := sess.ops[at], s.clock.now()
		if op.waits() {
			if until := op.accepted.Add(op.spec.Fault.Hold); now.Before(until) {
				return nil, &hold{s.turn, until}
			}
		}
		sess.taken = at + 1
		if op.result != nil {
			if op.result.Code == "" && len(s.state.untaken(op)) > 0 {
				return op, nil // in an earlier life; the samples that it takes have begun in this one
			}
			continue // it ended before its turn; catchUp sees to what it did
		}
		op.begun, op.started = true, sess.starts(at)
		return op, nil
	}
}

// over: the session will never train again.
func (s *session) over() bool { return !s.ended.IsZero() || s.failure != "" }

// forget frees the weights of a session that is over, with the lock held, and lets go of its samples. One that still works
// does the first itself.
func (s *Server) forget(sess *session) {
	s.release(sess)
	if sess.over() && !sess.working && sess.training.TryLock() {
		sess.trained = nil
		sess.training.Unlock()
	}
}

// runOne runs an operation, logs its result, and writes a snapshot when one is due. It holds the session's training lock.
func (s *Server) runOne(sess *session, op *operation) {
	start := time.Now()
	result, output, d, err := s.execute(sess, op)
	if noRoom(err) {
		s.mu.Lock()
		_ = s.fill(err)
		op.begun, sess.trained = false, nil
		s.mu.Unlock()
		return
	}
	if err != nil {
		result, output = &resultSpec{Code: wire.CodeInternalError, Message: err.Error()}, nil
	}
	if d > 0 {
		if result.Ended = op.started.Add(d); !s.reach(result.Ended) {
			sess.trained = nil // it has run ahead of the log; the next life runs it again
			return
		}
	}
	if !s.conclude(sess, op, result, output, err) {
		sess.trained = nil // which has run ahead of the log
	}
	if sess.trained == nil {
		return
	}
	t := sess.trained
	t.ops++
	s.takeOver(sess, op)
	t.compute += time.Since(start)
	if t.due(s.every) || op.spec.Name == wire.KindTrainingCheckpoint {
		if err := s.snapshot(sess); err != nil {
			s.options.Log("sandbox: %v; the session goes on, a restart will take longer", err)
		}
	}
}

// conclude logs the result. A fault that leaves the weights unknown fails the session too, and its model is given up. It
// is false when the log can't be written any more.
func (s *Server) conclude(sess *session, op *operation, result *resultSpec, output []byte, err error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.release(sess)
	if op.result != nil {
		return true
	}
	if s.commit(&record{Kind: kindResult, ID: op.id, Result: result}, output) != nil {
		op.begun = false // the next life runs it again, unless it is cancelled before
		return false
	}
	if errors.Is(err, errSession) {
		s.options.Log("sandbox: training session %s failed: %v", sess.id, err)
		sess.trained = nil
		fail := &record{Kind: kindFail, ID: sess.id, Message: err.Error(), Cancelled: sess.waiting()}
		return s.commit(fail, nil) == nil
	}
	return true
}

// errSession marks a fault after which a session can't go on.
var errSession = errors.New("the session can't go on")

// execute brings the session's model up to date and runs op on it. An error is a fault of this server; a fault of the
// operation itself is in the result. A panic of the engine becomes an error that ends the session. d is how long the
// operation runs in virtual time, as takes has it.
func (s *Server) execute(sess *session, op *operation) (result *resultSpec, output []byte, d time.Duration, err error) {
	defer func() {
		if p := recover(); p != nil {
			s.options.Log("sandbox: panic in %s: %v\n%s", op.spec.Name, p, debug.Stack())
			err = fmt.Errorf("%w: panic in %s: %v", errSession, op.spec.Name, p)
		}
	}()
	if err := s.catchUp(sess, sess.taken-1); err != nil {
		return nil, nil, 0, err
	}
	w, err := s.workOf(sess, op)
	if err != nil {
		return nil, nil, 0, err
	}
	if op.spec.Name == wire.KindWeightsSync && !w.deferred {
		s.landed(sess, op)
	}
	d = s.takes(op, w)
	if f := op.spec.Fault; f != nil && f.Code != "" {
		result := &resultSpec{Code: f.Code, Message: askedFault}
		result.Left, err = s.leave(sess, op, w, f.Leaves)
		return result, nil, d, err
	}
	result, output, err = s.perform(sess, op, w, true)
	if err == nil && result.Code != "" {
		result.Left, err = s.leave(sess, op, w, s.choice(FailedLeaves))
	}
	return result, output, d, err
}

// workOf is the operation's work; after a restart it is read from the log again.
func (s *Server) workOf(sess *session, op *operation) (*work, error) {
	s.mu.Lock()
	w, at := op.work, op.body
	s.mu.Unlock()
	if w != nil {
		return w, nil
	}
	m, err := findModel(sess.resource.spec.BaseModel)
	if err != nil {
		return nil, err
	}
	body, err := s.store.read(at)
	if err != nil {
		return nil, err
	}
	spec := op.spec
	w, err = s.readWork(&spec, m, body)
	if err != nil {
		return nil, fmt.Errorf("%w: operation %s of the log: %w", errSession, op.id, err)
	}
	return w, nil
}
