package runner

import (
	"cmp"
	"fmt"
	"math"
	"strconv"

	"trainer/internal/dataset"
	"trainer/internal/diag"
	"trainer/loss"
	"trainer/recipe"
	"trainer/schedule"
)

// maxSteps bounds a plan: beyond it a recipe is more likely wrong than long.
const maxSteps = 10_000_000

// NewPlan says what a run of in will do. It is pure: the same inputs, the same plan. The error is a diag.List.
func NewPlan(in *Inputs) (*Plan, error) {
	r, p := in.Recipe, sized(in)
	if err := cmp.Or(in.Start.fits(r), in.Start.compares(r), in.Teacher.teaches(r)); err != nil {
		return nil, err
	}
	var l diag.List
	steps := p.length(r, &l)
	if s := in.Start; s != nil && s.Done >= steps && len(l) == 0 {
		return nil, s.fault("the plan has %d steps, and the fork begins behind step %d: give it more, with --set train.num_steps=%d", steps, s.Done, s.Done+steps)
	}
	if len(l) > 0 {
		return nil, l
	}
	if err := p.rates(r, steps, &l); err != nil || len(l) > 0 {
		return nil, orList(err, l)
	}
	p.count(in, steps)
	lock, err := newLock(in)
	p.Lock = lock
	return p, err
}

// sized is a plan of no steps yet: how large its batches are, and how many an epoch has.
func sized(in *Inputs) *Plan {
	r := in.Recipe
	p := &Plan{BatchSize: r.Train.BatchSize, Rows: in.Train.EpochLen()}
	if in.Held != nil {
		p.Held = in.Held.Len()
	}
	if ro := r.Rollout; ro != nil {
		p.BatchSize, p.GroupSize, p.StepsPerBatch = ro.BatchSize, ro.GroupSize, ro.Minibatches*ro.NumIterations
	}
	p.BatchesPerEpoch = p.Rows / p.BatchSize
	if !r.Train.DropLast && p.Rows%p.BatchSize != 0 {
		p.BatchesPerEpoch++
	}
	return p
}

func orList(err error, l diag.List) error {
	if err != nil {
		return err
	}
	return l.Err()
}

// length is the number of optimiser steps, and sets Epochs.
func (p *Plan) length(r *recipe.Recipe, l *diag.List) int {
	if key := batchKey(r); p.BatchesPerEpoch == 0 {
		l.Add(r.At(key), key, "an epoch has %d rows, fewer than the batch of %d, and train.drop_last drops what is left: nothing would train", p.Rows, p.BatchSize)
		return 0
	}
	if _, ok := r.Loss.Params.(loss.Accompanied); ok && p.BatchSize < 2 {
		l.Add(r.At("train.batch_size"), "train.batch_size", "%s takes at least 2 rows a step: it also scores each prompt before the completion of another row", r.Loss.Type)
		return 0
	}
	per := p.perBatch()
	if n := r.Train.NumSteps; n != nil {
		p.Epochs = float64(*n) / float64(p.BatchesPerEpoch*per)
		if *n%per != 0 {
			l.Add(r.At("train.num_steps"), "train.num_steps", "must be a multiple of the %d steps that a rollout batch feeds (minibatches × num_iterations), as %d or %d, got %d", per, max(1, *n/per)*per, (*n/per+1)*per, *n)
		}
		if *n > maxSteps {
			l.Add(r.At("train.num_steps"), "train.num_steps", "must be at most %d, got %d", maxSteps, *n)
		}
		return *n
	}
	p.Epochs = *r.Train.Epochs
	n := math.Ceil(p.Epochs*float64(p.BatchesPerEpoch)-1e-9) * float64(per)
	if n > maxSteps {
		l.Add(r.At("train.epochs"), "train.epochs", "%v epochs of %d batches are more than %d steps", p.Epochs, p.BatchesPerEpoch, maxSteps)
		return 0
	}
	return max(per, int(n))
}

// batchKey is where the size of a batch of rows stands.
func batchKey(r *recipe.Recipe) string {
	if r.Rollout != nil {
		return "rollout.batch_size"
	}
	return "train.batch_size"
}

// rates evaluates the schedule, here and nowhere else.
func (p *Plan) rates(r *recipe.Recipe, steps int, l *diag.List) error {
	s := r.LRSchedule
	warmup, err := schedule.WarmupSteps(s.WarmupRatio, s.WarmupSteps, steps)
	if err != nil {
		key := "lr_schedule.warmup_steps"
		if s.WarmupSteps == nil {
			key = "lr_schedule.warmup_ratio"
		}
		l.Add(r.At(key), key, "%v", err)
		return nil
	}
	p.Warmup = warmup
	ramp := schedule.Ramp{Warmup: warmup, Floor: s.MinLRRatio, Shape: s.Shape}
	if p.Rates, err = ramp.Rates(r.Optimizer.LearningRate, steps); err != nil {
		l.Add(r.At("lr_schedule"), "lr_schedule", "%v", err)
	}
	return nil
}

// count adds up the tokens of all steps, row by row, in the order in which they will be trained.
func (p *Plan) count(in *Inputs, steps int) {
	batches, each := steps/p.perBatch(), int64(max(1, p.GroupSize))
	if l := in.softly(); l != nil && in.samples() {
		each, p.Copies = each*int64(l.TopK), l.TopK
	} else if l != nil {
		for i := range in.Train.Len() {
			p.Copies = max(p.Copies, in.Train.Sequences(i))
		}
	}
	for done := 0; done < batches; done += p.BatchesPerEpoch {
		order := in.Train.Order(in.Seeds.Order, done/p.BatchesPerEpoch)
		n := min(len(order), min(p.BatchesPerEpoch, batches-done)*p.BatchSize)
		for _, i := range order[:n] {
			tokens, trained := in.Train.Count(i)
			p.Tokens += int64(tokens) * each
			p.Trained += int64(trained)
		}
		if ro := in.Recipe.Rollout; ro != nil {
			p.Sampled += int64(n*ro.GroupSize) * int64(ro.SamplingParams.MaxTokens)
		}
	}
	p.Lengths = histogram(in.Train)
}

// histogram doubles its bounds from 16 tokens on.
func histogram(s *dataset.Set) Histogram {
	var h Histogram
	for i := range s.Len() {
		n := s.Longest(i)
		h.Longest = max(h.Longest, n)
	}
	for b := 16; ; b *= 2 {
		h.Bounds = append(h.Bounds, b)
		if b >= h.Longest {
			break
		}
	}
	h.Counts = make([]int, len(h.Bounds))
	for i := range s.Len() {
		n := s.Longest(i)
		for j, b := range h.Bounds {
			if n <= b {
				h.Counts[j]++
				break
			}
		}
	}
	return h
}

// newLock hashes what decides the result.
func newLock(in *Inputs) (Lock, error) {
	rows, err := in.Train.Rendered()
	if err != nil {
		return nil, fmt.Errorf("render the first rows: %w", err)
	}
	l := Lock{"recipe": in.Recipe.Hash(), "dataset.train": in.Train.Hash(), "first_rows": rows,
		"seed.order": strconv.FormatInt(in.Seeds.Order, 10), lockBackend: "service"}
	if in.Sandbox {
		l[lockBackend] = "sandbox"
	}
	for i, s := range in.Train.Sources() {
		l[fmt.Sprintf("dataset.train.%d", i)] = s.SHA256
	}
	for ref, commit := range in.Commits {
		l[lockRevision+ref] = commit
	}
	in.Start.enter(l)
	in.Teacher.enterTeacher(l)
	if in.Held != nil {
		l["dataset.validation"] = in.Held.Hash()
		for i, s := range in.Held.Sources()[:len(in.Recipe.Dataset.Validation)] {
			l[fmt.Sprintf("dataset.validation.%d", i)] = s.SHA256
		}
	}
	if in.Recipe.LoRA != nil {
		l["seed.lora"] = strconv.FormatInt(in.Seeds.LoRA, 10)
	}
	if err := lockPrograms(in.Recipe, l); err != nil {
		return nil, err
	}
	if in.Tokenizer != nil {
		l["tokenizer"] = in.Tokenizer.Hash()
	}
	if in.Template != nil {
		l["template"] = in.Template.Hash()
	}
	return l, nil
}
