package sandbox

import (
	"math"

	"trainer/internal/sandbox/engine"
	"trainer/internal/wire"
	"trainer/loss"
)

// work is the body of an operation, read and checked.
type work struct {
	// forward-backward, and its custom kind, which has gradients instead of a loss
	loss        loss.Loss
	data        []loss.Datum
	gradients   [][]float32 // [B][T]
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
	case wire.KindCustomForwardBackward:
		w, err := s.readCustom(spec.Session, m, body)
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
