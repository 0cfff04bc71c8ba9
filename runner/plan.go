package runner

import "time"

// Plan says exactly how many, at which rate, for how much. It is plain data: it can be saved, and it goes stale when
// the inputs change, which Lock tells.
type Plan struct {
	Rates           []float64 `json:"rates"` // learning rate of each step, [steps]
	BatchesPerEpoch int       `json:"batches_per_epoch"`
	Epochs          float64   `json:"epochs"`
	BatchSize       int       `json:"batch_size"`      // rows a step; prompts a rollout batch
	Rows            int       `json:"rows"`            // rows an epoch, after weights
	Held            int       `json:"validation_rows"` // validation rows
	Tokens          int64     `json:"tokens"`          // of all steps
	Trained         int64     `json:"trained_tokens"`  // of which carry a weight
	Warmup          int       `json:"warmup_steps"`    // steps
	Lengths         Histogram `json:"lengths"`
	// Of the loops that sample, 0 elsewhere: completions a prompt, optimiser steps that a rollout batch feeds, and the most
	// tokens that all steps can sample. Tokens are then those of the prompts, each once a completion.
	GroupSize     int   `json:"group_size,omitempty"`
	StepsPerBatch int   `json:"steps_per_batch,omitempty"`
	Sampled       int64 `json:"max_sampled_tokens,omitempty"`
	// Copies is how many sequences a row, or a completion, is sent as at most, where a teacher's likeliest tokens are learnt; 0
	// elsewhere. All figures of tokens count them.
	Copies int `json:"copies,omitempty"`
	// Evaluates: the run trains nothing. Rates are then of the steps that its weights contain, all of them 0.
	Evaluates bool  `json:"evaluates,omitempty"`
	Lock      Lock  `json:"lock"`
	Cost      *Cost `json:"cost"` // nil without a price
}

// perBatch is how many steps a batch feeds: 1 where nothing is sampled.
func (p *Plan) perBatch() int { return max(1, p.StepsPerBatch) }

// Until is where a life ends that begins behind from steps and may take most: a rollout batch is trained to its end.
func (p *Plan) Until(from, most int) int {
	per := p.perBatch()
	return min(len(p.Rates), (from+most+per-1)/per*per)
}

// Histogram counts rows by their length in tokens: Counts[i] have at most Bounds[i] tokens and more than Bounds[i-1].
type Histogram struct {
	Bounds  []int `json:"bounds"`
	Counts  []int `json:"counts"`
	Longest int   `json:"longest"`
}

// Lock is the hashes of everything that decides the result, by name: recipe, dataset, tokenizer, template, rows, seeds.
type Lock map[string]string

// Cost is what a price makes of the plan; hours of training are not known before the first steps.
type Cost struct {
	USDPerHour float64       `json:"usd_per_hour"`                   // of all that the run asks for
	TeacherUSD float64       `json:"teacher_usd_per_hour,omitempty"` // of which for the teacher's own resource
	DeadMan    time.Duration `json:"dead_man_ns"`                    // what a kill -9 can leave running: inactive_timeout plus a minute
	DeadManUSD float64       `json:"dead_man_usd"`
}
