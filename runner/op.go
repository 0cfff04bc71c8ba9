package runner

import (
	"time"

	"trainer/internal/rollout"
	"trainer/loss"
	"trainer/recipe"
)

// OpName is an operation of the API, as its path spells it: forward-backward, optim-step, weights-sync, …
type OpName string

// The operations that a run asks for.
const (
	OpForwardBackward     OpName = "forward-backward"
	OpCustom              OpName = "custom-forward-backward"
	OpOptimStep           OpName = "optim-step"
	OpWeightsSync         OpName = "weights-sync"
	OpSample              OpName = "sample"
	OpTrainingCheckpoint  OpName = "training-checkpoint"
	OpInferenceCheckpoint OpName = "inference-checkpoint"
)

// Op is one thing asked of a session, as a value. The set is closed: internal/together encodes each.
type Op interface{ Name() OpName }

type (
	// Forward scores Data under a loss that the service computes; with Backward it accumulates gradients too.
	Forward struct {
		Loss     loss.Loss
		Data     []loss.Datum
		Backward bool
		Logprobs bool // return them, [B][T]
	}
	// Custom accumulates the gradients of a loss that is computed here: Grads[i][t] is its derivative by the log-probability
	// of Data[i].Targets[t], and is used as it is; Weights of Data mask nothing.
	Custom struct {
		Data  []loss.Datum
		Grads [][]float64 // [B][T]
	}
	// Optim takes one optimiser step at Rate over what has accumulated.
	Optim struct {
		Optimizer recipe.Optimizer
		Rate      float64
	}
	// Sync publishes the trainer's weights to the generators.
	Sync struct{ Mode string } // as rollout.weight_sync_type spells it
	// Sample draws N completions of each prompt under the weights that the generators serve. Prompts is [P][T], token ids.
	Sample struct {
		Prompts [][]int32
		Params  recipe.Sampling
		N       int
		Seed    *int64 // nil: none is sent
		// Top asks what the weights make of the prompts' own tokens, and for so many ids that are likeliest in place of each; 0: it
		// does not.
		Top int
		// RoutedExperts asks for the key of the experts that are chosen.
		RoutedExperts bool
	}
	// Save makes a checkpoint: for training on, or for inference.
	Save struct{ Inference bool }
)

// Name implements Op.
func (Forward) Name() OpName { return OpForwardBackward }

// Name implements Op.
func (Custom) Name() OpName { return OpCustom }

// Name implements Op.
func (Optim) Name() OpName { return OpOptimStep }

// Name implements Op.
func (Sync) Name() OpName { return OpWeightsSync }

// Name implements Op.
func (Sample) Name() OpName { return OpSample }

// Name implements Op.
func (s Save) Name() OpName {
	if s.Inference {
		return OpInferenceCheckpoint
	}
	return OpTrainingCheckpoint
}

// Prepared is an operation in the bytes that are sent. Body is empty where the operation has none; PayloadID is also in
// Body, and says that the full body was uploaded under it. Once forbids a second POST after an unclear one.
type Prepared struct {
	Op        OpName
	Body      []byte
	PayloadID string
	Once      bool
	// Work is how much is asked for, in tokens scored, a token of a backward pass counting three; 0 where it is not known.
	// It only tells operations of one name apart that take unlike times.
	Work int
}

// Result is what came back; what an operation does not produce is zero.
type Result struct {
	Loss       float64
	Metrics    map[string]float64
	Logprobs   [][]float64 // [B][T]
	Step       int64       // after an optim step; of a checkpoint
	Version    int64       // of a sync
	Checkpoint *SavedCheckpoint
	Samples    []rollout.Samples // of a sample, one a prompt
	TokenLoss  *float64          // Σ w·(−ℓ), made of Logprobs by who asked for them
}

// SavedCheckpoint is a checkpoint at the service. Registered is the id in the project's models, empty where the service
// did not register it; Adapter tells an adapter from a merged model.
type SavedCheckpoint struct {
	ID         string    `json:"id"`
	Step       int64     `json:"step"`
	CreatedAt  time.Time `json:"created_at,omitzero"`
	Registered string    `json:"registered,omitempty"`
	Revision   string    `json:"revision,omitempty"`
	Adapter    bool      `json:"adapter,omitempty"`
}
