package sandbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"trainer/internal/sandbox/engine"
	"trainer/internal/wire"
	"trainer/loss"
)

// trained is a session's model, and how far it has come.
type trained struct {
	model   *engine.Model
	ops     int           // of the session's operations, those that the model has seen
	saved   int           // of which a snapshot holds
	compute time.Duration // since the snapshot
	origin  int64         // the model's count of steps before the first operation
	tokens  int64         // positions with a weight, in the gathered gradient
	passes  int64         // gradients that it was gathered from
	served  *serving      // nil where nothing generates
}

// perform runs one operation on the session's model. It is a pure function of the model and the work, so that running it
// again after a restart gives the same bits. store says whether it is the first time, when files are written.
func (s *Server) perform(sess *session, op *operation, w *work, store bool) (*resultSpec, []byte, error) {
	sess.thin(!w.forwardOnly)
	switch op.spec.Name {
	case wire.KindForwardBackward:
		return s.forwardBackward(sess, op, w, store)
	case wire.KindCustomForwardBackward:
		sess.trained.gatherCustom(w.data, w.gradients)
		return encoded(&resultSpec{}, struct{}{})
	case wire.KindOptimStep:
		s.step(sess, op, w)
		return encoded(&resultSpec{}, wire.OptimStepOutput{Step: new(wire.Int64(sess.counted()))})
	case wire.KindWeightsSync:
		s.mu.Lock()
		version := sess.trainerStep
		s.mu.Unlock()
		sess.trained.publish()
		return encoded(&resultSpec{Defer: w.deferred}, wire.WeightsSyncOutput{WeightsVersion: new(wire.Int64(version))})
	default:
		return s.save(sess, op)
	}
}

func encoded(r *resultSpec, output any) (*resultSpec, []byte, error) {
	b, err := json.Marshal(output)
	return r, b, err
}

// forwardBackward scores the samples, and adds the loss's gradient unless it is only to score. A loss that is not finite
// adds nothing.
func (s *Server) forwardBackward(sess *session, op *operation, w *work, store bool) (*resultSpec, []byte, error) {
	batch, need := batchOf(w.data)
	now := widen(sess.trained.model.Logprobs(batch, need))
	result, err := w.loss.Eval(now, w.data)
	switch {
	case errors.Is(err, loss.ErrNonFinite):
		return &resultSpec{Code: wire.CodeNonFiniteLoss, Message: err.Error()}, nil, nil
	case errors.Is(err, loss.ErrInvalid):
		return &resultSpec{Code: wire.CodeInvalidInput, Message: err.Error()}, nil, nil
	case err != nil:
		return nil, nil, err
	}
	out := wire.ForwardBackwardOutput{Loss: &result.Value, Metrics: result.Metrics}
	if w.outputs {
		out.Logprobs = now
	}
	r, text, err := s.outputOf(op, out, store)
	if err == nil && !w.forwardOnly {
		sess.trained.gather(batch, need, narrow(result.Grads))
	}
	return r, text, err
}

// gather adds a gradient, and counts the positions that it is of.
func (t *trained) gather(b engine.Batch, need [][]bool, grads [][]float32) {
	t.model.Backward(b, grads)
	t.passes++
	for _, row := range need {
		for _, n := range row {
			if n {
				t.tokens++
			}
		}
	}
}

// gatherCustom adds a gradient of the client's own, which is of the positions where it is not 0.
func (t *trained) gatherCustom(data []loss.Datum, grads [][]float32) {
	batch, _ := batchOf(data)
	need := make([][]bool, len(grads))
	for i, row := range grads {
		need[i] = make([]bool, len(row))
		for at, g := range row {
			need[i][at] = g != 0
		}
	}
	t.gather(batch, need, grads)
}

// step applies the gathered gradient.
func (s *Server) step(sess *session, op *operation, w *work) {
	t := sess.trained
	if op.spec.PerToken && t.tokens > 0 {
		t.model.ScaleGradient(1 / float64(t.tokens))
	}
	if w.muon != nil {
		t.model.StepMuon(*w.muon)
	} else {
		t.model.Step(w.adam)
	}
	t.tokens, t.passes = 0, 0
}

// thin makes the passes that follow drop what their place in the training decides; what only scores drops nothing.
func (s *session) thin(trains bool) {
	d := engine.Dropout{}
	if l := s.spec.LoRA; trains && l != nil && l.Dropout > 0 {
		d = engine.Dropout{Rate: l.Dropout, Seed: s.rootSeed(), Step: s.trained.model.Steps(), Ordinal: s.trained.passes}
	}
	s.trained.model.SetDropout(d)
}

// counted is the model's count of steps as the session tells it, which may have begun at 0 where the checkpoint's did not.
func (s *session) counted() int64 {
	if s.from == nil || !s.spec.LoadOptimizer {
		return s.trained.model.Steps()
	}
	return s.trained.model.Steps() - s.trained.origin + s.start
}

// maxInlineOutput is well above what a poll should carry again and again.
const maxInlineOutput = 1 << 20

func (s *Server) outputOf(op *operation, out wire.ForwardBackwardOutput, store bool) (*resultSpec, []byte, error) {
	text, err := wire.AppendForwardBackwardOutput(nil, &out)
	if err != nil || len(text) <= s.inline || op.spec.Offload == "" {
		return &resultSpec{}, text, err
	}
	if store {
		large, err := wire.AppendForwardBackwardOutput(nil, &wire.ForwardBackwardOutput{Logprobs: out.Logprobs})
		if err == nil {
			err = s.store.put(payloadFile(op.spec.Offload), func(w io.Writer) error { _, err := w.Write(large); return err })
		}
		if err != nil {
			return nil, nil, err
		}
	}
	out.Logprobs, out.PayloadID = nil, op.spec.Offload
	text, err = wire.AppendForwardBackwardOutput(nil, &out)
	return &resultSpec{Offloaded: true}, text, err
}

// batchOf is data as the engine takes it; need leaves out what carries no weight.
func batchOf(data []loss.Datum) (engine.Batch, [][]bool) {
	b := engine.Batch{Input: make([][]int32, len(data)), Targets: make([][]int32, len(data))}
	need := make([][]bool, len(data))
	for i, d := range data {
		b.Input[i], b.Targets[i] = d.Input, d.Targets
		need[i] = make([]bool, len(d.Weights))
		for t, w := range d.Weights {
			need[i][t] = w != 0
		}
	}
	return b, need
}

func widen(x [][]float32) [][]float64 {
	out := make([][]float64, len(x))
	for i, row := range x {
		out[i] = make([]float64, len(row))
		for t, v := range row {
			out[i][t] = float64(v)
		}
	}
	return out
}

func narrow(x [][]float64) [][]float32 {
	out := make([][]float32, len(x))
	for i, row := range x {
		out[i] = make([]float32, len(row))
		for t, v := range row {
			out[i][t] = float32(v)
		}
	}
	return out
}

// save writes a checkpoint's file; it is durable before the operation completes.
func (s *Server) save(sess *session, op *operation) (*resultSpec, []byte, error) {
	s.mu.Lock()
	c := &checkpoint{
		id: op.spec.Checkpoint, session: sess, inference: op.spec.Name == wire.KindInferenceCheckpoint, step: sess.step,
		created: op.accepted, artifact: op.spec.Artifact, revision: op.spec.Revision,
	}
	s.mu.Unlock()
	parts := engine.Parts{Weights: true, Optimizer: !c.inference}
	if err := s.store.put(c.file(), func(w io.Writer) error { return sess.trained.model.Save(w, parts) }); err != nil {
		return nil, nil, err
	}
	if c.inference {
		return encoded(&resultSpec{}, wire.InferenceCheckpointOutput{Checkpoint: new(c.inferring())})
	}
	return encoded(&resultSpec{}, wire.TrainingCheckpointOutput{Checkpoint: new(c.training())})
}

// catchUp makes the session's model what its first n operations have made of it: the snapshot, and what came after run
// again, each compared with the output that it had. Of the n only samples may be without a result.
func (s *Server) catchUp(sess *session, n int) error {
	s.mu.Lock()
	done := sess.ops[:n:n]
	s.mu.Unlock()
	if sess.trained == nil {
		t, err := s.restore(sess, done)
		if err != nil {
			return fmt.Errorf("%w: %w", errSession, err)
		}
		sess.trained = t
	}
	for t := sess.trained; t.ops < n; t.ops++ {
		if err := s.again(sess, done[t.ops]); err != nil {
			sess.trained = nil
			return fmt.Errorf("%w: %w", errSession, err)
		}
	}
	return nil
}

// again runs a finished operation again where it changes the model: what failed, only scored or saved does not.
func (s *Server) again(sess *session, op *operation) error {
	switch {
	case op.spec.Name == wire.KindSample:
		return nil
	case op.spec.Name == wire.KindWeightsSync && op.result.Code == "":
		sess.trained.publish()
		return nil
	}
	if op.result.Left != "" {
		w, err := s.workOf(sess, op)
		if err == nil {
			_, err = s.leave(sess, op, w, op.result.Left)
		}
		return err
	}
	if op.result.Code != "" || !op.spec.Name.Trains() {
		return nil
	}
	w, err := s.workOf(sess, op)
	if err != nil || w.forwardOnly {
		return err
	}
	_, got, err := s.perform(sess, op, w, false)
	if err != nil {
		return err
	}
	want, err := s.store.read(op.output)
	if err == nil && !bytes.Equal(got, want) {
		err = fmt.Errorf("replaying %s %s gave another result than it had: another version of the engine, or a damaged file",
			op.spec.Name, op.id)
	}
	return err
}

// start is the session's model before its first operation.
func (s *Server) startModel(sess *session) (*engine.Model, error) {
	m, err := findModel(sess.resource.spec.BaseModel)
	if err != nil {
		return nil, err
	}
	base, err := s.base(m, sess.resource.spec.BaseWeightsRef)
	if err != nil {
		return nil, err
	}
	model := engine.NewModel(base, sess.spec.LoRA.engine())
	if sess.from == nil {
		return model, nil
	}
	f, err := s.store.open(sess.from.file())
	if err == nil {
		err = errors.Join(model.Load(f, engine.Parts{Weights: true, Optimizer: sess.spec.LoadOptimizer}), f.Close())
	}
	if err != nil {
		return nil, fmt.Errorf("loading checkpoint %s: %w", sess.from.id, err)
	}
	if !sess.spec.LoadOptimizer {
		model.SetSteps(0)
	}
	return model, nil
}

// engine is the adapter as the engine takes it; nil for full weights. Without a seed it is 0: nothing is drawn from what
// a second run would not have.
func (l *loraSpec) engine() *engine.LoRA {
	if l == nil {
		return nil
	}
	out := &engine.LoRA{Rank: l.Rank, Alpha: float64(l.Alpha), TrainUnembed: l.TrainUnembed}
	if l.Seed != nil {
		out.Seed = uint64(*l.Seed)
	}
	return out
}
