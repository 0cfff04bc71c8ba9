package sandbox

import (
	"net/http"

	"trainer/internal/wire"
)

// under finds the operation that was accepted under spec's key, with the lock held; nil when there is none, or when the key
// was made to be forgotten.
func (s *Server) under(spec *opSpec) (*operation, error) {
	op, ok := s.state.keys[spec.Key]
	if !ok || op.keyForgotten(s.clock.now()) {
		return nil, nil
	}
	same := op.spec.Session == spec.Session && op.spec.Name == spec.Name
	if same && (op.spec.SHA256 == spec.SHA256 || s.choice(ReusedKey) == keyOriginal) {
		return op, nil
	}
	return nil, &problem{http.StatusUnprocessableEntity, "idempotency_error", "idempotency_key_reused", wire.KeyHeader,
		wire.KeyHeader + ": this key was used for another request; a changed one needs a new key"}
}
