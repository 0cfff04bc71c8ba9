package sandbox

import (
	"github.com/google/uuid"

	"trainer/internal/sandbox/fault"
	"trainer/internal/wire"
)

// What goes wrong with what a request makes is decided here, before it is logged, so that a replay has the same.

const (
	operationCode = "TRAINING_OPERATION_ERROR_CODE_"
	resourceCode  = "MODEL_RESOURCES_ERROR_CODE_"

	askedFault = "the sandbox was asked for this fault"
)

// afflictOp decides for an operation that is about to be accepted.
func (s *Server) afflictOp(e fault.Event, spec *opSpec) {
	spec.PerToken = spec.Name == wire.KindOptimStep && s.choice(GradNormalization) == perValidToken
	var f opFault
	some := false
	take := func(k fault.Kind, with func(fault.Hit)) {
		if hit, ok := s.dice.Roll(k, "", e); ok {
			with(hit)
			some = true
		}
	}
	take(fault.Fail, func(h fault.Hit) {
		f.Code, f.Leaves = wire.OperationErrorCode(operationCode+h.Code), h.Leaves
		if f.Leaves == "" {
			f.Leaves = s.choice(FailedLeaves)
		}
	})
	take(fault.ForgetKey, func(h fault.Hit) { f.KeyLives = &h.For })
	take(fault.ForgetOperation, func(h fault.Hit) { f.Remembered = &h.For })
	take(fault.Reorder, func(h fault.Hit) { f.Hold = h.For })
	take(fault.ExpireSession, func(h fault.Hit) { f.Expire = &h.For })
	if spec.Name == wire.KindWeightsSync {
		take(fault.SlowPublish, func(h fault.Hit) { f.Publish = h.Duration() })
	}
	if some {
		spec.Fault = &f
	}
}

// overtake puts the operation before one that waits for it.
func (o *opSpec) overtake(held *operation) {
	var f opFault
	if o.Fault != nil {
		f = *o.Fault
	}
	f.Before = held.id
	o.Fault = &f
}

// afflictResource decides for a create, with the lock held.
func (s *Server) afflictResource(e fault.Event, spec *resourceSpec) {
	if hit, ok := s.dice.Roll(fault.Queue, "", e); ok {
		loading := spec.Provision - spec.queueing()
		spec.Queue = &queueSpec{Time: hit.Duration(), Position: hit.Position}
		spec.Provision = spec.Queue.Time + loading
	}
	if hit, ok := s.dice.Roll(fault.ResourceError, "", e); ok {
		spec.Error = &errorSpec{Code: wire.FaultCode(resourceCode + hit.Code), After: hit.For}
	}
	if hit, ok := s.dice.Roll(fault.LateCreate, "", e); ok {
		spec.Hidden = hit.For
	}
}

// afflictSession decides for a create, with the lock held.
func (s *Server) afflictSession(e fault.Event, spec *sessionSpec) {
	if spec.From != "" {
		_, spec.FromZero = s.dice.Roll(fault.StepZero, "", e)
	}
	if hit, ok := s.dice.Roll(fault.LateCreate, "", e); ok {
		spec.Hidden = hit.For
	}
	if hit, ok := s.dice.Roll(fault.ExpireSession, "", e); ok {
		spec.Expire = &hit.For
	}
}

// afflictJob decides for a create, with the lock held.
func (s *Server) afflictJob(e fault.Event, spec *jobSpec) {
	if hit, ok := s.dice.Roll(fault.JobError, "", e); ok {
		spec.Error = &jobError{Code: wire.JobEventType(hit.Code), After: hit.For}
	}
	if hit, ok := s.dice.Roll(fault.LateCreate, "", e); ok {
		spec.Hidden = hit.For
	}
}

// doubled is the ids that a create makes: its own, and one more where it is carried out twice.
func (s *Server) doubled(e fault.Event, id string) []string {
	if _, ok := s.dice.Roll(fault.DoubleCreate, "", e); ok {
		return []string{uuid.NewString(), id}
	}
	return []string{id}
}
