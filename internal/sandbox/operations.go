package sandbox

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"path"
	"strings"

	"github.com/google/uuid"

	"trainer/internal/wire"
)

const (
	maxInline = 64 << 20 // of an operation's body; a larger one is uploaded
	maxKey    = 255
	// maxWaiting bounds what a session's queue holds in memory.
	maxWaiting = 256
)

// submit accepts an operation, or answers the one that was accepted under the same key before.
func (s *Server) submit(r *request) (any, error) {
	spec := opSpec{Session: r.ids[0], Name: wire.Kind(path.Base(r.URL.Path)), Key: r.Header.Get(wire.KeyHeader)}
	if spec.Key == "" || len(spec.Key) > maxKey {
		return nil, invalid(wire.KeyHeader, "%s: the request needs a key of 1 to %d bytes", wire.KeyHeader, maxKey)
	}
	body, err := readBody(r.Request, maxInline)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(body)
	spec.SHA256 = hex.EncodeToString(sum[:])
	op, err := s.known(&spec)
	if err == nil && op == nil {
		s.afflictOp(r.event, &spec)
		op, err = s.accept(&spec, body)
	}
	if err == nil {
		err = s.flush() // the operation may be done by then
	}
	if err != nil {
		return nil, err
	}
	return s.showOperation(op)
}

// known finds the operation under spec's key; nil when there is none.
func (s *Server) known(spec *opSpec) (*operation, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sess, err := s.session(spec.Session)
	if err != nil {
		return nil, err
	}
	if op, err := s.under(spec); op != nil || err != nil {
		return op, err
	}
	return nil, s.running(sess)
}

// accept checks the body, draws what the operation will need, and puts it into the session's queue.
func (s *Server) accept(spec *opSpec, body []byte) (*operation, error) {
	s.mu.Lock()
	m, err := findModel(s.state.sessions.byID[spec.Session].resource.spec.BaseModel)
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	w, err := s.readWork(spec, m, body)
	if err == nil {
		err = s.checkExperts(w, m.name)
	}
	if err != nil {
		return nil, err
	}
	switch spec.Name {
	case wire.KindTrainingCheckpoint, wire.KindInferenceCheckpoint:
		spec.Checkpoint = uuid.NewString()
		spec.Artifact, spec.Revision = registryID("ml_"), registryID("rv_")
	case wire.KindForwardBackward:
		if w.outputs {
			spec.Offload = uuid.NewString()
		}
	case wire.KindSample:
		spec.Offload = uuid.NewString()
		spec.Tempered = s.choice(SampledLogprobs) == afterTemperature
		spec.CutStop = s.choice(StopToken) == stopDropped
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if op, err := s.under(spec); op != nil || err != nil {
		return op, err // accepted while the body was read
	}
	sess := s.state.sessions.byID[spec.Session]
	if err := s.running(sess); err != nil {
		return nil, err
	}
	if len(sess.ops)-sess.next >= maxWaiting {
		return nil, &problem{http.StatusTooManyRequests, "rate_limit_error", "too_many_operations", "",
			"training session " + sess.id + " has " + count(maxWaiting, "operation") + " waiting, which is its limit"}
	}
	if err := s.state.unchanged(w); err != nil {
		return nil, err
	}
	if held := sess.held(); held != nil {
		spec.overtake(held)
	}
	if w.pipelined {
		spec.Takes = sess.takes(spec)
	}
	id := uuid.NewString()
	if err := s.commit(&record{Kind: kindOp, ID: id, Op: spec}, body); err != nil {
		return nil, err
	}
	op := s.state.operations[id]
	op.work = w
	s.release(sess)
	if err := s.settleResource(sess.resource, s.clock.now()); err != nil {
		return nil, err
	}
	s.wake(sess)
	return op, nil
}

// unchanged: the payload is still the one that w was read from.
func (s *state) unchanged(w *work) error {
	if w.payloadID == "" {
		return nil
	}
	if p := s.payloads[w.payloadID]; p == nil || p.writing || p.sha256 != w.payloadSHA256 {
		return wrongState("payload_changed", "payload %s was uploaded again while it was read", w.payloadID)
	}
	return nil
}

// registryID has the form of the registry's ids.
func registryID(prefix string) string {
	return prefix + strings.ReplaceAll(uuid.NewString(), "-", "")[:20]
}

func (s *Server) getOperation(r *request) (any, error) {
	name := wire.Kind(path.Base(path.Dir(r.URL.Path)))
	s.mu.Lock()
	_, err := s.session(r.ids[0])
	op, ok := s.state.operations[r.ids[1]]
	if ok = ok && op.spec.Session == r.ids[0] && op.spec.Name == name; ok && err == nil {
		err = s.tell(op)
		ok = !op.forgotten(s.clock.now())
	}
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, notFound("operation_id", string(name)+" operation", r.ids[1])
	}
	return s.showOperation(op)
}

// showOperation is the operation as it is now; the lock is not held. Who knows its id was told so when it was durable, and
// how it ends is found again by running it again; only that it was cancelled, and that a sample was told of before something
// took it over, is in the log alone.
func (s *Server) showOperation(op *operation) (any, error) {
	s.mu.Lock()
	begun, result, output, mark, full := op.begun, op.result, op.output, op.mark, s.full
	s.mu.Unlock()
	if result == nil && full != nil {
		return nil, unstored(full) // it does not end before the next life
	}
	if mark > 0 {
		if err := s.store.sync(mark); err != nil {
			return nil, err
		}
	}
	out := wire.Operation[json.RawMessage]{ID: op.id, Status: wire.OperationPending}
	switch {
	case result != nil && result.Code == "":
		text, err := s.store.read(output)
		if err != nil {
			return nil, err
		}
		b := make([]byte, 0, len(text)+160)
		b = append(b, `{"id":"`+op.id+`","status":"`+string(wire.OperationCompleted)+`","output":`...)
		return settled{raw(append(append(b, text...), '}'))}, nil
	case result != nil:
		out.Status, out.Error = wire.OperationFailed, &wire.OperationError{Code: result.Code, Message: result.Message}
		if result.Code == wire.CodeSessionNotActive {
			return out, nil
		}
	case begun:
		out.Status = wire.OperationRunning
	}
	return settled{out}, nil
}
