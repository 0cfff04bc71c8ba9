package wire

import "strings"

// Kind is an operation as its path spells it.
type Kind string

// The kinds of operations.
const (
	KindForwardBackward       Kind = "forward-backward"
	KindCustomForwardBackward Kind = "custom-forward-backward"
	KindOptimStep             Kind = "optim-step"
	KindWeightsSync           Kind = "weights-sync"
	KindSample                Kind = "sample"
	KindTrainingCheckpoint    Kind = "training-checkpoint"
	KindInferenceCheckpoint   Kind = "inference-checkpoint"
)

// Trains says that an operation of the kind changes gradients or weights, unless it only scores.
func (k Kind) Trains() bool {
	return k == KindForwardBackward || k == KindCustomForwardBackward || k == KindOptimStep
}

// Operation is the answer to an operation's POST and GET. O is the output of its kind, or json.RawMessage for one that is
// encoded already; Output is nil until the operation is COMPLETED.
type Operation[O any] struct {
	ID     string          `json:"id"`
	Status OperationStatus `json:"status"`
	Output *O              `json:"output,omitempty"`
	Error  *OperationError `json:"error,omitempty"` // only in FAILED
}

// OperationStatus is an enum; what is neither OperationCompleted nor OperationFailed is still running.
type OperationStatus string

// The states of an operation.
const (
	OperationPending   OperationStatus = "TRAINING_OPERATION_STATUS_PENDING"
	OperationRunning   OperationStatus = "TRAINING_OPERATION_STATUS_RUNNING"
	OperationCompleted OperationStatus = "TRAINING_OPERATION_STATUS_COMPLETED"
	OperationFailed    OperationStatus = "TRAINING_OPERATION_STATUS_FAILED"
)

// Final says that the operation will not change any more.
func (s OperationStatus) Final() bool { return s == OperationCompleted || s == OperationFailed }

// OperationError is why an operation FAILED.
type OperationError struct {
	Code    OperationErrorCode `json:"code"`
	Message string             `json:"message"`
}

// OperationErrorCode is an enum.
type OperationErrorCode string

// The codes of failed operations.
const (
	CodeResourceExhausted OperationErrorCode = "TRAINING_OPERATION_ERROR_CODE_RESOURCE_EXHAUSTED"
	CodeTimeout           OperationErrorCode = "TRAINING_OPERATION_ERROR_CODE_TIMEOUT"
	CodeInternalError     OperationErrorCode = "TRAINING_OPERATION_ERROR_CODE_INTERNAL_ERROR"
	CodeSessionNotActive  OperationErrorCode = "TRAINING_OPERATION_ERROR_CODE_SESSION_NOT_ACTIVE"
	CodeInvalidInput      OperationErrorCode = "TRAINING_OPERATION_ERROR_CODE_INVALID_INPUT"
	CodeNonFiniteLoss     OperationErrorCode = "TRAINING_OPERATION_ERROR_CODE_NON_FINITE_LOSS"
)

// Name is the code without its prefix: NON_FINITE_LOSS.
func (c OperationErrorCode) Name() string {
	return strings.TrimPrefix(string(c), "TRAINING_OPERATION_ERROR_CODE_")
}

// OptimStep is the body of optim-step: the member that matches the resource's optimizer. An empty body is legal.
type OptimStep struct {
	AdamParams *AdamParams `json:"adam_params,omitempty"`
	MuonParams *MuonParams `json:"muon_params,omitempty"`
}

// AdamParams are of one step; nil takes the service's default.
type AdamParams struct {
	LearningRate *float64 `json:"learning_rate,omitempty"`
	Beta1        *float64 `json:"beta1,omitempty"`
	Beta2        *float64 `json:"beta2,omitempty"`
	Eps          *float64 `json:"eps,omitempty"`
	WeightDecay  *float64 `json:"weight_decay,omitempty"`
	GradClipNorm *float64 `json:"grad_clip_norm,omitempty"` // 0 is off
}

// MuonParams are of one step; Adam is for the parameters that Muon leaves to it.
type MuonParams struct {
	LearningRate      *float64    `json:"learning_rate,omitempty"`
	Momentum          *float64    `json:"momentum,omitempty"`
	NewtonSchulzSteps *int        `json:"newton_schulz_steps,omitempty"`
	WeightDecay       *float64    `json:"weight_decay,omitempty"`
	GradClipNorm      *float64    `json:"grad_clip_norm,omitempty"` // 0 is off
	Adam              *AdamParams `json:"adam,omitempty"`
}

// OptimStepOutput is the answer of optim-step: the step number after it.
type OptimStepOutput struct {
	Step *Int64 `json:"step"`
}

// WeightsSync is the body of weights-sync.
type WeightsSync struct {
	WeightSyncType WeightSyncType `json:"weight_sync_type"`
}

// WeightSyncType is an enum.
type WeightSyncType string

// The ways to publish weights.
const (
	SyncSynchronous       WeightSyncType = "WEIGHT_SYNC_TYPE_SYNCHRONOUS"
	SyncBackgroundPublish WeightSyncType = "WEIGHT_SYNC_TYPE_BACKGROUND_PUBLISH"
	SyncPipeline          WeightSyncType = "WEIGHT_SYNC_TYPE_PIPELINE"
)

// WeightsSyncOutput is the answer of weights-sync: the version served, or queued in the deferred modes.
type WeightsSyncOutput struct {
	WeightsVersion *Int64 `json:"weights_version"`
}

// TrainingCheckpointOutput is the answer of training-checkpoint.
type TrainingCheckpointOutput struct {
	Checkpoint *TrainingCheckpoint `json:"checkpoint"`
}

// InferenceCheckpointOutput is the answer of inference-checkpoint.
type InferenceCheckpointOutput struct {
	Checkpoint *InferenceCheckpoint `json:"checkpoint"`
}

// UploadURL is the answer of POST PathSessions/{id}/payloads/upload-url.
type UploadURL struct {
	PayloadID string `json:"payload_id"`
	UploadURL string `json:"upload_url"` // presigned PUT: no Authorization goes there
}

// DownloadURL is the answer of POST PathSessions/{id}/payloads/{payload_id}/download-url.
type DownloadURL struct {
	DownloadURL string `json:"download_url"` // presigned GET: no Authorization goes there
}
