package sandbox

import (
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
	experts     []string    // [B] keys of routed experts; nil: none was sent
	forwardOnly bool
	outputs     bool
	payloadID   string // where the data came from; empty: the body itself
	// payloadSHA256 is of the payload's bytes.
	payloadSHA256 string

	adam engine.Adam // optim-step of Adam
	muon *engine.Muon

	deferred  bool // weights-sync: it completes before the weights are live
	pipelined bool // and a sample in flight goes over to them

	sample     *engine.SampleRequest
	unseedable bool // the sample has a seed, and fails for it
	routed     bool // its sequences get keys of their routed experts
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
	case wire.KindSample:
		w, err := s.readSample(spec.Session, m, body)
		if err == nil {
			spec.PayloadID = w.payloadID
		}
		return w, err
	case wire.KindOptimStep:
		return readOptimStep(body, s.resourceOf(spec.Session).Muon)
	case wire.KindWeightsSync:
		return readWeightsSync(body)
	}
	if len(body) > 0 { // a checkpoint has none; what comes must still be JSON
		return &work{}, decode(body, &struct{}{})
	}
	return &work{}, nil
}

func readWeightsSync(body []byte) (*work, error) {
	var in wire.WeightsSync
	if err := decode(body, &in); err != nil {
		return nil, err
	}
	switch in.WeightSyncType {
	case wire.SyncSynchronous:
		return &work{}, nil
	case wire.SyncBackgroundPublish:
		return &work{deferred: true}, nil
	case wire.SyncPipeline:
		return &work{deferred: true, pipelined: true}, nil
	}
	return nil, invalid("weight_sync_type", "weight_sync_type: %q is not one of %s, %s, %s", in.WeightSyncType,
		wire.SyncSynchronous, wire.SyncBackgroundPublish, wire.SyncPipeline)
}
