package runner

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"trainer/internal/diag"
	"trainer/internal/hub"
	"trainer/loss"
	"trainer/recipe"
)

// shares says that the teacher has a session on the student's resource: it is the same model there, beside whose adapters there
// is room, and nothing asks for another resource.
func shares(r *recipe.Recipe) bool {
	t := r.Teacher
	same := t.BaseWeightsRef == nil && r.BaseWeightsRef == nil || t.BaseWeightsRef != nil && r.BaseWeightsRef != nil && *t.BaseWeightsRef == *r.BaseWeightsRef
	_, asks := r.Loss.Params.(*loss.ForwardKL) // a generator, which serves the student there
	return !asks && r.LoRA != nil && t.BaseModel == r.BaseModel && same && t.ModelResourcesID == nil && t.Compute.GPUType == nil
}

// teacherResource is the resource that a teacher asks for, on a GPU type that is named.
func teacherResource(r *recipe.Recipe, gpu string) ResourceSpec {
	t := r.Teacher
	s := ResourceSpec{BaseModel: t.BaseModel, GPUType: gpu, Generators: t.Compute.NumGeneratorReplicas, LoRA: r.LoRA != nil, InactiveTimeout: r.InactiveTimeout}
	if t.BaseWeightsRef != nil {
		s.BaseWeightsRef = *t.BaseWeightsRef
	}
	return s
}

// unbuiltTeacher names what a teacher cannot be yet.
func unbuiltTeacher(r *recipe.Recipe, no func(given bool, key, instead string)) {
	no(r.Rollout.Env != nil, "rollout.env", "use null: one completion a prompt")
	no(r.Rollout.ReplayRoutedExperts, "rollout.replay_routed_experts", "use false")
}

// decideTeacher checks what the service would refuse of the teacher, and asks for its price; nil where it has no resource of its own.
func (in *Inputs) decideTeacher(ctx context.Context, models []Model, res Resources) (*decidedTeacher, error) {
	if !in.distils() || shares(in.Recipe) {
		return nil, nil
	}
	c, problems := in.checkTeacher(models)
	if err := problems.Err(); err != nil {
		return nil, err
	}
	usd, err := res.Price(ctx, teacherResource(in.Recipe, c.GPUType))
	if err != nil {
		return nil, fmt.Errorf("ask for the price of the teacher: %w", err)
	}
	return &decidedTeacher{GPUType: c.GPUType, MaxBatch: c.Limits.MaxBatchSize, PriceUSD: usd}, nil
}

// checkTeacher is Check of a teacher with a resource of its own.
func (in *Inputs) checkTeacher(models []Model) (Chosen, diag.List) {
	const prefix, key = "teacher.", "teacher.base_model"
	var l diag.List
	r := in.Recipe
	m := model(r, prefix, r.Teacher.BaseModel, models, &l)
	if m == nil {
		return Chosen{}, l
	}
	cfg := config(r, prefix, r.Teacher.Compute, m, &l)
	if cfg == nil {
		return Chosen{}, l
	}
	limits, what := cfg.LoRA, "LoRA"
	if r.LoRA == nil {
		limits, what = cfg.Full, "full weights"
	}
	if limits == nil {
		l.Add(r.At(key), key, "%s has no %s on %s, and the teacher's session has the form of the student's, as lora_config says it", m.Name, what, cfg.GPUType)
		return Chosen{}, l
	}
	if r.LoRA != nil && limits.MaxRank > 0 && r.LoRA.Rank > limits.MaxRank {
		l.Add(r.At("lora_config.rank"), "lora_config.rank", "%s, the teacher, allows at most %d, got %d: its session has the form of the student's", m.Name, limits.MaxRank, r.LoRA.Rank)
	}
	if t := r.Teacher.Compute; t.NumGeneratorReplicas > 0 && cfg.Generator == nil {
		l.Add(r.At(prefix+"compute_config.num_generator_replicas"), prefix+"compute_config.num_generator_replicas", "%s has no generator on %s, and %s asks it for its likeliest tokens", m.Name, cfg.GPUType, r.Loss.Type)
	} else if n := in.longestScored(); t.NumGeneratorReplicas > 0 && cfg.Generator.ContextLength > 0 && n+1 > cfg.Generator.ContextLength {
		l.Add(r.At(key), key, "the generator of %s takes %d tokens, and the longest prompt with its completion, and the one token that is sampled behind them, may be %d: use a smaller dataset.max_length or max_tokens", m.Name, cfg.Generator.ContextLength, n+1)
	}
	in.checkScored(*limits, m.Name, &l)
	return Chosen{GPUType: cfg.GPUType, Limits: *limits, StandIn: m.StandIn}, l
}

// checkScored holds what a teacher scores to the length that its model takes.
func (in *Inputs) checkScored(limits TrainLimits, name string, l *diag.List) {
	const key = "teacher.base_model"
	if n := in.longestScored(); limits.MaxSeqLength > 0 && n-1 > limits.MaxSeqLength {
		l.Add(in.Recipe.At(key), key, "%s scores at most %d tokens, and the longest prompt of the teacher with its completion may have %d: use a smaller dataset.max_length or max_tokens", name, limits.MaxSeqLength+1, n)
	}
}

// longestScored is how many tokens a prompt of the teacher with its completion has at most.
func (in *Inputs) longestScored() int {
	most := 0
	for i, s := range in.sets() {
		p := in.Recipe.Rollout.SamplingParams
		if i > 0 {
			p = *in.Recipe.Eval.SamplingParams
		}
		for row := range s.Len() {
			most = max(most, s.Taught(row)+p.MaxTokens)
		}
	}
	return most
}

// matchTeacher holds the teacher's vocabulary to the student's: it scores the student's ids.
func (in *Inputs) matchTeacher(ctx context.Context, h *hub.Hub, problems *diag.List) error {
	const key = "teacher.base_model"
	r := in.Recipe
	name := r.Teacher.BaseModel
	ours, theirs := strings.HasPrefix(r.BaseModel, SandboxPrefix), strings.HasPrefix(name, SandboxPrefix)
	switch {
	case ours != theirs:
		problems.Add(r.At(key), key, "%s and %s have not the same vocabulary, which only the sandbox's own models have: a teacher scores the student's tokens", name, r.BaseModel)
		return nil
	case ours || name == r.BaseModel || in.Tokenizer == nil || in.Instead != "":
		return nil
	}
	t, err := OpenTokenizer(ctx, h, hub.Scheme+name)
	var away *hub.Uncached
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &away):
		in.missing = append(in.missing, fmt.Sprintf("the tokenizer of the teacher, %v", away))
	case err != nil:
		problems.Add(r.At(key), key, "its tokenizer, which must be the student's: %v", err)
	case t.Hash() != in.Tokenizer.Hash():
		problems.Add(r.At(key), key, "the tokenizer of %s is not that of %s: a teacher scores the student's tokens, so it must be of the same family", name, r.BaseModel)
	}
	return nil
}
