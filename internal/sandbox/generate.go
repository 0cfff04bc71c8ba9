package sandbox

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"runtime/debug"
	"time"

	"trainer/internal/sandbox/engine"
	"trainer/internal/wire"
)

// serving is what the generators serve: weights, and their version. older is set while a pipelined publish is under way.
type serving struct {
	weights *engine.Weights
	version int64
	older   *serving
}

// pipelineTokens is how many tokens of a completion that begins while a pipelined publish is under way are still sampled
// under the older weights.
const pipelineTokens = 8

// publish makes the model's weights those that later samples are of.
func (t *trained) publish(pipelined bool) {
	if t.served == nil {
		return // nothing generates
	}
	next := &serving{weights: t.model.Publish(), version: t.model.Steps() - t.origin}
	if pipelined {
		next.older = &serving{weights: t.served.weights, version: t.served.version}
	}
	t.served = next
}

// startSample gives a sample the weights that its place among the operations decides, and lets it run beside those that
// follow. The session's training lock is held.
func (s *Server) startSample(sess *session, op *operation) {
	if err := s.catchUp(sess, sess.taken-1); err != nil {
		s.conclude(sess, op, &resultSpec{Code: wire.CodeInternalError, Message: err.Error()}, nil, err)
		return
	}
	t := sess.trained
	from := *t.served
	s.mu.Lock()
	if _, pending := sess.serving(s.clock.now()); !pending {
		from.older = nil
	}
	s.mu.Unlock()
	t.ops++
	sess.flights.Add(1)
	s.workers.Add(1)
	go func() {
		defer s.workers.Done()
		defer sess.flights.Done()
		s.sample(sess, op, from)
	}()
}

// sample runs a sample and logs its result. It holds no lock; of several at a time a few run.
func (s *Server) sample(sess *session, op *operation, from serving) {
	s.sampling <- struct{}{}
	result, output, d, err := s.generate(sess, op, from)
	<-s.sampling
	if err != nil {
		s.options.Log("sandbox: sample %s: %v", op.id, err)
		result, output = &resultSpec{Code: wire.CodeInternalError, Message: err.Error()}, nil
	}
	if d > 0 {
		if result.Ended = op.started.Add(d); !s.reach(result.Ended) {
			return // the next life samples again, and gets the same
		}
	}
	s.conclude(sess, op, result, output, nil)
}

// generate samples, and encodes what comes out. d is how long it runs in virtual time.
func (s *Server) generate(sess *session, op *operation, from serving) (r *resultSpec, output []byte, d time.Duration, err error) {
	defer func() {
		if p := recover(); p != nil {
			s.options.Log("sandbox: panic in sample: %v\n%s", p, debug.Stack())
			err = fmt.Errorf("panic in sample: %v", p)
		}
	}()
	w, err := s.workOf(sess, op)
	if err != nil {
		return nil, nil, 0, err
	}
	d = s.takes(op, w)
	if f := op.spec.Fault; f != nil && f.Code != "" {
		return &resultSpec{Code: f.Code, Message: askedFault}, nil, d, nil
	}
	if w.unseedable {
		return &resultSpec{Code: wire.CodeInternalError, Message: errSeed.Error()}, nil, d, nil
	}
	q, first := *w.sample, from
	q.Tempered = op.spec.Tempered
	if from.older != nil {
		first, q.Then, q.ThenAt = *from.older, from.weights, pipelineTokens
	}
	sampled, err := first.weights.Sample(context.Background(), &q)
	if err != nil {
		return nil, nil, 0, err
	}
	for _, p := range sampled {
		for _, c := range p.Completions {
			d += time.Duration(len(c.Tokens)) * s.options.OpTime[wire.KindSample].PerToken
		}
	}
	out := sampleOutput(op, &q, sampled, from)
	r, output, err = s.sampleAnswer(op, out)
	return r, output, d, err
}

// sampleOutput is the answer in the words of the wire.
func sampleOutput(op *operation, q *engine.SampleRequest, sampled []engine.Sampled, from serving) *wire.SampleOutput {
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
		r.PolicySegments = from.segments(longest)
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
func (v serving) segments(longest int) []wire.PolicySegment {
	if v.older == nil {
		return []wire.PolicySegment{{Version: v.version}}
	}
	out := []wire.PolicySegment{{Version: v.older.version}}
	if longest > pipelineTokens {
		out = append(out, wire.PolicySegment{Version: v.version, StartToken: pipelineTokens})
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
