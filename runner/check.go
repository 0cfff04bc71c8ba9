package runner

import (
	"fmt"
	"strings"

	"trainer/internal/dataset"
	"trainer/internal/diag"
	"trainer/loss"
	"trainer/recipe"
)

// Chosen is the part of a model that a recipe asks for.
type Chosen struct {
	GPUType string
	Limits  TrainLimits
	StandIn bool
}

// SpecOf is the resource that a recipe asks for, on a GPU type that is named.
func SpecOf(r *recipe.Recipe, gpu string) ResourceSpec {
	s := ResourceSpec{BaseModel: r.BaseModel, GPUType: gpu, Generators: r.Compute.NumGeneratorReplicas, LoRA: r.LoRA != nil, InactiveTimeout: r.InactiveTimeout}
	if r.BaseWeightsRef != nil {
		s.BaseWeightsRef = *r.BaseWeightsRef
	}
	if r.Optimizer.Type == "muon" {
		s.Muon = r.Optimizer.ScalingStrategy
	}
	return s
}

// Check lists what the service would refuse of the plan, before anything is asked for that bills.
func (in *Inputs) Check(p *Plan, models []Model) (Chosen, diag.List) {
	var l diag.List
	r := in.Recipe
	m := model(r, "", r.BaseModel, models, &l)
	if m == nil {
		return Chosen{}, l
	}
	cfg := config(r, "", r.Compute, m, &l)
	if cfg == nil {
		return Chosen{}, l
	}
	c := Chosen{GPUType: cfg.GPUType, StandIn: m.StandIn}
	limits, what := cfg.LoRA, "LoRA"
	if r.LoRA == nil {
		limits, what = cfg.Full, "full weights"
	}
	if limits == nil {
		l.Add(r.At("lora_config"), "lora_config", "%s does not train %s on %s", m.Name, what, cfg.GPUType)
		return c, l
	}
	c.Limits = *limits
	in.checkLimits(p, c.Limits, m.Name, &l)
	if in.samples() && r.Compute.NumGeneratorReplicas == 0 {
		l.Add(r.At("compute_config.num_generator_replicas"), "compute_config.num_generator_replicas", "0: nothing samples then, and %s trains on samples; use 1", r.Loss.Type)
	}
	if (in.samples() || in.examines()) && cfg.Generator != nil {
		in.checkContext(cfg.Generator.ContextLength, m.Name, &l)
	}
	if r.Compute.NumGeneratorReplicas > 0 && cfg.Generator == nil {
		l.Add(r.At("compute_config.num_generator_replicas"), "compute_config.num_generator_replicas", "%s has no generator on %s; use 0", m.Name, cfg.GPUType)
	}
	return c, l
}

// model finds the one that stands at base_model, behind prefix.
func model(r *recipe.Recipe, prefix, name string, models []Model, l *diag.List) *Model {
	names := make([]string, len(models))
	for i := range models {
		if models[i].Name == name {
			return &models[i]
		}
		names[i] = models[i].Name
	}
	hint := diag.DidYouMean(name, names)
	if hint == "" {
		hint = "; see `trainer models`"
	}
	l.Add(r.At(prefix+"base_model"), prefix+"base_model", "%q is not a model that the service trains%s", name, hint)
	return nil
}

// config finds what m is on the GPU type of c, which stands at compute_config behind prefix.
func config(r *recipe.Recipe, prefix string, c recipe.Compute, m *Model, l *diag.List) *ModelConfig {
	gpu := m.DefaultGPU
	if c.GPUType != nil {
		gpu = *c.GPUType
	}
	var types []string
	for i := range m.Configs {
		if m.Configs[i].GPUType == gpu {
			return &m.Configs[i]
		}
		types = append(types, m.Configs[i].GPUType)
	}
	l.Add(r.At(prefix+"compute_config.gpu_type"), prefix+"compute_config.gpu_type", "%s is not offered on %q; it is on %s", m.Name, gpu, strings.Join(types, ", "))
	return nil
}

// checkLimits compares rank, row lengths and requests with the model's limits.
func (in *Inputs) checkLimits(p *Plan, lim TrainLimits, name string, l *diag.List) {
	r := in.Recipe
	if r.LoRA != nil && lim.MaxRank > 0 && r.LoRA.Rank > lim.MaxRank {
		l.Add(r.At("lora_config.rank"), "lora_config.rank", "%s allows at most %d, got %d", name, lim.MaxRank, r.LoRA.Rank)
	}
	in.checkLengths(lim, name, l)
	if len(*l) == 0 && in.distils() && shares(r) {
		in.checkScored(lim, name, l)
	}
	n, each := r.Train.GradientAccumulation, in.Train.PerRow()
	if in.samples() {
		in.checkSampled(p, lim, name, l)
		return
	}
	if soft := in.softly(); soft != nil {
		for i := range in.Train.Len() {
			each = max(each, in.Train.Sequences(i)) // which need not stay together
		}
		each = min(each, max(1, lim.MaxBatchSize))
	}
	most := lim.MaxBatchSize / each // rows a request
	if lim.MaxBatchSize > 0 && most == 0 {
		l.Add(r.At("base_model"), "base_model", "%s takes %d sequences a request, and a row is %d, which stay together", name, lim.MaxBatchSize, each)
		return
	}
	if n > p.BatchSize {
		l.Add(r.At("train.gradient_accumulation"), "train.gradient_accumulation", "%d requests for %d rows; at most one a row", n, p.BatchSize)
	} else if n > 0 && most > 0 && (p.BatchSize+n-1)/n > most {
		l.Add(r.At("train.gradient_accumulation"), "train.gradient_accumulation", "%d requests of %d rows; %s allows %d rows a request: use auto, or at least %d",
			n, (p.BatchSize+n-1)/n, name, most, (p.BatchSize+most-1)/most)
	}
}

// checkSampled: a step of a loop that samples has at most so many sequences, and fewer where groups are dropped.
func (in *Inputs) checkSampled(p *Plan, lim TrainLimits, name string, l *diag.List) {
	r := in.Recipe
	most := (p.BatchSize + r.Rollout.Minibatches - 1) / r.Rollout.Minibatches * p.GroupSize
	if n := r.Train.GradientAccumulation; n > most {
		l.Add(r.At("train.gradient_accumulation"), "train.gradient_accumulation", "%d requests for %d completions; at most one a completion", n, most)
	}
	g, ok := r.Loss.Params.(*loss.GRPO)
	if !ok || g.AggType != loss.FixedHorizon {
		return
	}
	const key = "loss.params.agg_type"
	if r.Train.GradientAccumulation > 1 {
		l.Add(r.At(key), key, "fixed_horizon is one request a step, since a request's horizon is the service's own; use token_mean, or gradient_accumulation: auto")
	} else if lim.MaxBatchSize > 0 && most > lim.MaxBatchSize {
		l.Add(r.At(key), key, "fixed_horizon is one request a step, of up to %d completions here, and %s takes %d; use token_mean, or more rollout.minibatches", most, name, lim.MaxBatchSize)
	}
}

// checkContext holds prompt and completion to what the generators take, in training and in evaluation.
func (in *Inputs) checkContext(context int, name string, l *diag.List) {
	if context <= 0 {
		return
	}
	hold := func(longest, sampled int, key string) {
		if in.reworded {
			longest = max(longest, in.Recipe.Dataset.MaxLength)
		}
		if longest+sampled > context {
			l.Add(in.Recipe.At(key), key, "the longest prompt has %d tokens, and with %d sampled ones that is more than the context of %s, %d: use at most %d, or a smaller dataset.max_length",
				longest, sampled, name, context, max(1, context-longest))
		}
	}
	const held = "eval.sampling_params.max_tokens"
	if in.examines() {
		hold(in.longestHeld, in.Recipe.Eval.SamplingParams.MaxTokens, held)
		return
	}
	hold(longestPrompt(in.Train), in.Recipe.Rollout.SamplingParams.MaxTokens, "rollout.sampling_params.max_tokens")
	if in.Held != nil {
		hold(longestPrompt(in.Held), in.Recipe.Eval.SamplingParams.MaxTokens, held)
	}
}

// longestPrompt is the tokens of the longest of a set of prompts.
func longestPrompt(s *dataset.Set) (longest int) {
	for i := range s.Len() {
		n, _ := s.Count(i)
		longest = max(longest, n)
	}
	return longest
}

// checkLengths names the rows that are longer than a sample may be. A sample of n tokens sends n - 1 of them.
func (in *Inputs) checkLengths(lim TrainLimits, name string, l *diag.List) {
	if lim.MaxSeqLength <= 0 {
		return
	}
	if in.StandIn {
		name = "the sandbox's stand-in for " + name
	}
	if in.reworded {
		if n := in.Recipe.Dataset.MaxLength + in.Recipe.Rollout.SamplingParams.MaxTokens; n-1 > lim.MaxSeqLength {
			const key = "dataset.max_length"
			l.Add(in.Recipe.At(key), key, "the environment changes prompts, which may then have %d tokens, and with rollout.sampling_params.max_tokens that is more than the %d that %s takes: use at most %d",
				in.Recipe.Dataset.MaxLength, lim.MaxSeqLength+1, name, max(1, lim.MaxSeqLength+1-in.Recipe.Rollout.SamplingParams.MaxTokens))
		}
		return
	}
	const shown = 5
	found, longest := 0, 0
	sets := in.sets()
	if in.samples() { // what is held out is not trained
		const key = "rollout.sampling_params.max_tokens"
		sampled := in.Recipe.Rollout.SamplingParams.MaxTokens
		if sampled >= lim.MaxSeqLength {
			l.Add(in.Recipe.At(key), key, "%d leaves no room for a prompt: a sample that %s trains on has at most %d tokens, with those of its prompt", sampled, name, lim.MaxSeqLength+1)
			return
		}
		lim.MaxSeqLength -= sampled
		sets = sets[:1]
		name += ", less rollout.sampling_params.max_tokens,"
	}
	for _, s := range sets {
		for i := range s.Len() {
			n := s.Longest(i)
			if n-1 <= lim.MaxSeqLength {
				continue
			}
			longest = max(longest, n)
			if found++; found <= shown {
				l.Add(s.At(i), "", "%d tokens; %s takes at most %d", n, name, lim.MaxSeqLength+1)
			}
		}
	}
	if found > 0 {
		l.Add(in.Recipe.At("dataset.max_length"), "dataset.max_length", "%s", tooLong(found, longest, lim.MaxSeqLength+1, name))
	}
}

// tooLong sums up, with the way out.
func tooLong(found, longest, most int, name string) string {
	rows := fmt.Sprintf("%d rows are", found)
	if found == 1 {
		rows = "1 row is"
	}
	return fmt.Sprintf("%s longer than %s takes, the longest has %d tokens: set it to %d, and dataset.overlong to drop, keep_start or keep_end", rows, name, longest, most)
}
