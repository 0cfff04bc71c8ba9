package sandbox

import (
	"encoding/json"
	"fmt"
	"time"

	"trainer/internal/sandbox/fault"
	"trainer/internal/wire"
)

// state is what the log says. Everything in it changes through apply and nowhere else, while serving as in a replay, so
// the two cannot differ. The server's lock guards it.
type state struct {
	secret      []byte
	last        time.Time     // of the last record
	closed      bool          // the last record says that the server ended in order
	ahead       time.Duration // how far the last life's time may have run ahead of the log; 0: a tick
	resources   table[*resource]
	sessions    table[*session]
	checkpoints table[*checkpoint]
	jobs        table[*job]
	operations  map[string]*operation
	keys        map[string]*operation
	payloads    map[string]*payload
}

// table keeps things by id and in the order of their creation.
type table[T any] struct {
	byID  map[string]T
	order []T
}

func (t *table[T]) add(id string, v T) {
	if t.byID == nil {
		t.byID = map[string]T{}
	}
	t.byID[id] = v
	t.order = append(t.order, v)
}

func newState() *state {
	return &state{operations: map[string]*operation{}, keys: map[string]*operation{}, payloads: map[string]*payload{}}
}

type payload struct {
	id      string
	session string
	sha256  string // empty: not uploaded
	used    bool   // an accepted operation refers to it: its bytes stay
	writing bool   // an upload is under way; the log knows nothing of it
}

func payloadFile(id string) string { return "payloads/" + id + ".json" }

// replay applies a record as it was read from the log.
func (s *state) replay(head []byte, body span) error {
	var r record
	if err := json.Unmarshal(head, &r); err != nil {
		return fmt.Errorf("is not a record: %w", err)
	}
	return s.apply(&r, body)
}

// apply is a pure function of the state and the record. An error means that the log is not one of ours: a record that
// refers to what does not exist.
func (s *state) apply(r *record, body span) error {
	s.last, s.closed = r.T, r.Kind == kindClosed
	switch r.Kind {
	case kindServer:
		if r.Server == nil {
			return fmt.Errorf("a server record says nothing")
		}
		if r.Server.Format > logFormat {
			return fmt.Errorf("format %d is newer than this program knows (%d)", r.Server.Format, logFormat)
		}
		s.secret = r.Server.Secret
		return nil
	case kindTick:
		if r.Ahead > 0 {
			s.ahead = r.Ahead
		}
		return nil
	case kindClosed:
		return nil
	case kindResource, kindExtend:
		return s.applyResource(r)
	case kindExpire, kindBreak:
		return s.applyEnd(r)
	case kindStop:
		return s.applyStop(r)
	case kindSession, kindChange, kindFail:
		return s.applySession(r)
	case kindOp, kindResult:
		return s.applyOperation(r, body)
	case kindPayload, kindUploaded:
		return s.applyPayload(r)
	case kindJob, kindCancel:
		return s.applyJob(r)
	}
	return fmt.Errorf("a record of kind %q is not known to this program", r.Kind)
}

func (s *state) applyResource(r *record) error {
	if r.Kind == kindResource {
		if r.Resource == nil {
			return fmt.Errorf("resource %s says nothing", r.ID)
		}
		s.resources.add(r.ID, newResource(r.ID, *r.Resource, r.T))
		return nil
	}
	res, ok := s.resources.byID[r.ID]
	if !ok {
		return fmt.Errorf("resource %s does not exist", r.ID)
	}
	res.until, res.updated = later(res.until, r.Until), r.T
	return nil
}

func (s *state) applyStop(r *record) error {
	if err := s.cancel(r, "the session was stopped before the operation began"); err != nil {
		return err
	}
	if res, ok := s.resources.byID[r.ID]; ok {
		res.end(r.T)
		for _, sess := range res.sessions {
			sess.end(r.T, false)
		}
		return nil
	}
	sess, ok := s.sessions.byID[r.ID]
	if !ok {
		return fmt.Errorf("%s does not exist", r.ID)
	}
	sess.end(r.T, false)
	return nil
}

func (s *state) applySession(r *record) error {
	if r.Kind == kindSession {
		return s.addSession(r)
	}
	sess, ok := s.sessions.byID[r.ID]
	if !ok {
		return fmt.Errorf("session %s does not exist", r.ID)
	}
	if r.Kind == kindFail {
		sess.fail(r.T, wire.SessionFailed, r.Message)
		return s.cancel(r, "the session failed: "+r.Message)
	}
	if r.Change == nil {
		return fmt.Errorf("the change of session %s says nothing", r.ID)
	}
	sess.spec.Names, sess.updated = *r.Change, r.T
	return nil
}

func (s *state) addSession(r *record) error {
	if r.Session == nil {
		return fmt.Errorf("session %s says nothing", r.ID)
	}
	res, ok := s.resources.byID[r.Session.Resource]
	if !ok {
		return fmt.Errorf("resource %s does not exist", r.Session.Resource)
	}
	sess := newSession(r.ID, *r.Session, res, r.T)
	if from := r.Session.From; from != "" {
		c, ok := s.checkpoints.byID[from]
		if !ok {
			return fmt.Errorf("checkpoint %s does not exist", from)
		}
		sess.from = c
		if r.Session.LoadOptimizer && !r.Session.FromZero {
			sess.start = c.step
		}
	}
	sess.step = sess.start
	if d := r.Session.Expire; d != nil {
		sess.doom(r.T.Add(*d))
	}
	res.sessions = append(res.sessions, sess)
	res.touch(r.T)
	s.sessions.add(r.ID, sess)
	return nil
}

func (s *state) applyOperation(r *record, body span) error {
	if r.Kind == kindOp {
		if r.Op == nil {
			return fmt.Errorf("operation %s says nothing", r.ID)
		}
		sess, ok := s.sessions.byID[r.Op.Session]
		if !ok {
			return fmt.Errorf("session %s does not exist", r.Op.Session)
		}
		op := &operation{id: r.ID, spec: *r.Op, session: sess, accepted: r.T, body: body}
		for _, id := range op.spec.Takes {
			sample, ok := s.operations[id]
			if !ok {
				return fmt.Errorf("operation %s does not exist", id)
			}
			sample.over = op
		}
		sess.enqueue(op)
		if f := op.spec.Fault; f != nil && f.Expire != nil {
			sess.doom(r.T.Add(*f.Expire))
		}
		sess.resource.touch(r.T)
		s.operations[op.id], s.keys[op.spec.Key] = op, op
		if p, ok := s.payloads[r.Op.PayloadID]; ok {
			p.used = true
		}
		return nil
	}
	op, ok := s.operations[r.ID]
	if !ok || r.Result == nil || op.result != nil {
		return fmt.Errorf("a result for operation %s, which awaits none", r.ID)
	}
	at := r.T
	if !r.Result.Ended.IsZero() {
		at = r.Result.Ended
	}
	op.finish(r.Result, body, at)
	switch {
	case op.result.Code == "":
		s.effect(op, at)
	case op.result.Left == fault.LeavesStep:
		sess := op.session
		sess.step++
		sess.trainerStep++
	}
	return nil
}

// effect is what a completed operation changes outside of the weights.
func (s *state) effect(op *operation, now time.Time) {
	sess := op.session
	switch op.spec.Name {
	case wire.KindOptimStep:
		sess.step++
		sess.trainerStep++
	case wire.KindWeightsSync:
		sess.publish(now, op.publishLag())
	case wire.KindTrainingCheckpoint, wire.KindInferenceCheckpoint:
		c := &checkpoint{
			id: op.spec.Checkpoint, session: sess, inference: op.spec.Name == wire.KindInferenceCheckpoint, step: sess.step,
			created: op.accepted, artifact: op.spec.Artifact, revision: op.spec.Revision,
		}
		sess.checkpoints = append(sess.checkpoints, c)
		s.checkpoints.add(c.id, c)
	}
	if op.result.Offloaded {
		s.payloads[op.spec.Offload] = &payload{id: op.spec.Offload, session: sess.id, sha256: "stored", used: true}
	}
}

func (s *state) applyPayload(r *record) error {
	if r.Payload == nil {
		return fmt.Errorf("payload %s says nothing", r.ID)
	}
	if r.Kind == kindPayload {
		s.payloads[r.ID] = &payload{id: r.ID, session: r.Payload.Session}
		return nil
	}
	p, ok := s.payloads[r.ID]
	if !ok {
		return fmt.Errorf("payload %s does not exist", r.ID)
	}
	p.sha256 = r.Payload.SHA256
	return nil
}

func (s *state) applyJob(r *record) error {
	if r.Kind == kindCancel {
		j, ok := s.jobs.byID[r.ID]
		if !ok {
			return fmt.Errorf("job %s does not exist", r.ID)
		}
		j.cancelled = r.T
		return nil
	}
	if r.Job == nil {
		return fmt.Errorf("job %s says nothing", r.ID)
	}
	c, ok := s.checkpoints.byID[r.Job.Checkpoint]
	if !ok {
		return fmt.Errorf("checkpoint %s does not exist", r.Job.Checkpoint)
	}
	s.jobs.add(r.ID, &job{id: r.ID, spec: *r.Job, checkpoint: c, created: r.T})
	return nil
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
