package probe

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"time"

	"trainer/internal/wire"
)

// operationMax is how long one of these small operations may take.
const operationMax = 10 * time.Minute

// sent is an operation that was accepted.
type sent struct {
	kind wire.Kind
	op   wire.Operation[json.RawMessage]
}

// send submits an operation of so many tokens under a new key.
func (p *probe) send(ctx context.Context, kind wire.Kind, body []byte, tokens int) (sent, error) {
	p.report.Tokens += tokens
	return p.sendKeyed(ctx, kind, rand.Text(), body)
}

func (p *probe) sendKeyed(ctx context.Context, kind wire.Kind, key string, body []byte) (sent, error) {
	p.report.Operations++
	op, err := p.service.Post(ctx, p.session, kind, key, body)
	return sent{kind, op}, err
}

// end waits for s, and reads its output into out. Errors besides those of the service: *failed.
func (p *probe) end(ctx context.Context, s sent, out any) (err error) {
	op := s.op
	if !op.Status.Final() {
		if op, err = p.service.Settled(ctx, p.session, s.kind, op.ID, operationMax); err != nil {
			return err
		}
	}
	switch {
	case op.Status == wire.OperationFailed && op.Error == nil:
		return &failed{string(s.kind), "FAILED", "the service gives no reason"}
	case op.Status == wire.OperationFailed:
		return &failed{string(s.kind), op.Error.Code.Name(), op.Error.Message}
	case op.Output == nil:
		return unknown("%s completed without an output", s.kind)
	}
	if err := json.Unmarshal(*op.Output, out); err != nil {
		return unknown("the output of %s cannot be read: %v", s.kind, err)
	}
	return nil
}

// do sends an operation and waits for it.
func (p *probe) do(ctx context.Context, kind wire.Kind, body []byte, tokens int, out any) error {
	s, err := p.send(ctx, kind, body, tokens)
	if err != nil {
		return err
	}
	return p.end(ctx, s, out)
}

// row is n positions of tokens that every vocabulary has, in an order that nothing predicts: another one for each seed. All
// weights are 1.
func row(n, seed int) wire.Sample {
	const from, count = 65, 58 // plain ids in the vocabularies of bytes and of real models alike
	ids := make([]int32, n+1)
	state := uint32(seed)*2654435761 + 12345
	for i := range ids {
		state = state*1664525 + 1013904223
		ids[i] = from + int32(state>>16)%count
	}
	s := wire.Sample{Tokens: ids[:n], Targets: ids[1:], Weights: make([]float64, n)}
	for t := range s.Weights {
		s.Weights[t] = 1
	}
	return s
}

// forwardBackward is the body of cross-entropy over rows, and its tokens.
func forwardBackward(only bool, rows ...wire.Sample) (body []byte, tokens int, err error) {
	for _, r := range rows {
		tokens += len(r.Tokens)
	}
	f := &wire.ForwardBackward{Loss: wire.LossConfig{Type: wire.LossCrossEntropy}, Samples: rows, ForwardOnly: only}
	body, err = wire.AppendForwardBackward(nil, f)
	return body, tokens, err
}

// loss runs a forward-backward, and returns its loss.
func (p *probe) loss(ctx context.Context, only bool, rows ...wire.Sample) (float64, error) {
	body, tokens, err := forwardBackward(only, rows...)
	if err != nil {
		return 0, err
	}
	s, err := p.send(ctx, wire.KindForwardBackward, body, tokens)
	if err != nil {
		return 0, err
	}
	out, err := p.scored(ctx, s)
	if err != nil {
		return 0, err
	}
	return *out.Loss, nil
}

// scored waits for a forward-backward. Its Loss is there.
func (p *probe) scored(ctx context.Context, s sent) (out wire.ForwardBackwardOutput, err error) {
	if err := p.end(ctx, s, &out); err != nil {
		return out, err
	}
	if out.Loss == nil {
		return out, unknown("forward-backward completed without a loss")
	}
	return out, nil
}

// optimStep is the body of a step by the resource's optimizer. Muon's own share of the weights stays where it is: its steps
// do not tell of a gradient's size.
func (p *probe) optimStep(a wire.AdamParams, muonRate float64) ([]byte, error) {
	step := wire.OptimStep{AdamParams: &a}
	if p.muon() {
		step = wire.OptimStep{MuonParams: &wire.MuonParams{
			LearningRate: new(muonRate), Momentum: new(0.0), NewtonSchulzSteps: new(5), WeightDecay: new(0.0), GradClipNorm: new(0.0), Adam: &a,
		}}
	}
	body, err := json.Marshal(step)
	if err != nil {
		return nil, fmt.Errorf("encoding optim-step: %w", err)
	}
	return body, nil
}

// linear makes Adam a plain descent: a step moves a weight by g/eps, as long as eps is far above g.
func linear(eps float64) wire.AdamParams {
	return wire.AdamParams{LearningRate: new(1.0), Beta1: new(0.0), Beta2: new(0.0), Eps: new(eps), WeightDecay: new(0.0), GradClipNorm: new(0.0)}
}

// sync publishes the weights.
func (p *probe) sync(ctx context.Context, mode wire.WeightSyncType) error {
	body, err := json.Marshal(wire.WeightsSync{WeightSyncType: mode})
	if err != nil {
		return fmt.Errorf("encoding weights-sync: %w", err)
	}
	return p.do(ctx, wire.KindWeightsSync, body, 0, &wire.WeightsSyncOutput{})
}
