package together

import (
	"context"
	"errors"
	"fmt"

	"trainer/internal/wire"
	"trainer/runner"
)

// The page of the shape of April 2026 has no forward_only. A server that takes it for an unknown member would train on what
// is only to be scored, and say nothing. One that does not know it does not know return_loss_fn_outputs either: so the first
// pass of a session that only scores, which comes before any that trains, asks for the log-probabilities, and nothing
// follows before they are there.

// unproven says that op has to ask for its log-probabilities.
func (s *session) unproven(op runner.Forward) bool {
	return s.c.shape == wire.April2026 && !op.Backward && !s.proven.Load()
}

// prove holds the answer to a pass that asked for them to having them. It goes by the bytes that were sent: those of an
// earlier life may be of the older shape though this one speaks the current.
func (s *session) prove(ctx context.Context, p runner.Prepared, id string) error {
	if p.Op != runner.OpForwardBackward || s.proven.Load() || !wire.ScoresOlder(p.Body) {
		return nil
	}
	res, err := s.Wait(ctx, p.Op, id)
	var failed *runner.Failed
	switch {
	case errors.As(err, &failed) || errors.Is(err, runner.ErrGone): // which says nothing; who waits for it is told
		return nil
	case err != nil:
		return err
	case res.Logprobs == nil:
		return fmt.Errorf("%s %s was to score and not to train, and its log-probabilities did not come back: this server knows no forward_only in the %s shape, and would train on what is held out; its session is not to be used",
			p.Op, id, wire.April2026)
	}
	s.proven.Store(true)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.early[id] = &outcome{id: id, final: true, res: res}
	return nil
}
