package runner

import (
	"context"
	"time"

	"trainer/recipe"
)

// Backend is a service with training sessions, implemented by internal/together. All methods are safe for concurrent
// use. Errors: *Refused and *Unclear as described there; anything else is local (a cancelled context, a bad answer).
type Backend interface {
	// Models lists what the service trains; it costs nothing.
	Models(ctx context.Context) ([]Model, error)
	// Open creates a session. The POST is sent once: *Unclear when its fate is unknown. The session is not RUNNING yet.
	Open(ctx context.Context, spec SessionSpec) (Session, error)
	// Join returns a session that exists; it sends nothing.
	Join(spec SessionSpec, id string) Session
	// Sessions lists those on a resource, of everybody, finished ones too.
	Sessions(ctx context.Context, resource string) ([]SessionState, error)
	// Checkpoint reads one; *Refused with 404 where the service does not have it.
	Checkpoint(ctx context.Context, id string) (Checkpoint, error)
}

// Checkpoint is a checkpoint at the service, of any session.
type Checkpoint struct {
	SavedCheckpoint
	Inference bool // weights alone, to serve or download; else for training on
	BaseModel string
	Session   string
	LoRARank  int // 0: full weights, or not known
}

// Session is one training session. Safe for concurrent use; trainer operations take effect in the order of Submit.
type Session interface {
	ID() string
	// Prepare encodes op, and uploads the body when it is large. It has no effect on training and may run steps ahead;
	// the bytes it returns are what is sent.
	Prepare(ctx context.Context, op Op) (Prepared, error)
	// Submit sends p under the idempotency key, again with the same key and bytes after an unclear attempt, until the
	// service accepted it (2xx), refused it (*Refused), or Patience has run out (*Unclear).
	Submit(ctx context.Context, key string, p Prepared) (id string, err error)
	// Wait polls operation id until it is final: *Failed when the service gave it up, ErrGone when it no longer knows it,
	// *TimedOut when that takes longer than OperationTimeout, *Unclear when no read was answered for longer than Patience.
	Wait(ctx context.Context, op OpName, id string) (Result, error)
	// Look reads the operation once and says whether it is final.
	Look(ctx context.Context, op OpName, id string) (bool, error)
	// State reads the session once.
	State(ctx context.Context) (SessionState, error)
	// Close asks the session to stop, and waits until it no longer holds its slot. A session that is gone is closed.
	Close(ctx context.Context) error
}

// Resources is what bills.
type Resources interface {
	// Price is of the whole resource, in US dollars an hour.
	Price(ctx context.Context, spec ResourceSpec) (float64, error)
	// Create is sent once: *Unclear when its fate is unknown.
	Create(ctx context.Context, spec ResourceSpec) (Resource, error)
	// Resource reads one.
	Resource(ctx context.Context, id string) (Resource, error)
	// Mine lists what this key's owner created, all pages, newest first; finished ones too when all is true. at is the
	// service's clock when it answered.
	Mine(ctx context.Context, all bool) (mine []Resource, at time.Time, err error)
	// Extend moves expiry to at least d from now.
	Extend(ctx context.Context, id string, d time.Duration) error
	// Stop releases the GPUs; with force, also with sessions active. A resource that has stopped is stopped.
	Stop(ctx context.Context, id string, force bool) (Resource, error)
}

// Model is a row of what the service trains.
type Model struct {
	Name       string
	DefaultGPU string
	Configs    []ModelConfig // one a GPU type
	StandIn    bool          // the sandbox's body in place of a real model
}

// ModelConfig is a model on a GPU type; nil where the service does not offer it.
type ModelConfig struct {
	GPUType   string
	LoRA      *TrainLimits
	Full      *TrainLimits
	Generator *GeneratorLimits
}

// TrainLimits are of one training mode.
type TrainLimits struct {
	MaxBatchSize int // samples in a forward_backward
	MaxSeqLength int // tokens in a sample
	MaxRank      int // 0 for full weights
}

// GeneratorLimits are of sampling.
type GeneratorLimits struct {
	ContextLength int // tokens of prompt plus completion
	MaxTokens     int // the service's default
	Temperature   float64
}

// ResourceSpec is the body of a create.
type ResourceSpec struct {
	BaseModel       string
	BaseWeightsRef  string // empty: the model's own
	GPUType         string // by name, never left to the service
	Generators      int
	LoRA            bool
	Muon            string // scaling strategy; empty: Adam
	InactiveTimeout time.Duration
}

// SessionSpec is the body of a session create, and how to talk to it.
type SessionSpec struct {
	Resource      string
	DisplayName   string
	LoRA          *recipe.LoRA // nil: full weights
	LoRASeed      int64
	From          string // checkpoint id; empty: the start
	LoadOptimizer bool   // with From
	// Patience bounds how long Submit repeats an unclear POST, and Wait a read; OperationTimeout how long Wait polls.
	Patience, OperationTimeout time.Duration
}

// Resource is what GET says. ServerTime is the answer's Date; zero times are absent.
type Resource struct {
	ID, Status, BaseModel, BaseWeightsRef, GPUType, CreatedBy string
	Generators                                                int
	LoRA                                                      bool
	QueuePosition                                             int // 0: not queued
	InactiveTimeout                                           time.Duration
	CreatedAt, UpdatedAt, ExpiresAt, ServerTime               time.Time
	ErrorCode, ErrorMessage                                   string
}

// The states of a resource and of a session, without the API's prefix.
const (
	Pending  = "PENDING"
	Creating = "CREATING"
	Ready    = "READY"
	Running  = "RUNNING"
	Stopping = "STOPPING"
	Stopped  = "STOPPED"
	Expired  = "EXPIRED"
	Errored  = "ERROR"
)

// SessionState is what GET says. Versions count optimiser steps since the base model, Step is the durable counter.
type SessionState struct {
	ID, Status, Resource, DisplayName string
	Step                              int64
	TrainerStep, Target, Applied      int64
	PendingPublish                    bool
	ErrorCode, ErrorMessage           string
	ServerTime                        time.Time
}
