package together

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"trainer/internal/wire"
	"trainer/runner"
)

// session is a runner.Session.
type session struct {
	c    *Client
	spec runner.SessionSpec
	id   string
	pace *pace

	proven atomic.Bool // that the server takes forward_only in the older shape

	mu    sync.Mutex
	early map[string]*outcome // operations whose POST was answered with their end, until Wait takes them
}

// Open implements runner.Backend.
func (c *Client) Open(ctx context.Context, spec runner.SessionSpec) (runner.Session, error) {
	body, err := sessionBody(spec)
	if err != nil {
		return nil, err
	}
	st, err := c.state(ctx, &call{method: http.MethodPost, path: wire.PathSessions, body: body, stall: thorough}, creating)
	if err != nil {
		return nil, err
	}
	return c.Join(spec, st.ID), nil
}

// sessionBody says everything that the service has a default for.
func sessionBody(spec runner.SessionSpec) ([]byte, error) {
	body := wire.CreateSession{ModelResourcesID: spec.Resource, DisplayName: spec.DisplayName, ResumeFromCheckpointID: spec.From}
	if l := spec.LoRA; l != nil {
		body.LoRAConfig = &wire.LoRARequest{
			Rank: new(l.Rank), Alpha: new(l.Alpha), Dropout: new(l.Dropout), TrainUnembed: new(l.TrainUnembed),
			Seed: new(wire.Integer(spec.LoRASeed)),
		}
	}
	if spec.From != "" {
		body.LoadOptimizer = new(spec.LoadOptimizer)
	}
	b, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("encoding the training session: %w", err)
	}
	return b, nil
}

// Join implements runner.Backend.
func (c *Client) Join(spec runner.SessionSpec, id string) runner.Session {
	return &session{c: c, spec: spec, id: id, pace: newPace(), early: map[string]*outcome{}}
}

// Sessions implements runner.Backend, newest first; where resource is empty, it lists the caller's on every resource.
func (c *Client) Sessions(ctx context.Context, resource string) ([]runner.SessionState, error) {
	query := url.Values{"model_resources_id": {resource}}
	if resource == "" {
		query = url.Values{"created_by": {"me"}}
	}
	list, _, err := all(ctx, c, wire.PathSessions, query, func(s wire.Session) string { return s.ID })
	if err != nil {
		return nil, err
	}
	out := make([]runner.SessionState, len(list))
	for i := range list {
		out[i] = sessionState(&list[i], time.Time{})
	}
	return out, nil
}

func (s *session) ID() string { return s.id }

func (s *session) path() string { return wire.PathSessions + "/" + url.PathEscape(s.id) }

// State implements runner.Session.
func (s *session) State(ctx context.Context) (runner.SessionState, error) {
	return s.c.state(ctx, &call{method: http.MethodGet, path: s.path()}, reading)
}

// state sends k, which answers a session.
func (c *Client) state(ctx context.Context, k *call, p policy) (st runner.SessionState, err error) {
	k.read = func(h http.Header, body io.Reader) error {
		var w wire.Session
		if err := json.NewDecoder(body).Decode(&w); err != nil {
			return err
		}
		if w.ID == "" || w.Status == "" {
			return errors.New("a session without an id or a status")
		}
		st = sessionState(&w, date(h))
		return nil
	}
	err = c.do(ctx, k, p)
	return st, err
}

func sessionState(w *wire.Session, at time.Time) runner.SessionState {
	st := runner.SessionState{
		ID: w.ID, Status: w.Status.Name(), Resource: w.ModelResourcesID, DisplayName: w.DisplayName, Step: int64(w.Step),
		TrainerStep: int64(w.PolicyState.TrainerStep), Target: int64(w.PolicyState.TargetWeightsVersion),
		Applied: int64(w.PolicyState.AppliedWeightsVersion), PendingPublish: w.PolicyState.PendingPublish, ServerTime: at,
	}
	if w.Error != nil {
		st.ErrorCode, st.ErrorMessage = w.Error.Code.Name(), w.Error.Message
	}
	return st
}

// closingMax bounds how long Close waits for a session to give back its slot.
const closingMax = 300 * time.Second

// Close implements runner.Session.
func (s *session) Close(ctx context.Context) error {
	st, err := s.c.state(ctx, &call{method: http.MethodPost, path: s.path() + "/stop"}, stopping)
	var no *runner.Refused
	if errors.As(err, &no) {
		// Nobody says how a session that has stopped answers a stop, so its state decides.
		now, look := s.State(ctx)
		if gone(no) || gone(look) || look == nil && final(now) {
			return nil
		}
		return err
	}
	if err != nil {
		return err
	}
	start, wait := time.Now(), 10*time.Millisecond
	for !final(st) {
		if time.Since(start) > closingMax {
			return fmt.Errorf("session %s: still %s %v after it was asked to stop", s.id, st.Status, closingMax)
		}
		if st, err = s.State(ctx); gone(err) {
			return nil
		} else if err != nil {
			return err
		}
		if final(st) {
			return nil
		}
		if err := sleep(ctx, wait); err != nil {
			return fmt.Errorf("session %s: waiting until it stops: %w", s.id, err)
		}
		wait = min(wait*2, 2*time.Second)
	}
	return nil
}

func final(st runner.SessionState) bool {
	return wire.SessionStatus("TRAINING_SESSION_STATUS_" + st.Status).Final()
}

func gone(err error) bool {
	var no *runner.Refused
	return errors.As(err, &no) && no.Status == http.StatusNotFound
}
