package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"trainer/internal/sandbox/engine"
	"trainer/internal/wire"
	"trainer/loss"
)

// work is the body of an operation, read and checked.
type work struct {
	// forward-backward
	loss        loss.Loss
	data        []loss.Datum
	forwardOnly bool
	outputs     bool
	payloadID   string // where the data came from; empty: the body itself
	// payloadSHA256 is of the payload's bytes.
	payloadSHA256 string

	adam     engine.Adam // optim-step
	deferred bool        // weights-sync
}

// readWork reads and checks the body of spec's operation, and notes in spec where the uploaded one is. The lock is not
// held.
func (s *Server) readWork(spec *opSpec, m model, body []byte) (*work, error) {
	switch spec.Name {
	case wire.KindForwardBackward:
		w, err := s.readForwardBackward(spec.Session, m, body)
		if err == nil {
			spec.PayloadID = w.payloadID
		}
		return w, err
	case wire.KindOptimStep:
		return readOptimStep(body)
	case wire.KindWeightsSync:
		return readWeightsSync(body)
	}
	if len(body) > 0 { // a checkpoint has none; what comes must still be JSON
		return &work{}, decode(body, &struct{}{})
	}
	return &work{}, nil
}

func (s *Server) readForwardBackward(session string, m model, body []byte) (*work, error) {
	f, err := readSamples(bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	w := &work{forwardOnly: f.ForwardOnly, outputs: f.ReturnOutputs, payloadID: f.PayloadID}
	if w.payloadID != "" {
		if f, err = s.readPayload(session, w); err != nil {
			return nil, err
		}
	}
	if err := w.setLoss(f.Loss); err != nil {
		return nil, err
	}
	return w, w.setData(f.Samples, m)
}

// readSamples names the place that the decoder stopped at.
func readSamples(r io.Reader) (*wire.ForwardBackward, error) {
	f, err := wire.DecodeForwardBackward(r, maxBatch)
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

func (s *Server) readPayload(session string, w *work) (*wire.ForwardBackward, error) {
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
	f, err := readSamples(file)
	return f, errors.Join(err, file.Close())
}

func (w *work) setLoss(c wire.LossConfig) error {
	if c.Type == "" {
		return invalid("loss.type", "loss.type: is required")
	}
	l, err := wire.ToLoss(c)
	if err != nil {
		return invalid("loss.type", "loss.type: %q is not built in the sandbox yet; it has %s", c.Type, strings.Join(wire.Losses(), ", "))
	}
	w.loss = l
	return nil
}

func (w *work) setData(samples []wire.Sample, m model) error {
	if len(samples) == 0 {
		return invalid("samples", "samples: needs at least one sample")
	}
	w.data = make([]loss.Datum, len(samples))
	for i, x := range samples {
		if err := checkSample(i, x, m.config); err != nil {
			return err
		}
		w.data[i] = loss.Datum{Input: x.Tokens, Targets: x.Targets, Weights: x.Weights}
	}
	return nil
}

func checkSample(i int, x wire.Sample, c engine.Config) error {
	const input, targets, weights = "model_input", "loss_fn_inputs.target_tokens", "loss_fn_inputs.weights"
	n := len(x.Tokens)
	switch {
	case n == 0:
		return sampleFault(i, input, "needs at least one token")
	case n > c.Context:
		return sampleFault(i, input, "has %d tokens, at most %d are accepted", n, c.Context)
	case x.Targets == nil:
		return sampleFault(i, targets, "is required")
	case x.Weights == nil:
		return sampleFault(i, weights, "is required")
	case len(x.Targets) != n:
		return sampleFault(i, targets, "has %d values for %d tokens of model_input", len(x.Targets), n)
	case len(x.Weights) != n:
		return sampleFault(i, weights, "has %d values for %d tokens of model_input", len(x.Weights), n)
	}
	for t := range n {
		switch {
		case !within(x.Tokens[t], c):
			return sampleFault(i, input, "token %d is %d, outside of the vocabulary of %d", t, x.Tokens[t], c.Vocab)
		case !within(x.Targets[t], c):
			return sampleFault(i, targets, "value %d is %d, outside of the vocabulary of %d", t, x.Targets[t], c.Vocab)
		case x.Weights[t] < 0 || math.IsNaN(x.Weights[t]) || math.IsInf(x.Weights[t], 1):
			return sampleFault(i, weights, "value %d is %v, want a finite number of at least 0", t, x.Weights[t])
		}
	}
	return nil
}

func within(id int32, c engine.Config) bool { return id >= 0 && int(id) < c.Vocab }

func sampleFault(i int, member, format string, a ...any) error {
	place := fmt.Sprintf("samples[%d].%s", i, member)
	return invalid(place, place+": "+format, a...)
}

func readOptimStep(body []byte) (*work, error) {
	var in wire.OptimStep
	if len(body) > 0 {
		if err := decode(body, &in); err != nil {
			return nil, err
		}
	}
	if in.MuonParams != nil {
		return nil, invalid("muon_params", "muon_params: the model resource's optimizer is Adam; Muon is not built in the sandbox yet")
	}
	// The defaults are the contract's; a learning rate has none there, and gets the one of the oldest specification.
	a := engine.Adam{Rate: 1e-4, Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, ClipNorm: 1}
	p := in.AdamParams
	if p == nil {
		p = &wire.AdamParams{}
	}
	for _, f := range []struct {
		name  string
		from  *float64
		to    *float64
		least float64
		below float64
	}{
		{"learning_rate", p.LearningRate, &a.Rate, 0, math.Inf(1)},
		{"beta1", p.Beta1, &a.Beta1, 0, 1},
		{"beta2", p.Beta2, &a.Beta2, 0, 1},
		{"eps", p.Eps, &a.Eps, math.SmallestNonzeroFloat64, math.Inf(1)},
		{"weight_decay", p.WeightDecay, &a.WeightDecay, 0, math.Inf(1)},
		{"grad_clip_norm", p.GradClipNorm, &a.ClipNorm, 0, math.Inf(1)},
	} {
		if f.from == nil {
			continue
		}
		if v := *f.from; !(v >= f.least && v < f.below) {
			return nil, invalid("adam_params."+f.name, "adam_params.%s: %v is out of range", f.name, v)
		}
		*f.to = *f.from
	}
	return &work{adam: a}, nil
}

func readWeightsSync(body []byte) (*work, error) {
	var in wire.WeightsSync
	if err := decode(body, &in); err != nil {
		return nil, err
	}
	switch in.WeightSyncType {
	case wire.SyncSynchronous:
		return &work{}, nil
	case wire.SyncBackgroundPublish, wire.SyncPipeline:
		return &work{deferred: true}, nil
	}
	return nil, invalid("weight_sync_type", "weight_sync_type: %q is not one of %s, %s, %s", in.WeightSyncType,
		wire.SyncSynchronous, wire.SyncBackgroundPublish, wire.SyncPipeline)
}
