package worker

import (
	"context"
	"encoding/json"
)

// Episode is several requests to the one process that answered its first, which may remember between them.
type Episode struct {
	pool *Pool
	home *attendance
}

// Begin asks as Ask does, and binds what follows to the process that replied. attempt is how often the episode has begun
// before: it counts as the attempts of a request do, and stands in the frame.
func (p *Pool) Begin(ctx context.Context, typ string, body []byte, attempt int) (json.RawMessage, *Episode, error) {
	o := p.put(&request{ctx: ctx, typ: typ, body: body, attempt: attempt, result: make(chan outcome, 1)}, p.in, nil)
	if o.err != nil {
		return nil, nil, o.err
	}
	return o.reply, &Episode{p, o.by}, nil
}

// Ask sends a request of the episode. Errors are as those of Pool.Ask, and a *Gone where the process is.
func (e *Episode) Ask(ctx context.Context, typ string, body []byte) (json.RawMessage, error) {
	o := e.pool.put(&request{ctx: ctx, typ: typ, body: body, bound: true, result: make(chan outcome, 1)}, e.home.own, e.home.gone)
	return o.reply, o.err
}

// Tell sends what has no reply; a process that is gone, or reads nothing, does not get it.
func (e *Episode) Tell(ctx context.Context, typ string, body []byte) {
	f, err := frame(map[string]any{"v": version, "type": typ}, []string{"v", "type"}, body, e.pool.command.mostBytes())
	if err != nil {
		return
	}
	select {
	case e.home.told <- f:
	case <-e.home.gone:
	case <-e.pool.ctx.Done():
	case <-ctx.Done():
	}
}
