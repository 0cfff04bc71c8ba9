package sandbox

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"runtime/debug"
	"slices"
	"time"

	"trainer/internal/sandbox/engine"
	"trainer/internal/wire"
)

// serving is what the generators serve: weights, and their version.
type serving struct {
	weights *engine.Weights
	version int64
}

// publish makes the model's weights those that later samples are of.
func (t *trained) publish() {
	if t.served != nil { // else nothing generates
		t.served = &serving{weights: t.model.Publish(), version: t.model.Steps() - t.origin}
	}
}

// startSample gives a sample the weights that its place among the operations decides, and lets it run beside those that
// follow. The session's training lock is held.
func (s *Server) startSample(sess *session, op *operation) {
	if err := s.catchUp(sess, sess.taken-1); err != nil {
		s.conclude(sess, op, &resultSpec{Code: wire.CodeInternalError, Message: err.Error()}, nil, err)
		return
	}
	s.mu.Lock()
	op.from = sess.trained.served
	s.mu.Unlock()
	sess.trained.ops++
	sess.flights.Add(1)
	s.workers.Add(1)
	go s.flight(sess, op, nil)
}

// flight is the goroutine of a sample.
func (s *Server) flight(sess *session, op *operation, then *serving) {
	defer s.workers.Done()
	defer sess.flights.Done()
	s.fly(sess, op, then)
}

// draw samples, under the weights of the sample's place and then, where it is not nil, under others. A few draw at a time.
func (s *Server) draw(sess *session, op *operation, then *serving) outcome {
	s.sampling <- struct{}{}
	defer func() { <-s.sampling }()
	s.mu.Lock()
	from := op.from
	s.mu.Unlock()
	if from == nil {
		return outcome{} // it has its result
	}
	got, err := s.generate(sess, op, *from, then)
	if noRoom(err) {
		s.mu.Lock()
		_ = s.fill(err)
		s.mu.Unlock()
	}
	if err != nil {
		s.options.Log("sandbox: sample %s: %v", op.id, err)
		return outcome{result: &resultSpec{Code: wire.CodeInternalError, Message: err.Error()}}
	}
	return got
}

// generate samples, and encodes what comes out.
func (s *Server) generate(sess *session, op *operation, from serving, then *serving) (got outcome, err error) {
	defer func() {
		if p := recover(); p != nil {
			s.options.Log("sandbox: panic in sample: %v\n%s", p, debug.Stack())
			err = fmt.Errorf("panic in sample: %v", p)
		}
	}()
	w, err := s.workOf(sess, op)
	if err != nil {
		return outcome{}, err
	}
	if f := op.spec.Fault; f != nil && f.Code != "" {
		return s.timed(op, w, outcome{result: &resultSpec{Code: f.Code, Message: askedFault}}, 0), nil
	}
	if w.unseedable {
		return s.timed(op, w, outcome{result: &resultSpec{Code: wire.CodeInternalError, Message: errSeed.Error()}}, 0), nil
	}
	q := *w.sample
	q.Tempered = op.spec.Tempered
	if then != nil {
		q.Then, q.ThenAt = then.weights, pipelineTokens
	}
	sampled, err := from.weights.Sample(context.Background(), &q)
	if err != nil {
		return outcome{}, err
	}
	if !finite(sampled) {
		return s.timed(op, w, outcome{result: &resultSpec{Code: wire.CodeInternalError, Message: notFinite}}, 0), nil
	}
	made := 0
	for _, p := range sampled {
		for _, c := range p.Completions {
			made += len(c.Tokens)
			got.spans = got.spans || len(c.Tokens) > pipelineTokens
		}
	}
	out := sampleOutput(op, &q, sampled, from, then)
	if w.routed {
		s.keyExperts(op, w, out)
	}
	got.result, got.output, err = s.sampleAnswer(op, out)
	return s.timed(op, w, got, made), err
}

// notFinite is what becomes of a sample under weights that training has led astray.
const notFinite = "the weights that are served give log-probabilities that are not finite"

func finite(sampled []engine.Sampled) bool {
	bad := func(v float32) bool { return math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) }
	for _, p := range sampled {
		if slices.ContainsFunc(p.Prompt, bad) {
			return false
		}
		for _, c := range p.Completions {
			if slices.ContainsFunc(c.Logprobs, bad) {
				return false
			}
		}
		for _, top := range p.Top {
			if slices.ContainsFunc(top, func(c engine.Candidate) bool { return bad(c.Logprob) }) {
				return false
			}
		}
	}
	return true
}

// timed says when a sample of so many tokens ends, where it has a time of its own.
func (s *Server) timed(op *operation, w *work, got outcome, tokens int) outcome {
	if d := s.takes(op, w) + time.Duration(tokens)*s.options.OpTime[wire.KindSample].PerToken; d > 0 {
		got.ends = op.started.Add(d)
	}
	return got
}

// sampleOutput is the answer in the words of the wire.
func sampleOutput(op *operation, q *engine.SampleRequest, sampled []engine.Sampled, from serving, then *serving) *wire.SampleOutput {
	out := &wire.SampleOutput{}
	seen := map[string]bool{}
	for i, p := range sampled {
		prompt := promptKey(q.Prompts[i])
		var r wire.SampleResult
		longest := 0
		for _, c := range p.Completions {
			if c.Stopped && op.spec.CutStop {
				c = withoutStop(c, q)
			}
			one := wire.SampledSequence{Logprobs: widen([][]float32{c.Logprobs})[0], StopReason: wire.StopLength}
			for _, id := range c.Tokens {
				one.Tokens = append(one.Tokens, wire.Int64(id))
			}
			if c.Stopped {
				one.StopReason = wire.StopStop
			}
			if seen[prompt] { // the pass over the prompt was shared
				one.PromptCacheHitTokens = len(q.Prompts[i])
			}
			seen[prompt] = true
			longest = max(longest, len(c.Tokens))
			r.Sequences = append(r.Sequences, one)
		}
		r.PolicySegments = segments(from, then, longest)
		if p.Prompt != nil {
			r.PromptLogprobs = widen([][]float32{p.Prompt})[0]
		}
		for _, top := range p.Top {
			one := wire.TopLogprobs{}
			for _, c := range top {
				one.TokenIDs, one.Logprobs = append(one.TokenIDs, c.ID), append(one.Logprobs, float64(c.Logprob))
			}
			r.TopLogprobs = append(r.TopLogprobs, one)
		}
		out.Results = append(out.Results, r)
	}
	return out
}

func promptKey(prompt []int32) string {
	b := make([]byte, 0, 4*len(prompt))
	for _, id := range prompt {
		b = binary.LittleEndian.AppendUint32(b, uint32(id))
	}
	return string(b)
}

// withoutStop leaves the stop out: the stop id, or the tokens that a stop text is in.
func withoutStop(c engine.Completion, q *engine.SampleRequest) engine.Completion {
	n := c.Before(&q.Sampling)
	c.Tokens, c.Logprobs = c.Tokens[:n], c.Logprobs[:n]
	return c
}

// segments says which versions the tokens of a prompt's completions are of.
func segments(from serving, then *serving, longest int) []wire.PolicySegment {
	out := []wire.PolicySegment{{Version: from.version}}
	if then != nil && longest > pipelineTokens {
		out = append(out, wire.PolicySegment{Version: then.version, StartToken: pipelineTokens})
	}
	return out
}

// sampleAnswer encodes the output. A large one is stored outside before the operation completes.
func (s *Server) sampleAnswer(op *operation, out *wire.SampleOutput) (*resultSpec, []byte, error) {
	text, err := wire.AppendSampleOutput(nil, out)
	if err != nil || len(text) <= s.inline {
		return &resultSpec{}, text, err
	}
	err = s.store.put(payloadFile(op.spec.Offload), func(w io.Writer) error { _, err := w.Write(text); return err })
	if err != nil {
		return nil, nil, err
	}
	text, err = wire.AppendSampleOutput(nil, &wire.SampleOutput{PayloadID: op.spec.Offload})
	return &resultSpec{Offloaded: true}, text, err
}

// landed waits until no sample is in flight, and moves the beginning of op behind them. The lock is not held.
func (s *Server) landed(sess *session, op *operation) {
	sess.flights.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, before := range sess.ops[:sess.taken] {
		if before.spec.Name == wire.KindSample {
			op.started = later(op.started, before.ended)
		}
	}
}
