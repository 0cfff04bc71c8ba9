package recipe

import (
	"slices"

	"trainer/internal/grader"
	"trainer/loss"
)

// loopDefaults are the defaults that depend on the loop; an absent loop has none. All others stand in the structs' tags.
var loopDefaults = map[string]map[loss.Loop]string{
	"optimizer.learning_rate":      adapterRates,
	"optimizer.adam.learning_rate": adapterRates,
	"lr_schedule.type": {
		loss.Supervised: "linear", loss.Preference: "linear", loss.Reinforcement: "constant", loss.Distillation: "constant",
	},
	"eval.sampling_params": {loss.Supervised: "null", loss.Preference: "null", loss.Reinforcement: "{}", loss.Distillation: "{}"},
	"train.batch_size":     {loss.Supervised: "128", loss.Preference: "32"},
	"compute_config.num_generator_replicas": {
		loss.Supervised: "0", loss.Preference: "0", loss.Reinforcement: "1", loss.Distillation: "1",
	},
}

// adapterRates are peaks for LoRA; full weights have no default.
var adapterRates = map[loss.Loop]string{
	loss.Supervised: "1.0e-4", loss.Preference: "1.0e-5", loss.Reinforcement: "1.0e-5", loss.Distillation: "1.0e-5",
}

// evalSampling is where evaluation samples otherwise than rollout.
var evalSampling = map[string]string{"temperature": "0.0"}

// LossNames lists every loss that a recipe can name, in the order of the reference.
func LossNames() []string {
	var names []string
	for _, k := range loss.Kinds() {
		names = append(names, k.Name)
	}
	return names
}

// RewardNames lists every grader that a recipe can name, in the order of the reference.
func RewardNames() []string {
	var names []string
	for _, k := range grader.Kinds() {
		names = append(names, k.Name)
	}
	return names
}

func rewardKind(name string) (grader.Kind, bool) {
	for _, k := range grader.Kinds() {
		if k.Name == name {
			return k, true
		}
	}
	return grader.Kind{}, false
}

// LoopOf is the loop of a loss by name, and "" for an unknown name.
func LoopOf(name string) loss.Loop {
	k, _ := lossKind(name)
	return k.Loop
}

// loopOf is the loop of a loss by name in a recipe that has the keys of nodes, and "" for an unknown name.
func loopOf(name string, nodes ...*node) loss.Loop {
	k, ok := lossKind(name)
	if !ok {
		return ""
	}
	asks := func(n *node) bool { return n.get("rollout") != nil || n.get("teacher") != nil }
	return k.In(slices.ContainsFunc(nodes, asks))
}

// reductionOf is the default of loss.reduction; where it is empty the key is refused for the reason that noReduction gives.
func reductionOf(name string) string {
	switch {
	case LoopOf(name) == loss.Preference || name == "grpo":
		return ""
	case LoopOf(name) == loss.Distillation:
		return loss.TokenMean
	}
	return loss.Sum
}

func lossKind(name string) (loss.Kind, bool) {
	for _, k := range loss.Kinds() {
		if k.Name == name {
			return k, true
		}
	}
	return loss.Kind{}, false
}
