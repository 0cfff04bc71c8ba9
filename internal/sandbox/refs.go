package sandbox

import (
	"errors"
	"fmt"
	"strings"

	"trainer/internal/sandbox/engine"
	"trainer/internal/wire"
)

// A base_weights_ref names a model of the registry. One that an inference checkpoint registered here stands for that
// checkpoint's weights; of any other nothing is known, and its weights are drawn from the ref.

// refArtifact is what a ref names; the revision is empty where it names none.
func refArtifact(ref string) wire.Artifact {
	object, revision, _ := strings.Cut(strings.TrimPrefix(ref, "together://"), "@")
	return wire.Artifact{ID: object, RevisionID: revision}
}

// pin completes the ref of a create by its revision, and refuses one that names what has no full weights of this base model.
// The lock is not held.
func (s *Server) pin(spec *resourceSpec) error {
	const param = "base_weights_ref"
	if spec.BaseWeightsRef == "" {
		return nil
	}
	a := refArtifact(spec.BaseWeightsRef)
	revision := "rv_1" // of a stranger
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, j := range s.state.jobs.order {
		if j.spec.Artifact == a.ID {
			return invalid(param, "%s: %s is what job %s made, which can't be trained", param, a.ID, j.id)
		}
	}
	if c := s.state.registered(a.ID); c != nil {
		revision = c.revision
		switch {
		case !c.inference:
			return invalid(param, "%s: %s is of training checkpoint %s; resume from that instead", param, a.ID, c.id)
		case c.adapter():
			return invalid(param, "%s: %s is an adapter, not full weights", param, a.ID)
		case c.session.spec.LoRA != nil && c.session.spec.LoRA.TrainUnembed:
			return invalid(param, "%s: %s can't be a base here: %v", param, a.ID, engine.ErrHead)
		case c.session.resource.spec.BaseModel != spec.BaseModel:
			return invalid(param, "%s: %s is of %s, not of %s", param, a.ID, c.session.resource.spec.BaseModel, spec.BaseModel)
		case a.RevisionID != "" && a.RevisionID != c.revision:
			return invalid(param, "%s: %s has no revision %.100q, only %s", param, a.ID, a.RevisionID, c.revision)
		}
	}
	if a.RevisionID == "" {
		spec.BaseWeightsRef += "@" + revision
	}
	return nil
}

// registered finds the checkpoint that registered a model, with the lock held; nil where none did.
func (s *state) registered(object string) *checkpoint {
	for _, c := range s.checkpoints.order {
		if c.artifact == object && c.registered() {
			return c
		}
	}
	return nil
}

// base is the frozen weights of a model under a ref. The lock is not held.
func (s *Server) base(m model, ref string) (*engine.Base, error) {
	a := refArtifact(ref)
	s.mu.Lock()
	c := s.state.registered(a.ID)
	s.mu.Unlock()
	if c == nil || c.revision != a.RevisionID {
		return s.bases.get(m, ref), nil
	}
	if b, ok := s.bases.loaded.Load(ref); ok {
		return b.(*engine.Base), nil
	}
	model, err := s.modelOf(c, m)
	if err != nil {
		return nil, err
	}
	b, err := model.Publish().Base()
	if err != nil {
		return nil, fmt.Errorf("base weights %s: %w", ref, err)
	}
	s.bases.loaded.Store(ref, b)
	return b, nil
}

// modelOf is the weights of a checkpoint, over the base that they were trained from.
func (s *Server) modelOf(c *checkpoint, m model) (*engine.Model, error) {
	base, err := s.base(m, c.session.resource.spec.BaseWeightsRef)
	if err != nil {
		return nil, err
	}
	model := engine.NewModel(base, c.session.spec.LoRA.engine())
	f, err := s.store.open(c.file())
	if err == nil {
		err = errors.Join(model.Load(f, engine.Parts{Weights: true}), f.Close())
	}
	if err != nil {
		return nil, fmt.Errorf("loading checkpoint %s: %w", c.id, err)
	}
	return model, nil
}
