package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"trainer/internal/worker"
	"trainer/loss"
	"trainer/runner"
)

// maxLossFrame bounds a question to a loss and its answer, in bytes: a step has some fifty for each of its tokens.
const maxLossFrame = 256 << 20

// ConnectLoss implements runner.Programs. One process is started when it is first asked, and kept.
func (o *outside) ConnectLoss(l *loss.Command, dir string) error {
	if !o.exec {
		return runner.ErrNotAllowed
	}
	env, secrets, missing := worker.Environment(o.getenv, l.Env)
	if len(missing) > 0 {
		return fmt.Errorf("needs the environment variable %s, which is not set", strings.Join(missing, ", "))
	}
	p := worker.Start(o.ctx, worker.Command{Args: l.Command, Dir: dir, Env: env, Secrets: secrets, Kind: "loss", Params: l.Params, Run: o.life + ".loss",
		Timeout: l.Timeout, StartTimeout: l.StartTimeout, Workers: 1, Retries: l.Retries, MaxFrame: maxLossFrame, PassNaN: true, Log: o.lossLog})
	o.mu.Lock()
	o.pools = append(o.pools, p)
	o.mu.Unlock()
	l.Call = func(ctx context.Context, question []byte) ([]byte, error) {
		answer, err := p.Ask(ctx, "loss", question)
		var lost *worker.Lost
		switch {
		case errors.As(err, &lost):
			if lost.Said != "" {
				return nil, fmt.Errorf("%q gave no answer: %w; it printed:\n%s", l.Command, err, lost.Said)
			}
			return nil, fmt.Errorf("%q gave no answer: %w", l.Command, err)
		case errors.Is(err, worker.ErrNotANumber):
			return nil, fmt.Errorf("its answer has %w: %w", err, loss.ErrNonFinite)
		}
		return answer, err
	}
	return nil
}
