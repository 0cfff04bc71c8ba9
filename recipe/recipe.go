package recipe

import (
	"time"

	"trainer/internal/grader"
	"trainer/loss"
	"trainer/schedule"
)

// Recipe is one file with its parents merged, its defaults filled in and all of it checked. It is read-only after Load
// and safe for concurrent use. A pointer that is nil stands for null; a section of another loop is nil.
type Recipe struct {
	// Version of this schema.
	Version int `yaml:"version" default:"1" validate:"eq=1"`
	// Name of the run: run folders are runs/<name>-<stamp>. null takes the file's stem.
	Name string `yaml:"name" null:"true"`
	// Description is free text.
	Description string `yaml:"description" default:"\"\""`
	// Seed: the order of the rows, the adapter's initialisation and every other draw derive from it.
	Seed int64 `yaml:"seed" default:"42"`
	// Extends names parents, local files relative to this one; later wins, this file last.
	Extends []string `yaml:"extends"`

	// BaseModel is what is tuned; sandbox/NAME is a model of the built-in sandbox.
	BaseModel string `yaml:"base_model" validate:"required"`
	// BaseWeightsRef starts from registered full weights: together://ml_… or together://ml_…@rv_….
	BaseWeightsRef *string `yaml:"base_weights_ref"`
	// ModelResourcesID attaches to a running resource, which is never stopped by us; better: run --attach ID.
	ModelResourcesID *string `yaml:"model_resources_id"`
	// Compute says what the GPUs are and how many serve sampling.
	Compute Compute `yaml:"compute_config"`
	// InactiveTimeout is the service's own dead-man switch: GPUs stop after so long without an operation.
	InactiveTimeout time.Duration `yaml:"inactive_timeout" default:"15m" validate:"gte=300s,lte=86400s"`
	// KeepResources leaves the GPUs running, and billing, after the run.
	KeepResources string `yaml:"keep_resources" default:"never" validate:"oneof=never on_failure always"`
	// LoRA sizes the adapter; null trains the full weights.
	LoRA *LoRA `yaml:"lora_config" default:"{}"`
	// InitFrom starts from a checkpoint instead of the base weights; schedule and data begin at the first step. To go on
	// behind a step of a run, `trainer resume RUN --from STEP`.
	InitFrom *InitFrom `yaml:"init_from"`

	// Tokenizer is auto (the base model's own, from the hub), a folder, a file, or hf://org/name@revision.
	Tokenizer string `yaml:"tokenizer" default:"auto"`
	// Chat says how messages become text and which tokens train.
	Chat Chat `yaml:"chat"`
	// Dataset says which rows, and what becomes of those that do not fit.
	Dataset Dataset `yaml:"dataset"`
	// Loss is what is minimised; its type decides the loop.
	Loss Loss `yaml:"loss"`
	// Optimizer turns gradients into steps.
	Optimizer Optimizer `yaml:"optimizer"`
	// LRSchedule shapes the learning rate over the run.
	LRSchedule LRSchedule `yaml:"lr_schedule"`
	// Train says how long, and in which portions.
	Train Train `yaml:"train"`
	// Rollout says how completions are sampled.
	Rollout *Rollout `yaml:"rollout" default:"{}" null:"false" loop:"reinforcement,distillation"`
	// Reward lists the graders; their weighted sum is the reward. Required in reinforcement, unless rollout.env pays by itself. In the
	// loops that train on rows they grade what evaluations sample, and train nothing: eval.sampling_params.
	Reward []Reward `yaml:"reward" loop:"supervised,preference,reinforcement"`
	// Advantage turns rewards into advantages.
	Advantage *Advantage `yaml:"advantage" default:"{}" null:"false" loop:"reinforcement"`
	// Reference is the frozen policy; in reinforcement only beside a KL term (loss.params.beta or advantage.kl_coef).
	Reference *Reference `yaml:"reference" default:"{}" null:"false" loop:"preference,reinforcement"`
	// Teacher is the model that distillation learns from. Without it and rollout, reverse_kl trains on rows of tokens that have
	// teacher_logprobs.
	Teacher *Teacher `yaml:"teacher" null:"false" validate:"required" loop:"distillation"`
	// Eval scores held-out rows.
	Eval Eval `yaml:"eval"`
	// Checkpoint says when weights are saved and which are kept.
	Checkpoint Checkpoint `yaml:"checkpoint"`
	// Logging says who else is told.
	Logging Logging `yaml:"logging"`
	// Limits end a run with a checkpoint, resumable.
	Limits Limits `yaml:"limits"`
	// Test is what trainer test runs and asserts.
	Test Test `yaml:"test"`

	trace
}

// Compute says what the resource is made of.
type Compute struct {
	// GPUType: null takes the model's default, which is sent by name.
	GPUType *string `yaml:"gpu_type"`
	// NumGeneratorReplicas serve sampling; 0 is a trainer alone.
	NumGeneratorReplicas int `yaml:"num_generator_replicas" default:"0" validate:"gte=0"`
}

// LoRA sizes the adapter.
type LoRA struct {
	// Rank of the two factors.
	Rank int `yaml:"rank" default:"32" validate:"gte=1"`
	// Alpha scales the adapter: its output counts alpha / rank.
	Alpha int `yaml:"alpha" default:"64" validate:"gte=1"`
	// Dropout is the share of the adapter's inputs that are zeroed in training.
	Dropout float64 `yaml:"dropout" default:"0.0" validate:"gte=0,lt=1"`
	// TrainUnembed puts an adapter on the output layer too.
	TrainUnembed bool `yaml:"train_unembed" default:"true"`
	// Seed of the adapter's initialisation; null derives it from seed.
	Seed *int64 `yaml:"seed"`
}

// InitFrom names the weights to start from: a checkpoint, or a step of another run.
type InitFrom struct {
	// CheckpointID at the service, of a training or, for weights alone, an inference checkpoint; or run.
	CheckpointID *string `yaml:"checkpoint_id"`
	// Run whose checkpoint is taken: its folder, as runs/NAME, from where the command is given.
	Run *string `yaml:"run"`
	// Step of that run: the steps that its weights contain; null is its last checkpoint.
	Step *int `yaml:"step" validate:"omitempty,gte=1"`
	// LoadOptimizer takes the optimiser's state too.
	LoadOptimizer bool `yaml:"load_optimizer" default:"false"`
}

// Chat says how messages become text and which tokens train.
type Chat struct {
	// Template is auto (the tokenizer's own), a .jinja file, hf://org/name@revision (another model's), the template itself, or none:
	// raw text without roles.
	Template string `yaml:"template" default:"auto"`
	// System is put before conversations that have no system message.
	System *string `yaml:"system"`
	// Args are passed to the template, as {enable_thinking: false}.
	Args map[string]any `yaml:"args"`
	// Date is the day, as 2026-01-31, that a template sees which writes the day on which it is used; such a template needs it.
	Date *string `yaml:"date"`
	// TrainOn chooses the trained tokens by message; train: false or weight: 0 in a message always excludes it.
	TrainOn string `yaml:"train_on" loop:"supervised,preference" default:"all_assistant_messages" validate:"oneof=all_assistant_messages last_assistant_message last_assistant_turn all_messages all_tokens per_message"`
	// AllowControlTokens turns text that spells a control token into that token.
	AllowControlTokens bool `yaml:"allow_control_tokens" default:"false"`
}

// Dataset says which rows, and what becomes of those that do not fit.
type Dataset struct {
	// Train is a path, one source, or a list of sources.
	Train []Source `yaml:"train" validate:"required"`
	// Validation has the same shapes; not beside validation_split.
	Validation []Source `yaml:"validation"`
	// ValidationSplit holds out a share (0.02) or a number of rows (200) of train, drawn by seed.
	ValidationSplit *Split `yaml:"validation_split"`
	// Shuffle orders the rows by seed and epoch; false is file order, source after source.
	Shuffle bool `yaml:"shuffle" default:"true"`
	// MaxLength in tokens: of a row; preference: of each side; prompts: of the prompt.
	MaxLength int `yaml:"max_length" default:"4096" validate:"gte=2"`
	// Overlong says what becomes of a longer row: keep_start and keep_end cut it, and the cut rows are counted.
	Overlong string `yaml:"overlong" default:"error" validate:"oneof=error drop keep_start keep_end"`
	// OnBadRow: skipped rows are counted and listed.
	OnBadRow string `yaml:"on_bad_row" default:"error" validate:"oneof=error skip"`
	// OnIdenticalPair says what becomes of a pair whose two sides are the same; dropped ones are listed.
	OnIdenticalPair string `yaml:"on_identical_pair" default:"drop" validate:"oneof=drop error keep" loop:"preference"`
}

// Source is where rows come from.
type Source struct {
	// Path: a file, a glob, hf://datasets/org/name@revision, files in it (hf://datasets/org/name@main/data/*.jsonl) or https://…; relative
	// to the file it stands in. Files are JSON lines, a JSON list or Parquet; the first two also in gzip or zstd.
	Path string `yaml:"path" validate:"required"`
	// Subset of an hf:// dataset; null is its only or its default one.
	Subset *string `yaml:"subset"`
	// Split of an hf:// dataset.
	Split string `yaml:"split" default:"train"`
	// SHA256 of the file, 64 hexadecimal digits; required for https://.
	SHA256 *string `yaml:"sha256" validate:"omitempty,len=64,hexadecimal"`
	// Format of the rows; auto takes the first row's shape, and a later row of another shape is a bad row.
	Format string `yaml:"format" default:"auto" validate:"oneof=auto messages prompt_completion text tokens preference labelled prompts"`
	// Fields maps our names to the columns of the file, by dotted paths, several joined, or group 1 of a regex, as {prompt: question, target: {column: answer, regex: '#### (.+)'}}.
	Fields map[string]Field `yaml:"fields"`
	// Weight is how often each row is seen an epoch: 2.0 twice, 0.5 a seeded half.
	Weight float64 `yaml:"weight" default:"1.0" validate:"gt=0"`
	// Limit keeps the first rows in file order.
	Limit *int `yaml:"limit" validate:"omitempty,gte=1"`

	// Dir is the folder of the file that the source stands in; a relative Path starts there.
	Dir string `yaml:"-"`
	// Key is the dotted key of the source, as dataset.train.0; Recipe.At finds its place.
	Key string `yaml:"-"`
}

// Field says which columns of a row make one of our fields: a column, or several joined by a blank line, those that are
// empty left out. A column is a dotted path into the row; a number in it indexes a list (instances.0.output).
type Field struct {
	// Columns to take: one, or a list joined by a blank line.
	Columns []string `yaml:"column" validate:"required"`
	// Regex cuts the text: its group 1 is kept, or the whole match when it has none.
	Regex string `yaml:"regex"`
}

// Split is what is held out: a share of the rows in (0, 1), or a number of rows.
type Split struct {
	Share float64
	Rows  int
}

// Loss is the type and its parameters. Params is never nil after Load.
type Loss struct {
	// Type of the loss; it decides the loop.
	Type string `yaml:"type" validate:"required"`
	// Reduction over the trained tokens of the whole step; empty where the loss has none.
	Reduction string `yaml:"reduction" validate:"omitempty,oneof=sum token_mean sequence_mean"`
	// Params of the loss that type names.
	Params loss.Loss `yaml:"params"`
}

// Optimizer is adam or muon; the keys of the other are refused. Scale-free: learning_rate is the peak of lr_schedule.
type Optimizer struct {
	// Type of the optimiser; the keys of the other are refused.
	Type string `yaml:"type" default:"adam" validate:"oneof=adam muon"`
	// LearningRate is the peak of lr_schedule. Full weights have no default: they need another rate than an adapter.
	LearningRate float64 `yaml:"learning_rate" validate:"gt=0"`
	// WeightDecay is decoupled from the gradient.
	WeightDecay float64 `yaml:"weight_decay" default:"0.0" validate:"gte=0"`
	// GradClipNorm limits the global gradient norm; 0 is off.
	GradClipNorm float64 `yaml:"grad_clip_norm" default:"1.0" validate:"gte=0"`

	// Beta1 is the decay of the first moment.
	Beta1 float64 `yaml:"beta1" default:"0.9" validate:"gte=0,lt=1" type:"adam"`
	// Beta2 is the decay of the second moment.
	Beta2 float64 `yaml:"beta2" default:"0.95" validate:"gte=0,lt=1" type:"adam"`
	// Eps is added to the root of the second moment.
	Eps float64 `yaml:"eps" default:"1.0e-8" validate:"gt=0" type:"adam"`

	// Momentum is the decay of the accumulated gradient.
	Momentum float64 `yaml:"momentum" default:"0.95" validate:"gte=0,lt=1" type:"muon"`
	// NewtonSchulzSteps are the iterations that make an update orthogonal.
	NewtonSchulzSteps int `yaml:"newton_schulz_steps" default:"5" validate:"gte=1" type:"muon"`
	// ScalingStrategy: match_adam gives an update the size that Adam's would have.
	ScalingStrategy string `yaml:"scaling_strategy" default:"match_adam" validate:"oneof=match_adam original" type:"muon"`
	// Adam is for the parameters that Muon leaves to Adam.
	Adam *Adam `yaml:"adam" default:"{}" null:"false" type:"muon"`
}

// Adam are Adam's knobs where Muon leaves parameters to it. LearningRate follows lr_schedule in proportion.
type Adam struct {
	// LearningRate is the peak; it follows lr_schedule in proportion.
	LearningRate float64 `yaml:"learning_rate" validate:"gt=0"`
	// Beta1 is the decay of the first moment.
	Beta1 float64 `yaml:"beta1" default:"0.9" validate:"gte=0,lt=1"`
	// Beta2 is the decay of the second moment.
	Beta2 float64 `yaml:"beta2" default:"0.95" validate:"gte=0,lt=1"`
	// Eps is added to the root of the second moment.
	Eps float64 `yaml:"eps" default:"1.0e-8" validate:"gt=0"`
	// WeightDecay is decoupled from the gradient.
	WeightDecay float64 `yaml:"weight_decay" default:"0.0" validate:"gte=0"`
	// GradClipNorm limits the gradient norm; 0 is off.
	GradClipNorm float64 `yaml:"grad_clip_norm" default:"1.0" validate:"gte=0"`
}

// LRSchedule shapes the learning rate: warm-up and floor around the shape that type names; the keys of the shape stand
// beside type.
type LRSchedule struct {
	// Type is the shape of the decay after warm-up; a shape's own keys stand beside it.
	Type string `yaml:"type"`
	// WarmupRatio is the share of the steps that warm up, at least one step when above 0.
	WarmupRatio float64 `yaml:"warmup_ratio" default:"0.03" validate:"gte=0,lte=1"`
	// WarmupSteps wins over warmup_ratio; null leaves it to the ratio.
	WarmupSteps *int `yaml:"warmup_steps" validate:"omitempty,gte=0"`
	// MinLRRatio is the floor, as a share of the peak.
	MinLRRatio float64 `yaml:"min_lr_ratio" default:"0.0" validate:"gte=0,lte=1"`
	// Shape is the row of schedule.Kinds with its keys decoded; never nil after Load.
	Shape schedule.Schedule `yaml:"-"`
}

// Train says how long, and in which portions.
type Train struct {
	// Epochs may be a fraction; null exactly where num_steps is given.
	Epochs *float64 `yaml:"epochs" default:"1" validate:"omitempty,gt=0"`
	// NumSteps in optimiser steps; the data repeats as needed. Not beside epochs.
	NumSteps *int `yaml:"num_steps" validate:"omitempty,gte=1"`
	// BatchSize in rows (preference: pairs) an optimiser step, however many requests carry them.
	BatchSize int `yaml:"batch_size" validate:"gte=1" loop:"supervised,preference"`
	// GradientAccumulation is the number of forward_backward requests a step; auto, which is 0 in Go, takes as few as the
	// model allows. It splits batch_size and never multiplies it.
	GradientAccumulation int `yaml:"gradient_accumulation" default:"auto" validate:"gte=1"`
	// DropLast leaves out an epoch's last, partial batch.
	DropLast bool `yaml:"drop_last" default:"false"`
	// Lookahead is the number of steps submitted ahead of the one that runs; preference: 1 at most.
	Lookahead int `yaml:"lookahead" default:"1" validate:"gte=0" loop:"supervised,preference"`
	// OnNonFinite says what a NaN or infinite loss does: stop ends the run and names the rows; skip_batch leaves the step
	// out, three times a run. Where the service has computed the loss, that goes back to a checkpoint.
	OnNonFinite string `yaml:"on_non_finite" default:"stop" validate:"oneof=stop skip_batch"`
}

// Sampling are the parameters of a sample request.
type Sampling struct {
	// MaxTokens sampled a completion.
	MaxTokens int `yaml:"max_tokens" validate:"required,gte=1"`
	// Temperature divides the logits; 0 is greedy.
	Temperature float64 `yaml:"temperature" default:"1.0" validate:"gte=0"`
	// TopP keeps the most likely tokens up to this probability.
	TopP float64 `yaml:"top_p" default:"1.0" validate:"gt=0,lte=1"`
	// TopK keeps so many of the most likely tokens; -1 is off.
	TopK int `yaml:"top_k" default:"-1" validate:"gte=-1,ne=0"`
	// Stop texts end a completion.
	Stop []string `yaml:"stop"`
}

// Rollout is of reinforcement and distillation.
type Rollout struct {
	// BatchSize in prompts a rollout batch.
	BatchSize int `yaml:"batch_size" default:"32" validate:"gte=1"`
	// GroupSize in completions a prompt.
	GroupSize int `yaml:"group_size" default:"8" validate:"gte=1"`
	// SamplingParams go to the service unchanged.
	SamplingParams Sampling `yaml:"sampling_params"`
	// Seeded sends a seed for each prompt, member and step, one completion a request: repeatable, slower.
	Seeded bool `yaml:"seeded" default:"false"`
	// Minibatches are optimiser steps a pass over the batch; groups stay whole.
	Minibatches int `yaml:"minibatches" default:"1" validate:"gte=1"`
	// NumIterations are passes over the batch.
	NumIterations int `yaml:"num_iterations" default:"1" validate:"gte=1"`
	// WeightSyncType says how new weights reach the generators.
	WeightSyncType string `yaml:"weight_sync_type" default:"synchronous" validate:"oneof=synchronous background_publish pipeline"`
	// MaxPolicyLag in rollout batches that sampling may run ahead of training.
	MaxPolicyLag int `yaml:"max_policy_lag" default:"0" validate:"gte=0"`
	// ReplayRoutedExperts trains through the experts that sampling chose.
	ReplayRoutedExperts bool `yaml:"replay_routed_experts" default:"false"`
	// DynamicSampling draws prompts until the batch is full of groups that differ; needs train.num_steps.
	DynamicSampling DynamicSampling `yaml:"dynamic_sampling" loop:"reinforcement"`
	// Truncated: what becomes of completions cut by max_tokens.
	Truncated string `yaml:"truncated" default:"keep" validate:"oneof=keep mask penalise"`
	// TruncatedBuffer: under penalise the reward falls from 0 to -1 over so many tokens before max_tokens.
	TruncatedBuffer int `yaml:"truncated_buffer" default:"128" validate:"gte=1" loop:"reinforcement"`
	// OnError says what a failed sample costs.
	OnError OnError `yaml:"on_error"`
	// Env is a multi-turn environment; null is single-turn.
	Env *Env `yaml:"env"`
}

// DynamicSampling draws prompts until the batch is full of groups that differ.
type DynamicSampling struct {
	// Enabled turns it on.
	Enabled bool `yaml:"enabled" default:"false"`
	// MaxBatches of prompts that are drawn for one rollout batch at most.
	MaxBatches int `yaml:"max_batches" default:"10" validate:"gte=1"`
}

// OnError says what a failed sample costs.
type OnError struct {
	// Retries of a sample before it is given up.
	Retries int `yaml:"retries" default:"2" validate:"gte=0"`
	// MinGroupSize scored members keep a group.
	MinGroupSize int `yaml:"min_group_size" default:"2" validate:"gte=1" loop:"reinforcement"`
}

// Env is a multi-turn environment outside this process.
type Env struct {
	// Type says how the environment is asked.
	Type string `yaml:"type" validate:"required,oneof=command http"`
	// Command is the argv, without a shell. Needs --allow-exec.
	Command []string `yaml:"command" validate:"required" type:"command"`
	// Dir is the folder it runs in, relative to the recipe's.
	Dir string `yaml:"dir" default:"." type:"command"`
	// Env names the variables that are passed on; their values are in no file of the run.
	Env []string `yaml:"env" type:"command"`
	// StartTimeout bounds the wait for the first answer.
	StartTimeout time.Duration `yaml:"start_timeout" default:"60s" validate:"gte=1s,lte=3600s" type:"command"`
	// Workers are the processes that run side by side.
	Workers int `yaml:"workers" default:"4" validate:"gte=1,lte=256" type:"command"`
	// URL is https, or http to a loopback address. Needs --allow-host.
	URL string `yaml:"url" validate:"required" type:"http"`
	// Headers of every request; ${env:NAME} takes a value from the environment, and stays unresolved in every file.
	Headers map[string]string `yaml:"headers" type:"http"`
	// Concurrency bounds the requests in flight.
	Concurrency int `yaml:"concurrency" default:"8" validate:"gte=1,lte=256" type:"http"`
	// MaxTurns of the assistant in an episode.
	MaxTurns int `yaml:"max_turns" default:"8" validate:"gte=1,lte=1000"`
	// Timeout of a request.
	Timeout time.Duration `yaml:"timeout" default:"30s" validate:"gte=1s,lte=3600s"`
	// Retries of a request.
	Retries int `yaml:"retries" default:"2" validate:"gte=0,lte=10"`
	// Params are handed to the environment.
	Params map[string]any `yaml:"params"`
}

// Reward is one grader and what its score counts. Params is never nil after Load.
type Reward struct {
	// Type of the grader.
	Type string `yaml:"type" validate:"required"`
	// Params of the grader that type names.
	Params grader.Grader `yaml:"params"`
	// Weight of the score in the reward; may be negative; 0 is measured and not added.
	Weight float64 `yaml:"weight" default:"1.0"`
	// Clip bounds the score: null or [lo, hi].
	Clip *[2]float64 `yaml:"clip"`
	// Gate replaces the whole reward where the clipped score is too low.
	Gate *Gate `yaml:"gate"`
	// OnUnscored: drop leaves the sample without a reward, skip leaves this grader out.
	OnUnscored string `yaml:"on_unscored" default:"drop" validate:"oneof=drop skip"`
	// Tests run before anything is paid.
	Tests []RewardTest `yaml:"tests"`
}

// Gate replaces the total where the clipped score is below Min.
type Gate struct {
	// Min is the least score that passes.
	Min float64 `yaml:"min" default:"0.5"`
	// Else is the reward of what does not.
	Else float64 `yaml:"else" default:"0.0"`
}

// RewardTest runs before any spending; Reward nil expects an unscored completion.
type RewardTest struct {
	// Completion to grade.
	Completion string `yaml:"completion"`
	// Target of the row.
	Target string `yaml:"target"`
	// Reward that is expected, within 1e-9; null expects an unscored completion.
	Reward *float64 `yaml:"reward"`
	// Open: the prompt ends inside the reasoning.
	Open bool `yaml:"open" default:"false"`
}

// Advantage turns rewards into advantages.
type Advantage struct {
	// Baseline is what is taken off a reward.
	Baseline string `yaml:"baseline" default:"group_mean" validate:"oneof=group_mean leave_one_out batch_mean none"`
	// Scale divides the result.
	Scale string `yaml:"scale" default:"group_std" validate:"oneof=group_std batch_std none"`
	// ZeroVariance: groups whose rewards are all equal teach nothing.
	ZeroVariance string `yaml:"zero_variance" default:"drop" validate:"oneof=drop keep"`
	// KLCoef weighs the KL to the reference inside the reward.
	KLCoef float64 `yaml:"kl_coef" default:"0.0" validate:"gte=0"`
	// ImportanceCap bounds a weight of each token: the trainer's probability before the batch is trained over that of
	// sampling; null is off.
	ImportanceCap *float64 `yaml:"importance_cap" validate:"omitempty,gt=0"`
}

// Reference is the frozen policy.
type Reference struct {
	// Source: start is the weights that training starts from; empty beside a checkpoint_id.
	Source string `yaml:"source" default:"start" validate:"oneof=start"`
	// CheckpointID takes another checkpoint; not beside source.
	CheckpointID *string `yaml:"checkpoint_id"`
}

// Teacher is the model that distillation learns from; same tokenizer. Its session has the form of lora_config. The student's own base
// model has it on the student's resource, other teachers, and those of forward_kl, on a resource of their own.
type Teacher struct {
	// BaseModel of the teacher; same tokenizer as the student's.
	BaseModel string `yaml:"base_model" validate:"required"`
	// BaseWeightsRef takes registered full weights.
	BaseWeightsRef *string `yaml:"base_weights_ref"`
	// InitFrom takes a checkpoint, or the weights of another run.
	InitFrom *InitFrom `yaml:"init_from"`
	// System is put before the prompt for the teacher alone: a system message, or where there are no roles, text. A row can have a
	// teacher_prompt of its own.
	System *string `yaml:"system"`
	// Compute of the teacher's resource, which has no generators; with forward_kl it has one at least, 1 where nothing is said.
	Compute Compute `yaml:"compute_config"`
	// ModelResourcesID attaches to a running resource.
	ModelResourcesID *string `yaml:"model_resources_id"`
}

// Eval scores held-out rows.
type Eval struct {
	// Every so many steps; null is off.
	Every *int `yaml:"every" default:"20" validate:"omitempty,gte=1"`
	// AtStart scores before the first step.
	AtStart bool `yaml:"at_start" default:"false"`
	// AtEnd scores after the last step.
	AtEnd bool `yaml:"at_end" default:"true"`
	// Limit in rows; null is all.
	Limit *int `yaml:"limit" validate:"omitempty,gte=1"`
	// EarlyStop ends the run when a metric has not improved; null is off.
	EarlyStop *EarlyStop `yaml:"early_stop"`
	// GroupSize in completions a prompt; k > 1 needs a temperature and adds pass@k.
	GroupSize int `yaml:"group_size" default:"1" validate:"gte=1"`
	// SamplingParams: temperature 0.0, the rest as in rollout. A loop that trains on rows has none, and its evaluations sample
	// nothing; given, with generators, they also complete each held-out row from what stands before its last trained answer.
	SamplingParams *Sampling `yaml:"sampling_params"`
}

// EarlyStop ends the run when Metric has not improved for Patience evaluations.
type EarlyStop struct {
	// Metric as in metrics.jsonl.
	Metric string `yaml:"metric" default:"eval/loss"`
	// Mode: whether less or more is better.
	Mode string `yaml:"mode" default:"min" validate:"oneof=min max"`
	// Patience in evaluations.
	Patience int `yaml:"patience" default:"3" validate:"gte=1"`
}

// Checkpoint says when weights are saved and which are kept.
type Checkpoint struct {
	// Every so many steps; null is off. A training checkpoint is always made at the end and on a graceful stop; a cadence longer
	// than the run leaves that one.
	Every *int `yaml:"every" default:"20" validate:"omitempty,gte=1"`
	// EveryDuration since the one before; null is off.
	EveryDuration *time.Duration `yaml:"every_duration" default:"30m" validate:"omitempty,gte=1s"`
	// KeepLast so many of each kind, training and inference: older ones are listed as forgotten and their copies removed. At the
	// service they stay, which has no delete route.
	KeepLast int `yaml:"keep_last" default:"3" validate:"gte=1"`
	// KeepBest keeps the checkpoint with the best metric too; null is off.
	KeepBest *KeepBest `yaml:"keep_best"`
	// InferenceEvery so many steps; null is off.
	InferenceEvery *int `yaml:"inference_every" validate:"omitempty,gte=1"`
	// InferenceAtEnd registers the final weights for inference.
	InferenceAtEnd bool `yaml:"inference_at_end" default:"true"`
	// Download: which inference checkpoints are copied into the run folder, under checkpoints/: none, the final one once the GPUs
	// are released, or those kept, beside the training. A copy is of the adapter where that is what is registered.
	Download string `yaml:"download" default:"none" validate:"oneof=none final kept"`
}

// KeepBest keeps the checkpoint with the best metric.
type KeepBest struct {
	// Metric as in metrics.jsonl.
	Metric string `yaml:"metric" default:"eval/loss"`
	// Mode: whether less or more is better.
	Mode string `yaml:"mode" default:"min" validate:"oneof=min max"`
}

// Logging says who else is told; metrics.jsonl is always written.
type Logging struct {
	// TensorBoard writes event files into the run folder.
	TensorBoard bool `yaml:"tensorboard" default:"false"`
	// WandB sends metrics to Weights & Biases; null is off.
	WandB *WandB `yaml:"wandb"`
	// MLflow sends metrics to MLflow; null is off.
	MLflow *MLflow `yaml:"mlflow"`
	// Completions shown a step.
	Completions int `yaml:"completions" default:"4" validate:"gte=0"`
}

// WandB is a Weights & Biases run; its key comes from the environment.
type WandB struct {
	// Project of the run.
	Project *string `yaml:"project"`
	// Entity is the user or team.
	Entity *string `yaml:"entity"`
	// Group of runs.
	Group *string `yaml:"group"`
	// Name shown; null is the run's.
	Name *string `yaml:"name"`
	// Mode: offline writes files that can be sent later.
	Mode string `yaml:"mode" default:"online" validate:"oneof=online offline"`
}

// MLflow is an MLflow experiment; its address comes from the environment.
type MLflow struct {
	// Experiment by name.
	Experiment string `yaml:"experiment" validate:"required"`
}

// Limits end a run with a checkpoint, resumable.
type Limits struct {
	// MaxCostUSD of this run, in US dollars.
	MaxCostUSD *float64 `yaml:"max_cost_usd" validate:"omitempty,gt=0"`
	// MaxDuration of this life.
	MaxDuration *time.Duration `yaml:"max_duration" validate:"omitempty,gte=1s"`
	// MaxSteps of this life; the schedule stays.
	MaxSteps *int `yaml:"max_steps" validate:"omitempty,gte=1"`
	// MaxQueue is waiting for GPUs, which is free.
	MaxQueue *time.Duration `yaml:"max_queue" validate:"omitempty,gte=1s"`
	// OperationTimeout bounds the wait for one operation; one that takes longer is given up with its session, and the run
	// goes back to a checkpoint.
	OperationTimeout time.Duration `yaml:"operation_timeout" default:"2h" validate:"gte=1s"`
}

// Test is for `trainer test`.
type Test struct {
	// Steps to train; null is all.
	Steps *int `yaml:"steps" default:"5" validate:"omitempty,gte=1"`
	// Expect are the assertions, in file order: {"train/loss": "< 5.0", "reward/mean@gain": ">= 2"}.
	Expect []Expectation `yaml:"expect"`
}

// Expectation is one assertion on a metric.
type Expectation struct {
	Metric string  // as in metrics.jsonl
	At     string  // last (the default), first, best or gain (last / first)
	Op     string  // <, <=, >, >=, ==, !=
	Value  float64 // finite
	Key    string  // as it stands in the recipe, "reward/mean@gain"
}
