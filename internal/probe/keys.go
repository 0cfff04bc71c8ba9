package probe

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"trainer/internal/wire"
	"trainer/runner"
)

// keyed is an operation whose key is used again.
type keyed struct {
	key, id string
}

// sameKey sends one forward pass twice, under one key.
func (p *probe) sameKey(ctx context.Context) (Finding, error) {
	body, tokens, err := forwardBackward(true, row(8, 1))
	if err != nil {
		return Finding{}, err
	}
	key := rand.Text()
	p.report.Tokens += tokens
	first, err := p.sendKeyed(ctx, wire.KindForwardBackward, key, body)
	if err == nil {
		_, err = p.scored(ctx, first)
	}
	if err != nil {
		return Finding{}, err
	}
	p.known = keyed{key, first.op.ID}
	again, err := p.sendKeyed(ctx, wire.KindForwardBackward, key, body)
	var no *runner.Refused
	switch {
	case errors.As(err, &no) && aboutKey(no):
		return Finding{Value: "refuse", How: fmt.Sprintf("the same key and body was answered with %d", no.Status)}, nil
	case err != nil:
		return Finding{}, err
	case again.op.ID == first.op.ID:
		return Finding{Value: "original", How: "the same key and body was answered with the first operation"}, nil
	}
	_, err = p.scored(ctx, again)
	return Finding{Value: "new", How: "the same key and body made a second operation: keys are not honoured"}, err
}

// reusedKey sends another forward pass under the key of the first.
func (p *probe) reusedKey(ctx context.Context) (Finding, error) {
	if p.known.key == "" {
		return Finding{}, unknown("the operation whose key would be used again did not complete")
	}
	body, tokens, err := forwardBackward(true, row(9, 2))
	if err != nil {
		return Finding{}, err
	}
	p.report.Tokens += tokens
	again, err := p.sendKeyed(ctx, wire.KindForwardBackward, p.known.key, body)
	var no *runner.Refused
	switch {
	case errors.As(err, &no) && aboutKey(no):
		return Finding{Value: "refuse", How: fmt.Sprintf("another body under a known key was answered with %d", no.Status)}, nil
	case err != nil:
		return Finding{}, err
	case again.op.ID == p.known.id:
		return Finding{Value: "original", How: "another body under a known key was answered with the first operation"}, nil
	}
	if _, err := p.scored(ctx, again); err != nil {
		return Finding{}, err
	}
	return Finding{}, unknown("another body under a known key made a second operation, which the sandbox has no value for")
}

// aboutKey: what is wrong with the request is the request itself.
func aboutKey(no *runner.Refused) bool {
	return no.Status == 400 || no.Status == 409 || no.Status == 422
}
