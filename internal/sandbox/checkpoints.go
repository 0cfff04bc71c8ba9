package sandbox

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"strings"

	"trainer/internal/wire"
)

// unregistered is the prefix of models whose checkpoints are in no registry, as the service has it.
const unregistered = "MiniMaxAI/MiniMax-M3"

func (c *checkpoint) registered() bool {
	return !strings.HasPrefix(c.session.resource.spec.BaseModel, unregistered)
}

// name is the registered model's.
func (c *checkpoint) name() string {
	return fmt.Sprintf("%s/%s-step-%d-%s", project, path.Base(c.session.resource.spec.BaseModel), c.step, c.id[:8])
}

// artifact is the base model in the registry: what the ref names, or ids that follow from the model's name.
func (s resourceSpec) artifact() wire.Artifact {
	if s.BaseWeightsRef != "" {
		return refArtifact(s.BaseWeightsRef)
	}
	sum := sha256.Sum256([]byte(s.BaseModel))
	id := hex.EncodeToString(sum[:10])
	return wire.Artifact{ID: "ml_" + id, RevisionID: "rv_" + id}
}

// registration is nil for what is in no registry.
func (c *checkpoint) registration() *wire.Artifact {
	if !c.registered() {
		return nil
	}
	return &wire.Artifact{ID: c.artifact, RevisionID: c.revision}
}

func (c *checkpoint) inferenceRegistration() *wire.InferenceRegistration {
	if !c.registered() {
		return nil
	}
	if c.adapter() {
		return &wire.InferenceRegistration{Adapter: c.registration()}
	}
	return &wire.InferenceRegistration{Model: c.registration()}
}

func (c *checkpoint) training() wire.TrainingCheckpoint {
	return wire.TrainingCheckpoint{ID: c.id, Step: wire.Int64(c.step), CreatedAt: c.created, Registration: c.registration()}
}

func (c *checkpoint) inferring() wire.InferenceCheckpoint {
	return wire.InferenceCheckpoint{
		ID: c.id, Step: wire.Int64(c.step), CreatedAt: c.created, Registration: c.inferenceRegistration(),
	}
}

func (c *checkpoint) row() wire.Checkpoint {
	out := wire.Checkpoint{
		ID: c.id, Type: wire.CheckpointTraining, BaseModel: c.session.resource.spec.BaseModel, SessionID: c.session.id,
		Step: wire.Int64(c.step), CreatedAt: c.created,
	}
	if l := c.session.spec.LoRA; l != nil {
		out.LoRARank = l.Rank
	}
	if c.inference {
		out.Type, out.InferenceRegistration = wire.CheckpointInference, c.inferenceRegistration()
	} else {
		out.TrainingRegistration = c.registration()
	}
	return out
}

func (s *Server) listCheckpoints(r *request) (any, error) {
	q := r.URL.Query()
	kinds, err := wanted(q, "type", string(wire.CheckpointTraining), string(wire.CheckpointInference))
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	is := func(name, value string) bool { want := q.Get(name); return want == "" || want == value }
	return page(q, &s.state.checkpoints, func(c *checkpoint) string { return c.id }, func(c *checkpoint) bool {
		row := c.row()
		return (len(kinds) == 0 || kinds[string(row.Type)]) && is("session_id", row.SessionID) && is("base_model", row.BaseModel)
	}, (*checkpoint).row)
}

func (s *Server) getCheckpoint(r *request) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, ok := s.state.checkpoints.byID[r.ids[0]]
	if !ok {
		return nil, notFound("id", "checkpoint", r.ids[0])
	}
	return c.row(), nil
}
