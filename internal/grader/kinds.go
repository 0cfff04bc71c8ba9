package grader

import (
	"context"
	"encoding/json"
)

// Kind is a row of the table of graders. New returns a pointer to a fresh struct with its defaults set.
type Kind struct {
	Name string
	New  func() Grader
}

// Call asks a stranger's grader by the protocol of the worker room and returns its score. It is safe for concurrent use.
type Call func(ctx context.Context, r Request) (Score, error)

// Request is what a stranger's grader is asked.
type Request struct {
	Sample     string          `json:"sample"`
	Prompt     json.RawMessage `json:"prompt"`
	Completion string          `json:"completion"`
	Answer     string          `json:"answer"` // after the reasoning
	Target     json.RawMessage `json:"target"`
	Row        json.RawMessage `json:"row"`
	Tokens     int             `json:"tokens"`
	StopReason string          `json:"stop_reason"`
}

// Outside is a Grader that asks outside, which needs a person's leave.
type Outside interface {
	Grader
	// Allow sets what the grader asks; without it every Grade is an error.
	Allow(Call)
}
