package sandbox

import (
	"encoding/json"
	"fmt"
	"time"

	"trainer/internal/wire"
)

// kind says what a record changes.
type kind string

const (
	kindServer   kind = "server"    // the first record: what the folder is
	kindTick     kind = "tick"      // the time, so that it need not be guessed after a kill
	kindClosed   kind = "closed"    // the same, from a server that ended in order
	kindResource kind = "resource"  // created
	kindExtend   kind = "extend"    // a resource's expiry was moved
	kindStop     kind = "stop"      // a resource or a session was asked to stop
	kindExpire   kind = "expire"    // a resource was idle for too long, or a session was made to expire
	kindBreak    kind = "break"     // a resource is in ERROR
	kindSession  kind = "session"   // created
	kindChange   kind = "change"    // a session's name or metadata
	kindFail     kind = "fail"      // a session can't go on
	kindOp       kind = "operation" // accepted; the body is the request's, byte for byte
	kindResult   kind = "result"    // of an operation; the body is its output in JSON
	kindPayload  kind = "payload"   // an id was handed out
	kindUploaded kind = "uploaded"  // its bytes are in payloads/
	kindJob      kind = "job"       // created
	kindCancel   kind = "cancel"    // a job was asked to end
)

// record is the head of a frame: one accepted change. ID names what it is about; of the pointers the one that belongs to
// Kind is set.
type record struct {
	Kind kind      `json:"kind"`
	T    time.Time `json:"t"` // virtual
	ID   string    `json:"id,omitempty"`

	Server   *serverSpec   `json:"server,omitempty"`
	Resource *resourceSpec `json:"resource,omitempty"`
	Session  *sessionSpec  `json:"session,omitempty"`
	Change   *sessionNames `json:"change,omitempty"`
	Op       *opSpec       `json:"op,omitempty"`
	Result   *resultSpec   `json:"result,omitempty"`
	Payload  *payloadSpec  `json:"payload,omitempty"`
	Job      *jobSpec      `json:"job,omitempty"`

	Until     time.Time     `json:"until,omitzero"`      // extend: the new expires_at; expire, break: when it was due
	Cancelled []string      `json:"cancelled,omitempty"` // stop, expire, break: operations that had not begun
	Message   string        `json:"message,omitempty"`   // fail
	Ahead     time.Duration `json:"ahead,omitempty"`     // tick: how far time may run ahead of the log; 0 says nothing of it
}

// logFormat is refused where it is newer than this program.
const logFormat = 1

type serverSpec struct {
	Format int    `json:"format"`
	Secret []byte `json:"secret"` // signs presigned addresses
}

// resourceSpec is a create with every default filled in.
type resourceSpec struct {
	BaseModel      string `json:"base_model"`
	BaseWeightsRef string `json:"base_weights_ref,omitempty"`
	GPUType        string `json:"gpu_type"`
	Generators     int    `json:"generators"`
	LoRA           bool   `json:"lora"`
	// Muon is the scaling of its updates; empty: the optimizer is Adam.
	Muon            wire.MuonScalingStrategy `json:"muon,omitempty"`
	InactiveTimeout time.Duration            `json:"inactive_timeout"`
	Provision       time.Duration            `json:"provision"` // from created to READY
	Queue           *queueSpec               `json:"queue,omitempty"`
	Error           *errorSpec               `json:"error,omitempty"`
	Hidden          time.Duration            `json:"hidden,omitempty"` // from created until lists show it
}

// queueSpec is a queue that was asked for; nil takes half of the time to READY.
type queueSpec struct {
	Time     time.Duration `json:"time"`
	Position int           `json:"position"` // at first
}

// errorSpec is an ERROR that was asked for.
type errorSpec struct {
	Code  wire.FaultCode `json:"code"`
	After time.Duration  `json:"after"` // from created
}

// sessionSpec is a create with every default filled in.
type sessionSpec struct {
	Resource      string         `json:"resource"`
	Names         sessionNames   `json:"names"`
	LoRA          *loraSpec      `json:"lora,omitempty"` // nil: full weights
	From          string         `json:"from,omitempty"`
	LoadOptimizer bool           `json:"load_optimizer,omitempty"`
	Provision     time.Duration  `json:"provision"`           // from created to RUNNING
	FromZero      bool           `json:"from_zero,omitempty"` // steps are counted from 0, whatever the checkpoint says
	Hidden        time.Duration  `json:"hidden,omitempty"`    // from created until lists show it
	Expire        *time.Duration `json:"expire,omitempty"`    // from created
}

// sessionNames is what a client may change later.
type sessionNames struct {
	DisplayName string      `json:"display_name,omitempty"`
	WandB       *wire.WandB `json:"wandb,omitempty"`
}

type loraSpec struct {
	Rank         int     `json:"rank"`
	Alpha        int     `json:"alpha"`
	TrainUnembed bool    `json:"train_unembed"`
	Seed         *int64  `json:"seed,omitempty"`
	Dropout      float64 `json:"dropout,omitempty"`
}

// opSpec is an operation as accepted. What its execution needs to draw is drawn here, so that a replay has the same.
type opSpec struct {
	Session    string    `json:"session"`
	Name       wire.Kind `json:"name"`
	Key        string    `json:"key"`
	SHA256     string    `json:"sha256"`               // of the request's body
	PayloadID  string    `json:"payload_id,omitempty"` // the uploaded body that replaces it
	Checkpoint string    `json:"checkpoint,omitempty"` // the id of what it will save, and of its registration
	Artifact   string    `json:"artifact,omitempty"`
	Revision   string    `json:"revision,omitempty"`
	Tempered   bool      `json:"tempered,omitempty"` // sample: the choices in force
	CutStop    bool      `json:"cut_stop,omitempty"`
	Takes      []string  `json:"takes,omitempty"`     // weights-sync: the samples in flight that go over to its weights
	Offload    string    `json:"offload,omitempty"`   // the payload id for an answer that is too large to be inline
	PerToken   bool      `json:"per_token,omitempty"` // optim-step: the gradient is divided by the tokens trained
	Fault      *opFault  `json:"fault,omitempty"`
}

// opFault is what was decided to go wrong with an operation.
type opFault struct {
	Code       wire.OperationErrorCode `json:"code,omitempty"`       // it ends FAILED
	Leaves     string                  `json:"leaves,omitempty"`     // and leaves this behind
	KeyLives   *time.Duration          `json:"key_lives,omitempty"`  // from acceptance
	Remembered *time.Duration          `json:"remembered,omitempty"` // from its end
	Publish    time.Duration           `json:"publish,omitempty"`    // until the generators serve the new weights
	Hold       time.Duration           `json:"hold,omitempty"`       // it waits so long to be overtaken
	Expire     *time.Duration          `json:"expire,omitempty"`     // its session expires, from acceptance
	Before     string                  `json:"before,omitempty"`     // the held operation that it overtakes
}

// resultSpec is how an operation ended. Code is empty unless it failed.
type resultSpec struct {
	Code    wire.OperationErrorCode `json:"code,omitempty"`
	Message string                  `json:"message,omitempty"`
	Defer   bool                    `json:"defer,omitempty"` // weights-sync: the new weights go live later
	// Offloaded: the large members of the output are a payload, under the operation's Offload id.
	Offloaded bool `json:"offloaded,omitempty"`
	// Left is what a failed one left behind, as a fault's `leaves`; empty: nothing.
	Left string `json:"left,omitempty"`
	// Ended is when it ended in virtual time; zero: at the record's own.
	Ended time.Time `json:"ended,omitzero"`
}

type payloadSpec struct {
	Session string `json:"session"`
	Size    int64  `json:"size,omitempty"`
	SHA256  string `json:"sha256,omitempty"`
}

func (r *record) encode() ([]byte, error) {
	b, err := json.Marshal(r)
	if err == nil && len(b) > maxHead {
		err = fmt.Errorf("a %s record of %d bytes is too long", r.Kind, len(b))
	}
	return b, err
}
