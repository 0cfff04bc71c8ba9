package sandbox

import (
	"trainer/internal/sandbox/fault"
	"trainer/internal/wire"
)

// leave does the part of a failed operation that stays behind, and tells what that is; empty: nothing. Like perform it is a
// pure function of the model and the work.
func (s *Server) leave(sess *session, op *operation, w *work, what string) (left string, err error) {
	switch {
	case what == fault.LeavesGradient && op.spec.Name != wire.KindOptimStep && op.spec.Name.Trains() && !w.forwardOnly:
		return s.leaveGradient(sess, w)
	case what == fault.LeavesStep && op.spec.Name == wire.KindOptimStep:
		s.step(sess, op, w)
		return what, nil
	}
	return "", nil
}

// leaveGradient gathers what the first half of the samples gives, where its loss is finite.
func (s *Server) leaveGradient(sess *session, w *work) (string, error) {
	sess.thin(true)
	half := w.data[:(len(w.data)+1)/2]
	if w.loss == nil {
		sess.trained.gatherCustom(half, w.gradients[:len(half)])
		return fault.LeavesGradient, nil
	}
	batch, need := batchOf(half)
	result, err := w.loss.Eval(widen(sess.trained.model.Logprobs(batch, need)), half)
	if err != nil {
		return "", nil // that half has no gradient
	}
	sess.trained.gather(batch, need, narrow(result.Grads))
	return fault.LeavesGradient, nil
}
