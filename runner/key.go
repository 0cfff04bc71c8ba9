package runner

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// The kinds of operations as the journal and the keys spell them.
const (
	kindForwardBackward = "forward_backward"
	kindForward         = "forward"   // scores a step before its gradient is made here
	kindReference       = "reference" // scores under the weights that training starts from
	kindCustom          = "custom_forward_backward"
	kindOptimStep       = "optim_step"
	kindSync            = "weights_sync"
	kindTraining        = "training_checkpoint"
	kindInference       = "inference_checkpoint"
	kindEval            = "eval"
	kindWitness         = "witness"
	kindSample          = "sample"
	kindEvalSample      = "eval_sample"
	kindTeacher         = "teacher"      // scores samples under a teacher's weights, in its session
	kindEvalTeacher     = "eval_teacher" // the same of an evaluation
)

// slot names an operation within a session: the step that it is of, or the steps done that it follows.
type slot struct {
	step    int
	kind    string
	index   int
	attempt int
}

// String names the operation as people count: from the first step, or by the steps done before it.
func (s slot) String() string {
	if s.mutating() || s.kind == kindForward {
		return fmt.Sprintf("%s of step %d", s.kind, s.step+1)
	}
	return fmt.Sprintf("%s after step %d", s.kind, s.step)
}

// mutating tells the kinds that change what is trained; the rest can be done again without harm.
func (s slot) mutating() bool {
	return s.kind == kindForwardBackward || s.kind == kindCustom || s.kind == kindOptimStep
}

// scores tells the kinds whose log-probabilities are kept on the disk, as what follows is made of them.
func (s slot) scores() bool {
	return s.kind == kindForward || s.kind == kindReference || s.kind == kindEval || s.kind == kindTeacher || s.kind == kindEvalTeacher
}

// needed tells the kinds that train nothing, and without which nothing is trained: a later life asks for them again,
// however often they have failed.
func (s slot) needed() bool { return s.kind == kindForward || s.kind == kindReference }

// samples tells the kinds that draw completions: they go beside the trainer's operations, in no order with them, and what
// they draw is stored.
func (s slot) samples() bool { return s.kind == kindSample || s.kind == kindEvalSample }

// tagged is an inactive_timeout that tells the resources of a run from those of others, since a resource has no name: up to
// a minute longer, by a SHA-256 of the run and the attempt, and never above the longest that the service takes.
func tagged(d time.Duration, runID string, attempt int) time.Duration {
	if d > 24*time.Hour-time.Minute {
		d -= time.Minute
	}
	h := sha256.Sum256([]byte(strings.Join([]string{"trainer-tag-1", runID, strconv.Itoa(attempt)}, "\n")))
	return d + time.Duration(binary.BigEndian.Uint64(h[:8])%60)*time.Second
}

// key is the idempotency key of a slot: the first 16 bytes of a SHA-256 in the form of a version 4 UUID. The session id
// is the generation, so that there is no counter to lose and no collision whatever the scope of keys at the service.
func (s slot) key(runID, session string) string {
	text := strings.Join([]string{"trainer-key-1", runID, session, strconv.Itoa(s.step), s.kind, strconv.Itoa(s.index), strconv.Itoa(s.attempt)}, "\n")
	h := sha256.Sum256([]byte(text))
	h[6] = h[6]&0x0f | 0x40
	h[8] = h[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", h[0:4], h[4:6], h[6:8], h[8:10], h[10:16])
}
