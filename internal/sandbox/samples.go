package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"trainer/internal/sandbox/engine"
	"trainer/internal/wire"
	"trainer/loss"
)

func (s *Server) readForwardBackward(session string, m model, body []byte) (*work, error) {
	f, err := readAt(bytes.NewReader(body), maxBatch, wire.DecodeForwardBackward)
	if err != nil {
		return nil, err
	}
	w := &work{forwardOnly: f.ForwardOnly, outputs: f.ReturnOutputs, payloadID: f.PayloadID}
	if w.payloadID != "" {
		if _, err := lossOf(f.Loss); err != nil {
			return nil, err
		}
		if err := besideUpload(f.Samples, placesOf(f.Shape, "")); err != nil {
			return nil, err
		}
		if f, err = readPayload(s, session, w, maxBatch, wire.DecodeForwardBackward); err != nil {
			return nil, err
		}
	}
	if w.loss, err = lossOf(f.Loss); err != nil {
		return nil, err
	}
	return w, w.setData(f.Samples, m, placesOf(f.Shape, f.Loss.Type))
}

// readCustom reads samples and the gradients that take the place of a loss.
func (s *Server) readCustom(session string, m model, body []byte) (*work, error) {
	f, err := readAt(bytes.NewReader(body), maxBatch, wire.DecodeCustomForwardBackward)
	if err != nil {
		return nil, err
	}
	w := &work{payloadID: f.PayloadID}
	if w.payloadID != "" {
		if f.Gradients == nil {
			return nil, invalid("gradients", "gradients: is required, shortened, beside payload_id")
		}
		if err := besideUpload(f.Samples, placesOf(f.Shape, "")); err != nil {
			return nil, err
		}
		if f, err = readPayload(s, session, w, maxBatch, wire.DecodeCustomForwardBackward); err != nil {
			return nil, err
		}
	}
	if err := w.setData(f.Samples, m, placesOf(f.Shape, "")); err != nil {
		return nil, err
	}
	return w, w.setGradients(f.Gradients)
}

// besideUpload checks what is left of the samples in a body whose whole is uploaded. It is not what is trained, but it is
// what the service reads first: a body without it would go through here, and not there.
func besideUpload(samples []wire.Sample, at places) error {
	if samples == nil {
		return invalid("samples", "samples: is required, shortened, beside payload_id")
	}
	for i, x := range samples {
		if x.Tokens == nil {
			return sampleFault(i, "model_input", "is required, shortened, beside payload_id")
		}
		if x.Targets == nil {
			return sampleFault(i, at("target_tokens"), "is required, shortened, beside payload_id")
		}
	}
	return nil
}

// readAt reads a list of most at the most, and names the place that the decoder stopped at.
func readAt[T any](r io.Reader, most int, decode func(io.Reader, int) (*T, error)) (*T, error) {
	f, err := decode(r, most)
	if err == nil {
		return f, nil
	}
	text := err.Error()
	if inner := errors.Unwrap(err); inner != nil {
		text = inner.Error()
	}
	param, _, ok := strings.Cut(text, ": ")
	if !ok || strings.ContainsAny(param, " \"") {
		param = ""
	}
	return nil, invalid(param, "reading the body: %s", text)
}

// readPayload reads the uploaded body that w names.
func readPayload[T any](s *Server, session string, w *work, most int, decode func(io.Reader, int) (*T, error)) (*T, error) {
	p, err := s.payload(w.payloadID)
	if err != nil {
		return nil, err
	}
	if p.session != session || p.sha256 == "" || p.writing {
		return nil, invalid("payload_id", "payload_id: payload %s was not uploaded for this session", p.id)
	}
	w.payloadSHA256 = p.sha256
	file, err := s.store.open(payloadFile(p.id))
	if err != nil {
		return nil, err
	}
	f, err := readAt(file, most, decode)
	return f, errors.Join(err, file.Close())
}

func lossOf(c wire.LossConfig) (loss.Loss, error) {
	if c.Type == "" {
		return nil, invalid("loss.type", "loss.type: is required")
	}
	l, err := wire.ToLoss(c)
	if bad, ok := errors.AsType[*wire.Invalid](err); ok {
		return nil, invalid(bad.Param, "%s", bad.Error())
	}
	return l, err
}

// places says where a tensor stands in a sample of the body that is read, for who is told of a fault there.
type places func(tensor string) string

func placesOf(s wire.Shape, t wire.LossType) places {
	return func(tensor string) string { return s.Place(t, tensor) }
}

// setData checks the samples against the model and the loss, and makes its data of them.
func (w *work) setData(samples []wire.Sample, m model, at places) error {
	if len(samples) == 0 {
		return invalid("samples", "samples: needs at least one sample")
	}
	w.data = make([]loss.Datum, len(samples))
	for i := range samples {
		x := &samples[i]
		if err := checkTokens(i, x, m.config, at); err != nil {
			return err
		}
		if err := checkTensors(i, x, w.loss, at); err != nil {
			return err
		}
		if x.RoutedExpertsKey != "" {
			if w.experts == nil {
				w.experts = make([]string, len(samples))
			}
			w.experts[i] = x.RoutedExpertsKey
		}
		w.data[i] = loss.Datum{
			Input: x.Tokens, Targets: x.Targets, Weights: weightsOf(x, w.loss),
			Advantages: x.Advantages, OldLogprobs: x.Logprobs, RefLogprobs: x.RefLogprobs,
		}
	}
	return nil
}

func checkTokens(i int, x *wire.Sample, c engine.Config, at places) error {
	const input = "model_input"
	targets := at("target_tokens")
	n := len(x.Tokens)
	switch {
	case n == 0:
		return sampleFault(i, input, "needs at least one token")
	case n > c.Context:
		return sampleFault(i, input, "has %d tokens, at most %d are accepted", n, c.Context)
	case x.Targets == nil:
		return sampleFault(i, targets, "is required")
	case len(x.Targets) != n:
		return sampleFault(i, targets, "has %d values for %d tokens of model_input", len(x.Targets), n)
	}
	for t := range n {
		switch {
		case !within(x.Tokens[t], c):
			return sampleFault(i, input, "token %d is %d, outside of the vocabulary of %d", t, x.Tokens[t], c.Vocab)
		case !within(x.Targets[t], c):
			return sampleFault(i, targets, "value %d is %d, outside of the vocabulary of %d", t, x.Targets[t], c.Vocab)
		}
	}
	return nil
}

// checkTensors holds a sample to what its loss reads; l is nil for gradients of the client's. A tensor that the loss has no
// use for is passed over, as an unknown one is.
func checkTensors(i int, x *wire.Sample, l loss.Loss, at places) error {
	if x.Weights != nil && x.Mask != nil {
		return sampleFault(i, at("mask"), "stands beside weights; give one")
	}
	for _, t := range []struct {
		name           string
		values         []float64
		read, required bool
		counts         bool
	}{
		{"weights", x.Weights, true, isCrossEntropy(l), true},
		{"mask", x.Mask, true, false, true},
		{"logprobs", x.Logprobs, isPolicy(l), true, false},
		{"advantages", x.Advantages, isPolicy(l), true, false},
		{"reference_logprobs", x.RefLogprobs, hasReference(l), true, false},
	} {
		switch {
		case !t.read || t.values == nil && !t.required:
			continue
		case t.values == nil:
			return sampleFault(i, at(t.name), "is required by this loss")
		case len(t.values) != len(x.Tokens):
			return sampleFault(i, at(t.name), "has %d values for %d tokens of model_input", len(t.values), len(x.Tokens))
		}
		for p, v := range t.values {
			if t.counts && v < 0 {
				return sampleFault(i, at(t.name), "value %d is %v, want at least 0", p, v)
			}
		}
	}
	return nil
}

func isCrossEntropy(l loss.Loss) bool {
	_, ok := l.(*loss.CrossEntropy)
	return ok
}

func isPolicy(l loss.Loss) bool { return l != nil && !isCrossEntropy(l) }

func hasReference(l loss.Loss) bool {
	g, ok := l.(*loss.GRPO)
	return ok && g.Beta > 0
}

// weightsOf is 0 where a position is left out. Cross-entropy honours fractions; for the others whatever is not 0 is 1, and
// without weights and mask every position counts.
func weightsOf(x *wire.Sample, l loss.Loss) []float64 {
	if isCrossEntropy(l) {
		return x.Weights
	}
	from := x.Weights
	if from == nil {
		from = x.Mask
	}
	out := make([]float64, len(x.Tokens))
	for t := range out {
		if from == nil || from[t] != 0 {
			out[t] = 1
		}
	}
	return out
}

// setGradients takes the client's gradients, which weights do not mask: they are used as they are.
func (w *work) setGradients(gradients [][]float64) error {
	if len(gradients) != len(w.data) {
		return invalid("gradients", "gradients: has %d for %d samples", len(gradients), len(w.data))
	}
	for i, g := range gradients {
		if n := len(w.data[i].Input); len(g) != n {
			place := fmt.Sprintf("gradients[%d]", i)
			return invalid(place, "%s: has %d values for %d tokens of model_input", place, len(g), n)
		}
	}
	w.gradients = narrow(gradients)
	return nil
}

func within(id int32, c engine.Config) bool { return id >= 0 && int(id) < c.Vocab }

func sampleFault(i int, member, format string, a ...any) error {
	place := fmt.Sprintf("samples[%d].%s", i, member)
	return invalid(place, place+": "+format, a...)
}
