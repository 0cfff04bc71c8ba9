package engine

import (
	"slices"
	"sync"
)

// Weights is an immutable copy of what a model trains: training never touches it. Its methods are safe for concurrent use.
type Weights struct {
	base   *Base
	lora   *LoRA
	params []float32
	spans  []span
	steps  int64
	hash   [32]byte

	made sync.Once
	view *Model // see forward
}

// Publish returns a copy of the trained weights, which later steps do not change.
func (m *Model) Publish() *Weights {
	return &Weights{base: m.base, lora: m.lora, params: slices.Clone(m.params), spans: m.spans, steps: m.steps, hash: m.Hash()}
}

// Hash is the SHA-256 of the weights, equal to the model's when they were published.
func (w *Weights) Hash() [32]byte { return w.hash }

// Steps is how many optimiser steps the weights contain.
func (w *Weights) Steps() int64 { return w.steps }

// forward is the weights as the passes use them, made at the first use. Nothing of it changes afterwards but what a group
// holds for itself.
func (w *Weights) forward() *Model {
	w.made.Do(func() { w.view = newView(w.base, w.lora, w.params) })
	return w.view
}
