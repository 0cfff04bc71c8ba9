package runner

import (
	"context"
	"time"
)

// EventKind names what happened.
type EventKind string

// The kinds of events.
const (
	StageEvent EventKind = "stage"      // Text: provisioning, queued (position 3), loading the model, training, releasing
	StepEvent  EventKind = "step"       // an optimiser step is done; Metrics is its part of the line of metrics.jsonl; Text says that it was left out
	EvalEvent  EventKind = "eval"       // held-out rows were scored at Done
	SaveEvent  EventKind = "checkpoint" // a checkpoint holds Done steps; Text is its kind and id
	// DownloadEvent: the inference checkpoint of Done steps is in the run folder; Text is its kind, id and place.
	DownloadEvent EventKind = "download"
	RetryEvent    EventKind = "retry"   // a request is tried again; Text says which and why
	WarnEvent     EventKind = "warning" // Text
	// SampleEvent: a completion of the rollout batch that the steps behind Done are trained on, or in a loop that trains on rows of the
	// evaluation at Done; Prompt as it was rendered, Text what was sampled, Metrics its reward, where it has one, tokens and, where it
	// is trained on, advantage.
	SampleEvent EventKind = "completion"
	EndEvent    EventKind = "end" // Text is the outcome (complete, interrupted, budget, failed), or "failed: why"
)

// Event is plain data and survives JSON both ways: --json, events.jsonl and every sink read the same. Done counts the
// optimiser steps applied so far.
type Event struct {
	Time    time.Time          `json:"time"`
	Kind    EventKind          `json:"kind"`
	Done    int                `json:"done"`
	Text    string             `json:"text,omitempty"`
	Prompt  string             `json:"prompt,omitempty"`
	Metrics map[string]float64 `json:"metrics,omitempty"`
}

// Sink is told of a run. Open comes before anything is paid, and its error stops the run. Emit and Close are called in
// order from one goroutine that belongs to the sink, behind a queue: a slow sink cannot slow the run.
type Sink interface {
	Open(ctx context.Context, info RunInfo) error
	Emit(Event)
	Close(ctx context.Context) error
}

// RunInfo says which run it is. Dir is the run folder; Done is where this life starts.
type RunInfo struct {
	ID, Name, Dir   string
	BaseModel       string
	Recipe          string // the path that was given
	Plan            *Plan
	Done            int
	StandIn         bool // the sandbox stands in for BaseModel
	Sandbox         bool
	PriceUSDPerHour float64
	Version         string // of this binary
	Start           string // where the run has begun, in words; empty: at the base model's weights
}

// Summary is how a life ended.
type Summary struct {
	Outcome  string // complete, interrupted, budget, failed
	Begun    int    // steps that were done where the run began: of a fork
	Done     int
	Steps    int
	CostUSD  float64
	Saved    []Saved // newest first
	Dir      string
	LastLoss float64 // train/loss of the last step; NaN when there is none
	LastEval float64 // eval/loss of the last evaluation; NaN when there is none
	// Last are the newest values of what a loop that samples is followed by: reward/mean, and what evaluations measure; by name.
	Last       map[string]float64
	Unreleased []string // what of ours may still be there
	Twins      []string // resources that seem to be ours beside those that the run knows: a create was carried out twice
	Idle       bool     // the run was complete before this life, which did nothing
	Untold     error    // what a sink could not write; the run itself is not touched by it
}

// Saved is a checkpoint of this run.
type Saved struct {
	Done      int
	Inference bool
	SavedCheckpoint
}
