package wire

import "time"

// Artifact is a model in the project's registry.
type Artifact struct {
	ID         string `json:"id"`          // ml_…
	RevisionID string `json:"revision_id"` // rv_…
}

// InferenceRegistration has one of the two: Adapter for LoRA on the base model's own weights, Model for all others.
type InferenceRegistration struct {
	Adapter *Artifact `json:"adapter,omitempty"`
	Model   *Artifact `json:"model,omitempty"`
}

// TrainingCheckpoint holds weights, optimizer state and step. Registration is nil where it was not registered.
type TrainingCheckpoint struct {
	ID           string    `json:"id"`
	Step         Int64     `json:"step"`
	CreatedAt    time.Time `json:"created_at"`
	Registration *Artifact `json:"registration,omitempty"`
}

// InferenceCheckpoint holds weights. Registration is nil where it was not registered.
type InferenceCheckpoint struct {
	ID           string                 `json:"id"`
	Step         Int64                  `json:"step"`
	CreatedAt    time.Time              `json:"created_at"`
	Registration *InferenceRegistration `json:"registration,omitempty"`
}

// CheckpointType is an enum.
type CheckpointType string

// The types of checkpoints.
const (
	CheckpointTraining  CheckpointType = "CHECKPOINT_TYPE_TRAINING"
	CheckpointInference CheckpointType = "CHECKPOINT_TYPE_INFERENCE"
)

// Checkpoint is a row of GET PathCheckpoints, and GET PathCheckpoints/{id}.
type Checkpoint struct {
	ID                    string                 `json:"id"`
	Type                  CheckpointType         `json:"type"`
	BaseModel             string                 `json:"base_model"`
	SessionID             string                 `json:"session_id"`
	Step                  Int64                  `json:"step"`
	LoRARank              int                    `json:"lora_rank,omitempty"` // 0: full weights, or an old checkpoint
	CreatedAt             time.Time              `json:"created_at"`
	InferenceRegistration *InferenceRegistration `json:"inference_registration,omitempty"`
	TrainingRegistration  *Artifact              `json:"training_registration,omitempty"`
}

// CheckpointVariant is an enum.
type CheckpointVariant string

// The variants of an inference checkpoint's files; VariantAdapter is of LoRA sessions alone.
const (
	VariantMerged  CheckpointVariant = "CHECKPOINT_VARIANT_MERGED"
	VariantAdapter CheckpointVariant = "CHECKPOINT_VARIANT_ADAPTER"
)

// CheckpointFiles is the answer of GET PathCheckpoints/{id}/download?variant=….
type CheckpointFiles struct {
	Data []CheckpointFile `json:"data"`
}

// CheckpointFile is one file behind a presigned address: no Authorization goes there.
type CheckpointFile struct {
	Filename string `json:"filename"` // a bare name: a reader refuses path separators
	Size     Int64  `json:"size"`     // bytes
	URL      string `json:"url"`
}
