package together

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"trainer/internal/wire"
	"trainer/loss"
	"trainer/recipe"
	"trainer/runner"
)

// largestUpload is the most that one PUT takes, in bytes.
const largestUpload = 5<<30 - 5<<20

// Prepare implements runner.Session.
func (s *session) Prepare(ctx context.Context, op runner.Op) (runner.Prepared, error) {
	p := runner.Prepared{Op: op.Name()}
	var err error
	switch op := op.(type) {
	case runner.Forward:
		p.Body, p.PayloadID, err = s.forward(ctx, op)
		p.Work = tokens(op.Data, op.Backward)
	case runner.Custom:
		p.Body, p.PayloadID, err = s.custom(ctx, op)
		p.Work = tokens(op.Data, true)
	case runner.Optim:
		p.Body, err = json.Marshal(optimStep(op))
	case runner.Sync:
		p.Body, err = json.Marshal(wire.WeightsSync{WeightSyncType: wire.WeightSyncType("WEIGHT_SYNC_TYPE_" + strings.ToUpper(op.Mode))})
	case runner.Sample:
		p.Body, p.PayloadID, err = s.sample(ctx, op)
		p.Work = len(op.Prompts) * op.N * op.Params.MaxTokens
		if op.Top > 0 { // what takes the time is the pass over the prompts
			for _, prompt := range op.Prompts {
				p.Work += len(prompt)
			}
		}
	case runner.Save: // has no body
	default:
		err = errors.New("the client has no form for it")
	}
	if err != nil {
		return runner.Prepared{}, fmt.Errorf("preparing %s: %w", p.Op, err)
	}
	return p, nil
}

// tokens is the work of a pass over data: a backward one takes about twice as long as the forward one before it.
func tokens(data []loss.Datum, backward bool) (n int) {
	for _, d := range data {
		n += len(d.Input)
	}
	if backward {
		n *= 3
	}
	return n
}

// forward encodes op, and uploads the body where it is large.
func (s *session) forward(ctx context.Context, op runner.Forward) (body []byte, payload string, err error) {
	if len(op.Data) == 0 {
		return nil, "", errors.New("there is nothing in it: a forward-backward has at least one sequence")
	}
	f := &wire.ForwardBackward{Shape: s.c.shape, Samples: make([]wire.Sample, len(op.Data))}
	if f.Loss, err = wire.FromLoss(op.Loss); err != nil {
		return nil, "", err
	}
	for i, d := range op.Data {
		if err := check(d); err != nil {
			return nil, "", fmt.Errorf("sequence %d: %w", i, err)
		}
		f.Samples[i] = wire.Sample{
			Tokens: d.Input, Targets: d.Targets, Weights: d.Weights,
			Logprobs: d.OldLogprobs, Advantages: d.Advantages, RefLogprobs: d.RefLogprobs, RoutedExpertsKey: d.RoutedExperts,
		}
	}
	// An uploaded body has no flags: they belong to the POST.
	if body, err = wire.AppendForwardBackward(nil, f); err != nil {
		return nil, "", err
	}
	if len(body) > s.c.inline {
		if payload, err = s.upload(ctx, body); err != nil {
			return nil, "", err
		}
		f = f.Shortened(payload)
	}
	f.ForwardOnly, f.ReturnOutputs = !op.Backward, op.Logprobs || s.unproven(op)
	body, err = wire.AppendForwardBackward(nil, f)
	return body, payload, err
}

// custom encodes op, and uploads the body where it is large. Its samples have no weights: what counts stands in the
// gradients.
func (s *session) custom(ctx context.Context, op runner.Custom) (body []byte, payload string, err error) {
	if len(op.Data) == 0 || len(op.Grads) != len(op.Data) {
		return nil, "", fmt.Errorf("%d sequences and gradients for %d: they are equal in number, and at least one", len(op.Data), len(op.Grads))
	}
	f := &wire.CustomForwardBackward{Shape: s.c.shape, Samples: make([]wire.Sample, len(op.Data)), Gradients: op.Grads}
	for i, d := range op.Data {
		if err := check(d); err != nil {
			return nil, "", fmt.Errorf("sequence %d: %w", i, err)
		}
		if len(op.Grads[i]) != len(d.Targets) {
			return nil, "", fmt.Errorf("sequence %d: %d gradients for %d targets", i, len(op.Grads[i]), len(d.Targets))
		}
		f.Samples[i] = wire.Sample{Tokens: d.Input, Targets: d.Targets}
	}
	if body, err = wire.AppendCustomForwardBackward(nil, f); err != nil || len(body) <= s.c.inline {
		return body, "", err
	}
	if payload, err = s.upload(ctx, body); err != nil {
		return nil, "", err
	}
	body, err = wire.AppendCustomForwardBackward(nil, f.Shortened(payload))
	return body, payload, err
}

// check finds what the service would refuse, or worse, train on.
func check(d loss.Datum) error {
	n := len(d.Input)
	if n == 0 || len(d.Targets) != n || len(d.Weights) != n {
		return fmt.Errorf("%d input tokens, %d targets and %d weights: they are equal in number, and at least one",
			n, len(d.Targets), len(d.Weights))
	}
	for t := range n {
		if d.Input[t] < 0 || d.Targets[t] < 0 {
			return fmt.Errorf("position %d: token %d before target %d: a token id is 0 or more", t, d.Input[t], d.Targets[t])
		}
		if d.Weights[t] < 0 {
			return fmt.Errorf("position %d: weight %v: it is 0 or more", t, d.Weights[t])
		}
	}
	return nil
}

// upload stores body at the service, and returns the id to send in its place. An address that has gone stale is asked for
// once more.
func (s *session) upload(ctx context.Context, body []byte) (string, error) {
	if len(body) > largestUpload {
		return "", fmt.Errorf("the body has %d bytes, and one upload takes %d: use a smaller batch, or more gradient_accumulation", len(body), int64(largestUpload))
	}
	for attempt := 0; ; attempt++ {
		var to wire.UploadURL
		k := &call{method: http.MethodPost, path: s.path() + "/payloads/upload-url", read: into(&to)}
		if err := s.c.do(ctx, k, reading); err != nil {
			return "", err
		}
		if to.PayloadID == "" || to.UploadURL == "" {
			return "", fmt.Errorf("%s: the answer has no payload_id or no upload_url", k.name())
		}
		err := s.c.do(ctx, &call{method: http.MethodPut, url: to.UploadURL, body: body}, reading)
		var no *runner.Refused
		if errors.As(err, &no) && attempt == 0 {
			continue
		}
		return to.PayloadID, err
	}
}

// optimStep says every knob, at the rate of this step.
func optimStep(op runner.Optim) wire.OptimStep {
	o := op.Optimizer
	if o.Type != "muon" {
		return wire.OptimStep{AdamParams: adam(recipe.Adam{
			LearningRate: op.Rate, Beta1: o.Beta1, Beta2: o.Beta2, Eps: o.Eps, WeightDecay: o.WeightDecay, GradClipNorm: o.GradClipNorm,
		})}
	}
	m := &wire.MuonParams{
		LearningRate: new(op.Rate), Momentum: new(o.Momentum), NewtonSchulzSteps: new(o.NewtonSchulzSteps),
		WeightDecay: new(o.WeightDecay), GradClipNorm: new(o.GradClipNorm),
	}
	if o.Adam != nil {
		a := *o.Adam
		a.LearningRate *= op.Rate / o.LearningRate // follows the schedule in proportion
		m.Adam = adam(a)
	}
	return wire.OptimStep{MuonParams: m}
}

func adam(a recipe.Adam) *wire.AdamParams {
	return &wire.AdamParams{
		LearningRate: &a.LearningRate, Beta1: &a.Beta1, Beta2: &a.Beta2, Eps: &a.Eps, WeightDecay: &a.WeightDecay, GradClipNorm: &a.GradClipNorm,
	}
}
