package engine

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// Parts says what of a model is saved or loaded.
type Parts struct {
	Weights   bool // what trains: all weights, or the adapter
	Optimizer bool // the moments of Adam and the count of steps
	Gradient  bool // what Backward has gathered since the last Step
}

// The parts of a checkpoint, by the prefix of their tensors' names.
const (
	prefixM    = "optim.m."
	prefixV    = "optim.v."
	prefixGrad = "grad."
)

// section is one slab of a checkpoint.
type section struct {
	prefix string
	slab   []float32
	wanted bool
	what   string
}

func (m *Model) sections(p Parts) []section {
	return []section{
		{"", m.params, p.Weights, "weights"},
		{prefixM, m.m, p.Optimizer, "optimizer state"},
		{prefixV, m.v, p.Optimizer, "optimizer state"},
		{prefixGrad, m.grad, p.Gradient, "gradient"},
	}
}

// Save writes a safetensors file with the parts asked for; loading the same parts continues with the same bits. Tensors have
// the names and shapes of PEFT and Transformers, without padding. The bytes are a function of the model's state.
func (m *Model) Save(w io.Writer, parts Parts) error {
	var all []tensor
	for _, s := range m.sections(parts) {
		if !s.wanted {
			continue
		}
		for _, span := range m.spans {
			all = append(all, tensor{span: span, name: s.prefix + span.name, slab: s.slab})
		}
	}
	meta, err := metadata(m.base, m.lora, m.steps)
	if err == nil {
		err = writeTensors(w, meta, all)
	}
	if err != nil {
		return fmt.Errorf("saving a model: %w", err)
	}
	return nil
}

// Save writes the weights as Model.Save does with Parts{Weights: true}.
func (w *Weights) Save(out io.Writer) error {
	m := &Model{base: w.base, lora: w.lora, params: w.params, spans: w.spans, steps: w.steps}
	return m.Save(out, Parts{Weights: true})
}

// Metadata keys.
const (
	keyEngine = "engine"
	keyConfig = "config"
	keyLoRA   = "lora"
	keyBase   = "base"
	keyShards = "shards"
	keyStep   = "step"
)

// loraShape is the part of LoRA that a checkpoint must agree with.
type loraShape struct {
	Rank         int     `json:"rank"`
	Alpha        float64 `json:"alpha"`
	TrainUnembed bool    `json:"train_unembed"`
}

func metadata(b *Base, l *LoRA, steps int64) (map[string]string, error) {
	config, err := json.Marshal(b.config)
	if err != nil {
		return nil, err
	}
	meta := map[string]string{
		"format": "pt", keyEngine: Version, keyConfig: string(config), keyLoRA: "none",
		keyShards: strconv.Itoa(shardCount), keyStep: strconv.FormatInt(steps, 10),
	}
	if l != nil {
		shape, err := json.Marshal(loraShape{l.Rank, l.Alpha, l.TrainUnembed})
		if err != nil {
			return nil, err
		}
		meta[keyLoRA], meta[keyBase] = string(shape), fmt.Sprintf("%x", b.hash)
	}
	return meta, nil
}

// Load replaces the parts asked for by those of a file that Save wrote; the optimizer's brings the count of steps. It refuses
// a file of another engine version, shape, adapter or base, one that lacks a part, and bytes that are no such file; the model
// is then as it was. It never reads more than such a file has.
func (m *Model) Load(r io.Reader, parts Parts) error {
	if err := m.load(bufio.NewReaderSize(r, 1<<16), parts); err != nil {
		return fmt.Errorf("loading a model: %w", err)
	}
	return nil
}

func (m *Model) load(r io.Reader, parts Parts) error {
	h, err := readHeader(r)
	if err != nil {
		return err
	}
	steps, err := m.agree(h.metadata)
	if err != nil {
		return err
	}
	sections := m.sections(parts)
	known := map[string]tensor{}
	for i := range sections {
		s := &sections[i]
		if s.slab = nil; s.wanted {
			s.slab = make([]float32, len(m.params))
		}
		for _, span := range m.spans {
			name := s.prefix + span.name
			if _, there := h.entries[name]; s.wanted && !there {
				return fmt.Errorf("no tensor %q: the checkpoint was saved without its %s", name, s.what)
			}
			known[name] = tensor{span: span, name: name, slab: s.slab}
		}
	}
	for _, name := range h.names {
		t, ok := known[name]
		if !ok {
			return fmt.Errorf("tensor %q is none of this model's", name)
		}
		if err := readTensor(r, t, h.entries[name]); err != nil {
			return err
		}
	}
	if _, err := io.ReadFull(r, make([]byte, 1)); !errors.Is(err, io.EOF) {
		return errors.New("there are bytes after the last tensor")
	}
	m.adopt(sections, parts, steps)
	return nil
}

// adopt copies what was read; nothing can go wrong any more.
func (m *Model) adopt(sections []section, parts Parts, steps int64) {
	for i, s := range m.sections(parts) {
		if s.wanted {
			copy(s.slab, sections[i].slab)
		}
	}
	m.touched = m.touched || parts.Gradient
	if parts.Optimizer {
		m.steps = steps
	}
	if parts.Weights {
		m.refresh()
	}
}

// agree compares a file's metadata with the model and returns the count of steps.
func (m *Model) agree(meta map[string]string) (steps int64, err error) {
	want, err := metadata(m.base, m.lora, 0)
	if err != nil {
		return 0, err
	}
	for _, key := range []string{keyEngine, keyShards, keyConfig, keyLoRA, keyBase} {
		if meta[key] != want[key] {
			return 0, fmt.Errorf("%s: the checkpoint has %q, this model %q", key, meta[key], want[key])
		}
	}
	steps, err = strconv.ParseInt(meta[keyStep], 10, 64)
	if err != nil || steps < 0 {
		return 0, fmt.Errorf("%s: %q is no count of optimiser steps", keyStep, meta[keyStep])
	}
	return steps, nil
}
