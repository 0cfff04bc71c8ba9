package probe

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"trainer/internal/wire"
	"trainer/runner"
)

// trainerOrder submits steps without waiting in between: each must find the weights that the one before it made.
func (p *probe) trainerOrder(ctx context.Context) (Finding, error) {
	if err := p.calibrate(ctx); err != nil {
		return Finding{}, err
	}
	body, tokens, err := forwardBackward(false, lesson(0))
	if err != nil {
		return Finding{}, err
	}
	step, err := p.optimStep(linear(p.rig.eps), 0)
	if err != nil {
		return Finding{}, err
	}
	var all []sent
	for range rounds {
		gather, err := p.send(ctx, wire.KindForwardBackward, body, tokens)
		if err != nil {
			return Finding{}, err
		}
		take, err := p.send(ctx, wire.KindOptimStep, step, 0)
		if err != nil {
			return Finding{}, err
		}
		all = append(all, gather, take)
	}
	var losses []float64
	var steps []int64
	for _, s := range all {
		if s.kind == wire.KindForwardBackward {
			out, err := p.scored(ctx, s)
			if err != nil {
				return Finding{}, err
			}
			losses = append(losses, *out.Loss)
			continue
		}
		var out wire.OptimStepOutput
		if err := p.end(ctx, s, &out); err != nil {
			return Finding{}, err
		}
		if out.Step != nil {
			steps = append(steps, int64(*out.Step))
		}
	}
	was := p.rig.loss
	if _, err := p.lowered(ctx); err != nil {
		return Finding{}, err
	}
	how := fmt.Sprintf("%d operations submitted back to back; steps %v, losses %.4g", len(all), steps, losses)
	if !slices.IsSorted(steps) || !falling(append(losses, p.rig.loss), was, max(p.rig.drop/5, 2*p.rig.noise*was)) {
		return Finding{Value: "out_of_order", How: how}, nil
	}
	return Finding{Value: "in_order", How: how}, nil
}

// falling: the first loss is what it was, and each of the others is lower by least or more.
func falling(losses []float64, was, least float64) bool {
	if math.Abs(losses[0]-was) > 2*least {
		return false
	}
	for i := range losses[1:] {
		if losses[i]-losses[i+1] < least {
			return false
		}
	}
	return true
}

// pipelineSync asks for the mode that the service may not let through.
func (p *probe) pipelineSync(ctx context.Context) (Finding, error) {
	if p.generators() == 0 {
		return Finding{}, errNoGenerators
	}
	err := p.sync(ctx, wire.SyncPipeline)
	var no *runner.Refused
	var gaveUp *failed
	switch {
	case err == nil:
		return Finding{Value: "accepted", How: "a PIPELINE weights-sync completed"}, nil
	case errors.As(err, &no) && aboutKey(no), errors.As(err, &gaveUp):
		return Finding{Value: "refused", How: err.Error()}, nil
	}
	return Finding{}, err
}

// metricNames lists what a forward-backward returns beside its loss.
func (p *probe) metricNames(ctx context.Context) (Finding, error) {
	body, tokens, err := forwardBackward(true, row(8, 4))
	if err != nil {
		return Finding{}, err
	}
	var out wire.ForwardBackwardOutput
	if err := p.do(ctx, wire.KindForwardBackward, body, tokens, &out); err != nil {
		return Finding{}, err
	}
	names := slices.Sorted(maps.Keys(out.Metrics))
	if len(names) == 0 {
		return Finding{Value: "none", How: "a forward pass of cross-entropy returned no metrics"}, nil
	}
	return Finding{Value: strings.Join(names, " "), How: "the metrics of a forward pass of cross-entropy"}, nil
}
