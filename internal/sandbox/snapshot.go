package sandbox

import (
	"bufio"
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
	mark, head := s.written, snapshotHead{Ops: t.ops, Last: sess.ops[t.ops-1].id, Tokens: t.tokens}
	s.mu.Unlock()
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
	sessions, broken := s.state.sessions.order, s.broken
	s.mu.Unlock()
	if broken != nil {
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
	t := &trained{model: model, origin: model.Steps()}
	err = s.loadSnapshot(sess, done, t)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return t, nil
	}
	s.options.Log("sandbox: the snapshot of training session %s is not used: %v", sess.id, err)
	// What was loaded in part is not to be trusted.
	model, err = s.startModel(sess)
	return &trained{model: model, origin: t.origin}, err
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
	if err := t.model.Load(b, wholeModel); err != nil {
		return err
	}
	t.ops, t.saved, t.tokens = head.Ops, head.Ops, head.Tokens
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
	if err := s.catchUp(sess); err != nil {
		return [32]byte{}, err
	}
	return sess.trained.model.Hash(), nil
}
