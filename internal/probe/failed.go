package probe

import (
	"context"
	"errors"
	"fmt"

	"trainer/internal/wire"
	"trainer/runner"
)

// huge is near the end of float32: the loss of a few positions of this weight is beyond it.
const huge = 3e38

// spoilt are rows whose loss is not finite, behind the lesson, by two ways of which a service may refuse one. now is of the
// lesson, so that its gradient is the same by both.
func spoilt(now []float64) []wire.ForwardBackward {
	heavy := row(8, 5)
	for t := range heavy.Weights {
		heavy.Weights[t] = huge
	}
	first, second := lesson(0), row(8, 5)
	first.Logprobs, first.Advantages = now, first.Weights
	for range second.Tokens {
		second.Logprobs, second.Advantages = append(second.Logprobs, -40), append(second.Advantages, huge)
	}
	return []wire.ForwardBackward{
		{Loss: wire.LossConfig{Type: wire.LossCrossEntropy}, Samples: []wire.Sample{lesson(0), heavy}},
		{Loss: wire.LossConfig{Type: wire.LossImportanceSampling}, Samples: []wire.Sample{first, second}},
	}
}

// failedLeaves lets a forward-backward fail, whose first row is the lesson, and takes a step: it moves the loss if some of
// the gradient has been left behind. It may spoil the weights, so nothing comes after it.
func (p *probe) failedLeaves(ctx context.Context) (Finding, error) {
	if err := p.calibrate(ctx); err != nil {
		return Finding{}, err
	}
	code, err := p.provoke(ctx)
	if err != nil {
		return Finding{}, err
	}
	// Three times the rate: more of a gradient that is there, and still nothing of one that is not.
	var drop float64
	if err = p.step(ctx, p.rig.eps/3); err == nil {
		drop, err = p.lowered(ctx)
	}
	if err != nil && ctx.Err() == nil {
		return Finding{}, unknown("after a FAILED forward-backward (%s) and an optim-step the loss could not be measured: %v", code, err)
	}
	if err != nil {
		return Finding{}, err
	}
	share := drop / p.rig.drop
	seen := fmt.Sprintf("an optim-step after a FAILED forward-backward (%s) moved the loss %.2f times as far as one of its first row", code, share)
	switch {
	case share > -0.5 && share < 0.5:
		return Finding{Value: "nothing", How: seen}, nil
	case share >= 1 && share < 6:
		return Finding{Value: "gradient", How: seen}, nil
	}
	return Finding{}, unknown("%s: something is left behind, but not the gradient of that row", seen)
}

// provoke lets a forward-backward fail, and returns the code.
func (p *probe) provoke(ctx context.Context) (code string, err error) {
	now, err := p.logprobs(ctx)
	if err != nil {
		return "", err
	}
	var last *runner.Refused
	for _, f := range spoilt(now) {
		body, err := wire.AppendForwardBackward(nil, &f)
		if err != nil {
			return "", err
		}
		var gaveUp *failed
		err = p.do(ctx, wire.KindForwardBackward, body, length+len(f.Samples[1].Tokens), &wire.ForwardBackwardOutput{})
		switch {
		case errors.As(err, &gaveUp):
			return gaveUp.code, nil
		case errors.As(err, &last):
		case err == nil:
			return "", unknown("a forward-backward whose loss is beyond float32 did not fail, so there is no failed one to look at")
		default:
			return "", unknown("a forward-backward whose loss is beyond float32 did not come to an end that can be read: %v", err)
		}
	}
	return "", unknown("no forward-backward could be made to fail: %v", last)
}

// logprobs are of the lesson, and 0 where it is not trained.
func (p *probe) logprobs(ctx context.Context) ([]float64, error) {
	f := &wire.ForwardBackward{
		Loss: wire.LossConfig{Type: wire.LossCrossEntropy}, Samples: []wire.Sample{lesson(0)}, ForwardOnly: true, ReturnOutputs: true,
	}
	body, err := wire.AppendForwardBackward(nil, f)
	if err != nil {
		return nil, err
	}
	var out wire.ForwardBackwardOutput
	if err := p.do(ctx, wire.KindForwardBackward, body, length, &out); err != nil {
		return nil, err
	}
	if len(out.Logprobs) != 1 || len(out.Logprobs[0]) != length {
		return nil, unknown("a forward pass did not return the log-probabilities that were asked for")
	}
	return out.Logprobs[0], nil
}
