package wire

import (
	"strings"
	"time"
)

// CreateSession is the body of POST PathSessions. nil and empty members take the service's defaults.
type CreateSession struct {
	ModelResourcesID       string           `json:"model_resources_id"`
	DisplayName            string           `json:"display_name,omitempty"` // up to 128 characters
	Metadata               *SessionMetadata `json:"metadata,omitempty"`
	LoRAConfig             *LoRARequest     `json:"lora_config,omitempty"`
	ResumeFromCheckpointID string           `json:"resume_from_checkpoint_id,omitempty"`
	LoadOptimizer          *bool            `json:"load_optimizer,omitempty"` // only with a checkpoint
}

// UpdateSession is the body of PATCH PathSessions/{id}: nil stays, an empty string clears.
type UpdateSession struct {
	DisplayName *string          `json:"display_name,omitempty"`
	Metadata    *SessionMetadata `json:"metadata,omitempty"`
}

// LoRARequest asks for an adapter.
type LoRARequest struct {
	Rank         *int     `json:"rank,omitempty"`
	Alpha        *int     `json:"alpha,omitempty"`
	Dropout      *float64 `json:"dropout,omitempty"`
	Seed         *Integer `json:"seed,omitempty"`
	TrainUnembed *bool    `json:"train_unembed,omitempty"`
}

// LoRAConfig is the adapter of a session, as it answers.
type LoRAConfig struct {
	Rank         int     `json:"rank"`
	Alpha        int     `json:"alpha"`
	Dropout      float64 `json:"dropout"`
	Seed         *Int64  `json:"seed,omitempty"`
	TrainUnembed bool    `json:"train_unembed"`
}

// SessionMetadata is the caller's own, kept and given back.
type SessionMetadata struct {
	WandB *WandB `json:"wandb,omitempty"`
}

// WandB names a run of Weights & Biases.
type WandB struct {
	Entity  string `json:"entity,omitempty"`
	Project string `json:"project,omitempty"`
	Group   string `json:"group,omitempty"`
	RunID   string `json:"run_id,omitempty"`
	RunName string `json:"run_name,omitempty"`
	URL     string `json:"url,omitempty"`
}

// SessionStatus is an enum.
type SessionStatus string

// The states of a session.
const (
	SessionCreating SessionStatus = "TRAINING_SESSION_STATUS_CREATING"
	SessionRunning  SessionStatus = "TRAINING_SESSION_STATUS_RUNNING"
	SessionStopping SessionStatus = "TRAINING_SESSION_STATUS_STOPPING"
	SessionStopped  SessionStatus = "TRAINING_SESSION_STATUS_STOPPED"
	SessionExpired  SessionStatus = "TRAINING_SESSION_STATUS_EXPIRED"
	SessionError    SessionStatus = "TRAINING_SESSION_STATUS_ERROR"
)

// Name is the state without its prefix: RUNNING.
func (s SessionStatus) Name() string {
	return strings.TrimPrefix(string(s), "TRAINING_SESSION_STATUS_")
}

// Final says that the session no longer holds its slot; STOPPING still does.
func (s SessionStatus) Final() bool {
	return s == SessionStopped || s == SessionExpired || s == SessionError
}

// Session is a training session.
type Session struct {
	ID                     string                `json:"id"`
	Status                 SessionStatus         `json:"status"`
	BaseModel              string                `json:"base_model"`
	ModelResourcesID       string                `json:"model_resources_id"`
	DisplayName            string                `json:"display_name,omitempty"`
	Step                   Int64                 `json:"step"` // durable optimiser steps
	PolicyState            PolicyState           `json:"policy_state"`
	Metadata               SessionMetadata       `json:"metadata"`
	LoRAConfig             *LoRAConfig           `json:"lora_config,omitempty"`
	ResumeFromCheckpointID string                `json:"resume_from_checkpoint_id,omitempty"`
	InferenceCheckpoints   []InferenceCheckpoint `json:"inference_checkpoints"` // never nil in an answer
	TrainingCheckpoints    []TrainingCheckpoint  `json:"training_checkpoints"`  // never nil in an answer
	Error                  *Fault                `json:"error,omitempty"`       // only in ERROR
	CreatedAt              time.Time             `json:"created_at"`
	UpdatedAt              time.Time             `json:"updated_at"`
	CreatedBy              string                `json:"created_by"`
}

// PolicyState counts weights in optimiser steps since the base model, which is 0.
type PolicyState struct {
	AppliedWeightsVersion Int64 `json:"applied_weights_version"` // served by the generators
	TargetWeightsVersion  Int64 `json:"target_weights_version"`  // promised by the last weights-sync
	TrainerStep           Int64 `json:"trainer_step"`            // made by the last optim-step
	PendingPublish        bool  `json:"pending_publish"`
}
