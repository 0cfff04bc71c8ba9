package together

import (
	"context"
	"errors"
	"fmt"
	"math"

	"trainer/internal/rollout"
	"trainer/internal/wire"
	"trainer/recipe"
	"trainer/runner"
)

// sample encodes op, and uploads the body where it is large. Every parameter that the service has a default for is sent.
func (s *session) sample(ctx context.Context, op runner.Sample) (body []byte, payload string, err error) {
	if len(op.Prompts) == 0 {
		return nil, "", errors.New("there is nothing in it: a sample has at least one prompt")
	}
	q := &wire.SampleRequest{Inputs: op.Prompts, NumSamples: &op.N, Params: samplingParams(op.Params, op.Seed), RoutedExperts: op.RoutedExperts,
		PromptLogprobs: op.Top > 0, TopPromptLogprobs: op.Top}
	for i, p := range op.Prompts {
		if len(p) == 0 {
			return nil, "", fmt.Errorf("prompt %d has no token", i)
		}
	}
	if body, err = wire.AppendSample(nil, q); err != nil || len(body) <= s.c.inline {
		return body, "", err
	}
	if payload, err = s.upload(ctx, body); err != nil {
		return nil, "", err
	}
	body, err = wire.AppendSample(nil, q.Shortened(payload))
	return body, payload, err
}

func samplingParams(p recipe.Sampling, seed *int64) wire.SamplingParams {
	return wire.SamplingParams{MaxTokens: &p.MaxTokens, Temperature: &p.Temperature, TopP: &p.TopP, TopK: &p.TopK, Stop: p.Stop, Seed: seed}
}

// samplesOf holds an output to its promises: a log-probability for each token, ids that are ids, and a reason for each end.
func samplesOf(o *wire.SampleOutput) ([]rollout.Samples, error) {
	out := make([]rollout.Samples, len(o.Results))
	for i, r := range o.Results {
		for _, seg := range r.PolicySegments {
			out[i].Segments = append(out[i].Segments, rollout.Segment{Version: seg.Version, Start: seg.StartToken})
		}
		out[i].Scores = r.PromptLogprobs
		for _, top := range r.TopLogprobs {
			out[i].TopIDs, out[i].TopLogprobs = append(out[i].TopIDs, top.TokenIDs), append(out[i].TopLogprobs, top.Logprobs)
		}
		for j, q := range r.Sequences {
			seq, err := sequenceOf(q)
			if err != nil {
				return nil, fmt.Errorf("results[%d].sequences[%d]: %w", i, j, err)
			}
			out[i].Sequences = append(out[i].Sequences, seq)
		}
	}
	return out, nil
}

func sequenceOf(q wire.SampledSequence) (rollout.Sequence, error) {
	seq := rollout.Sequence{Tokens: make([]int32, len(q.Tokens)), Logprobs: q.Logprobs, Stop: rollout.Stopped, RoutedExperts: q.RoutedExpertsKey}
	if len(q.Logprobs) != len(q.Tokens) {
		return seq, fmt.Errorf("%d tokens and %d logprobs", len(q.Tokens), len(q.Logprobs))
	}
	for t, id := range q.Tokens {
		if id < 0 || id > math.MaxInt32 {
			return seq, fmt.Errorf("token %d is %d, which is no id", t, id)
		}
		seq.Tokens[t] = int32(id)
	}
	switch q.StopReason {
	case wire.StopStop:
	case wire.StopLength:
		seq.Stop = rollout.Cut
	default:
		return seq, fmt.Errorf("stop_reason %q is neither %s nor %s", q.StopReason, wire.StopStop, wire.StopLength)
	}
	return seq, nil
}
