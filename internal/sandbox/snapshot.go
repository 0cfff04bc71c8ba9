package sandbox

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"trainer/internal/sandbox/engine"
)

// A snapshot is due after this many operations, or this much computing: what a restart would have to do again.
const (
	snapshotOps     = 64
	snapshotCompute = 5 * time.Second
)

func (t *trained) due(every int) bool {
	return t.ops-t.saved >= every || t.compute >= snapshotCompute
}

// snapshotHead is the first line of a snapshot; the model follows.
type snapshotHead struct {
	Ops  int    `json:"ops"`  // that the model has seen
	Last string `json:"last"` // the id of the last of them: the snapshot belongs to this log
	// Tokens are those of the gathered gradient.
	Tokens int64 `json:"tokens,omitempty"`
	Passes int64 `json:"passes,omitempty"`
	// Served is how many bytes of the weights that are served come before the model; 0: none are. Version is theirs.
	Served  int   `json:"served,omitempty"`
	Version int64 `json:"version,omitempty"`
}

func snapshotFile(session string) string { return "sessions/" + session + ".snapshot" }

var wholeModel = engine.Parts{Weights: true, Optimizer: true, Gradient: true}

// snapshot writes the session's model. The log is made durable first, so that no snapshot is ahead of it. The session's
// training lock is held.
func (s *Server) snapshot(sess *session) error {
	t := sess.trained
	if s.options.Dir == "" || t.ops == t.saved {
		return nil
	}
	s.mu.Lock()
	mark, head, inFlight := s.written, snapshotHead{Ops: t.ops, Last: sess.ops[t.ops-1].id, Tokens: t.tokens, Passes: t.passes}, t.ops > sess.next
	s.mu.Unlock()
	if inFlight {
		return nil // a sample that a restart must begin again may be of weights that are not here any more
	}
	var served bytes.Buffer
	if t.served != nil {
		if err := t.served.weights.Save(&served); err != nil {
			return err
		}
		head.Served, head.Version = served.Len(), t.served.version
	}
	if err := s.store.sync(mark); err != nil {
		return err
	}
	line, err := json.Marshal(head)
	if err != nil {
		return err
	}
	err = s.store.put(snapshotFile(sess.id), func(w io.Writer) error {
		b := bufio.NewWriterSize(w, 1<<16)
		_, _ = b.Write(append(line, '\n'))
		_, _ = b.Write(served.Bytes())
		if err := t.model.Save(b, wholeModel); err != nil {
			return err
		}
		return b.Flush()
	})
	if err == nil {
		t.saved, t.compute = t.ops, 0
	}
	return err
}

func (s *Server) snapshotAll() error {
	s.mu.Lock()
	sessions, idle := s.state.sessions.order, s.broken != nil || s.full != nil
	s.mu.Unlock()
	if idle {
		return nil
	}
	var errs []error
	for _, sess := range sessions {
		sess.training.Lock()
		if sess.trained != nil {
			errs = append(errs, s.snapshot(sess))
		}
		sess.training.Unlock()
	}
	return errors.Join(errs...)
}

// restore is the model of the snapshot, if it has one that fits done, the operations that have a result; else the model
// before the first of them.
func (s *Server) restore(sess *session, done []*operation) (*trained, error) {
	model, err := s.startModel(sess)
	if err != nil {
		return nil, err
	}
	t := sess.begun(model)
	err = s.loadSnapshot(sess, done, t)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return t, nil
	}
	s.options.Log("sandbox: the snapshot of training session %s is not used: %v", sess.id, err)
	// What was loaded in part is not to be trusted.
	if model, err = s.startModel(sess); err != nil {
		return nil, err
	}
	return sess.begun(model), nil
}

// begun is a session before its first operation. Where something generates, it serves what the session starts from.
func (s *session) begun(model *engine.Model) *trained {
	t := &trained{model: model, origin: model.Steps()}
	if s.resource.spec.Generators > 0 {
		t.served = &serving{weights: model.Publish()}
	}
	return t
}

// loadSnapshot brings t, which is before its first operation, to where the snapshot is.
func (s *Server) loadSnapshot(sess *session, done []*operation, t *trained) (err error) {
	f, err := s.store.open(snapshotFile(sess.id))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	b := bufio.NewReaderSize(f, 1<<16)
	line, err := b.ReadSlice('\n')
	if err != nil {
		return fmt.Errorf("reading its head: %w", err)
	}
	var head snapshotHead
	if err := json.Unmarshal(line, &head); err != nil {
		return fmt.Errorf("reading its head: %w", err)
	}
	if head.Ops < 1 || head.Ops > len(done) || done[head.Ops-1].id != head.Last {
		return errors.New("it is of another history than the log's")
	}
	if (head.Served > 0) != (t.served != nil) {
		return errors.New("it was written without the weights that are served")
	}
	if t.served != nil {
		m := engine.NewModel(t.model.Base(), sess.spec.LoRA.engine())
		if err := m.Load(io.LimitReader(b, int64(head.Served)), engine.Parts{Weights: true}); err != nil {
			return err
		}
		m.SetSteps(t.origin + head.Version)
		t.served = &serving{weights: m.Publish(), version: head.Version}
	}
	if err := t.model.Load(b, wholeModel); err != nil {
		return err
	}
	t.ops, t.saved, t.tokens, t.passes = head.Ops, head.Ops, head.Tokens, head.Passes
	return nil
}

// WeightsHash is the SHA-256 of a session's trainable weights after the operations that have finished. It is for tests
// that compare two histories bit for bit.
func (s *Server) WeightsHash(session string) ([32]byte, error) {
	s.mu.Lock()
	sess, err := s.session(session)
	s.mu.Unlock()
	if err != nil {
		return [32]byte{}, err
	}
	sess.training.Lock()
	defer sess.training.Unlock()
	s.mu.Lock()
	n := sess.passed()
	s.mu.Unlock()
	if err := s.catchUp(sess, n); err != nil {
		return [32]byte{}, err
	}
	return sess.trained.model.Hash(), nil
}
