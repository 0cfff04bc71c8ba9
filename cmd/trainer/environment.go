package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"trainer/internal/rollout"
	"trainer/internal/worker"
	"trainer/recipe"
	"trainer/runner"
)

// Environment implements runner.Outside.
func (o *outside) Environment(e *recipe.Env, key, dir string) (rollout.Env, error) {
	if e.Type == "http" {
		if !o.allowed(e.URL) {
			return nil, runner.ErrNotAllowed
		}
		return &posted{worker.Dial(worker.Address{URL: e.URL, Headers: e.Headers, Getenv: o.getenv, Params: e.Params, Run: o.life + "." + key,
			Timeout: e.Timeout, Retries: e.Retries, Concurrency: e.Concurrency}), o.ctx}, nil
	}
	if !o.exec {
		return nil, runner.ErrNotAllowed
	}
	env, secrets, missing := worker.Environment(o.getenv, e.Env)
	if len(missing) > 0 {
		return nil, fmt.Errorf("needs the environment variable %s, which is not set", strings.Join(missing, ", "))
	}
	p := worker.Start(o.ctx, worker.Command{Args: e.Command, Dir: dir, Env: env, Secrets: secrets, Kind: "env", Params: e.Params, Run: o.life + "." + key,
		Timeout: e.Timeout, StartTimeout: e.StartTimeout, Workers: e.Workers, Retries: e.Retries, Log: o.log})
	o.mu.Lock()
	o.pools = append(o.pools, p)
	o.mu.Unlock()
	return &staged{p, o.ctx}, nil
}

// staged is an environment of programs; an episode stays with the one that has begun it.
type staged struct {
	pool *worker.Pool
	life context.Context // of the programs: who gives an episode up still tells them
}

// Reset implements rollout.Env.
func (s *staged) Reset(ctx context.Context, o rollout.Opening, attempt int) (rollout.Scene, rollout.Episode, error) {
	body, err := json.Marshal(o)
	if err != nil {
		return rollout.Scene{}, nil, err
	}
	reply, e, err := s.pool.Begin(ctx, "reset", body, attempt)
	if err != nil {
		return rollout.Scene{}, nil, unplayed(err)
	}
	ep := &episode{name: o.Episode, ask: e.Ask, tell: func(body []byte) { e.Tell(s.life, "close", body) }}
	return ep.begun(reply)
}

// posted is an environment behind an address.
type posted struct {
	server *worker.Server
	life   context.Context
}

// Reset implements rollout.Env.
func (s *posted) Reset(ctx context.Context, o rollout.Opening, attempt int) (rollout.Scene, rollout.Episode, error) {
	body, err := json.Marshal(o)
	if err != nil {
		return rollout.Scene{}, nil, err
	}
	reply, err := s.server.Ask(ctx, "reset", o.Episode, body)
	if err != nil {
		return rollout.Scene{}, nil, unplayed(err)
	}
	ep := &episode{name: o.Episode, tell: func(body []byte) { s.server.Tell(s.life, "close", body) }}
	ep.ask = func(ctx context.Context, typ string, body []byte) (json.RawMessage, error) {
		return s.server.Ask(ctx, typ, fmt.Sprintf("%s.%d", o.Episode, ep.turn), body)
	}
	return ep.begun(reply)
}

// episode is one that has begun.
type episode struct {
	name string
	turn int
	ask  func(ctx context.Context, typ string, body []byte) (json.RawMessage, error)
	tell func(body []byte)
}

// begun reads the reply to a reset. Where that says that there is no episode, it is closed.
func (e *episode) begun(reply json.RawMessage) (rollout.Scene, rollout.Episode, error) {
	s, err := rollout.SceneOf(reply)
	if err != nil {
		e.Close()
		return s, nil, err
	}
	return s, e, nil
}

// Step implements rollout.Episode.
func (e *episode) Step(ctx context.Context, t rollout.Turn) (rollout.Reply, error) {
	body, err := json.Marshal(t)
	if err != nil {
		return rollout.Reply{}, err
	}
	e.turn = t.Turn
	reply, err := e.ask(ctx, "step", body)
	if err != nil {
		return rollout.Reply{}, unplayed(err)
	}
	return rollout.ReplyOf(reply, t.Last)
}

// Close implements rollout.Episode.
func (e *episode) Close() {
	if body, err := json.Marshal(map[string]string{"episode": e.name}); err == nil {
		e.tell(body)
	}
}

// unplayed makes of a request without a reply an episode without an end; other errors are those of the run.
func unplayed(err error) error {
	var lost *worker.Lost
	var gone *worker.Gone
	switch {
	case errors.As(err, &lost):
		return &rollout.Unplayed{Why: lost.Reason}
	case errors.As(err, &gone):
		return &rollout.Unplayed{Why: gone.Reason, Again: true}
	}
	return err
}
