package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"trainer/internal/chat"
	"trainer/internal/dataset"
	"trainer/internal/diag"
	"trainer/internal/hub"
	"trainer/internal/tokenizer"
	"trainer/loss"
	"trainer/recipe"
)

// Inputs is a recipe with everything it names opened and checked.
type Inputs struct {
	Recipe *recipe.Recipe
	Train  *dataset.Set
	Held   *dataset.Set // nil when nothing is held out
	Data   *dataset.Data
	Seeds  Seeds
	// Sandbox: the recipe runs on the sandbox.
	Sandbox bool
	// StandIn: the sandbox stands in for the base model, with its own tokenizer.
	StandIn bool
	// Tokenizer is nil where rows come as tokens and no tokenizer is at hand.
	Tokenizer *tokenizer.Tokenizer
	Template  *chat.Template
	// Graders are the rewards, opened; empty in a loop without them.
	Graders Graders
	// Start is where the run begins; nil: at the base model's weights. It is set before NewPlan.
	Start *Start
}

// Seeds are derived from the recipe's one.
type Seeds struct{ Order, LoRA int64 }

// SandboxPrefix begins the names of the sandbox's own models.
const SandboxPrefix = "sandbox/"

// Open reads what the recipe names, checks every row, and fetches nothing. sandbox says that the sandbox stands in for a
// base model that is not its own. The error is a diag.List where the recipe or the data are at fault.
func Open(ctx context.Context, r *recipe.Recipe, h *hub.Hub, sandbox bool) (*Inputs, error) {
	in := &Inputs{Recipe: r, Sandbox: sandbox, StandIn: sandbox && !strings.HasPrefix(r.BaseModel, SandboxPrefix)}
	problems := unbuilt(r)
	if err := in.openTemplate(&problems, sandbox); err != nil {
		return nil, err
	}
	if err := problems.Err(); err != nil {
		return nil, err
	}
	data, err := dataset.Open(ctx, r, in.Template, h)
	if err != nil {
		return nil, err
	}
	in.Data, in.Train, in.Held = data, data.Train, data.Held
	in.Seeds = Seeds{Order: seed("order", r.Seed), LoRA: seed("lora", r.Seed)}
	if r.LoRA != nil && r.LoRA.Seed != nil {
		in.Seeds.LoRA = *r.LoRA.Seed
	}
	return in, nil
}

// openTemplate finds the tokenizer and compiles the template.
func (in *Inputs) openTemplate(problems *diag.List, sandbox bool) error {
	r := in.Recipe
	own := strings.HasPrefix(r.BaseModel, SandboxPrefix)
	switch {
	case r.Tokenizer != "auto":
		problems.Add(r.At("tokenizer"), "tokenizer", "%q: other tokenizers than the sandbox's own are not built yet; give rows as token ids (dataset format: tokens), or leave it auto", r.Tokenizer)
		return nil
	case !own && allTokens(r.Dataset):
		return nil // the ids are the model's own, also where the sandbox stands in for it
	case own || sandbox:
		in.Tokenizer = tokenizer.Bytes()
	default:
		problems.Add(r.At("tokenizer"), "tokenizer", "the tokenizer of %s is not built in yet; give rows as token ids (format: tokens on every source), or try the recipe on the sandbox with --sandbox", r.BaseModel)
		return nil
	}
	t, err := chat.New(r.Chat, in.Tokenizer)
	var faults diag.List
	if errors.As(err, &faults) {
		for _, f := range faults {
			problems.Add(r.At(f.Key), f.Key, "%s", f.Msg)
		}
		return nil
	}
	if err != nil {
		return err
	}
	in.Template = t
	return nil
}

func allTokens(d recipe.Dataset) bool {
	for _, s := range append(append([]recipe.Source{}, d.Train...), d.Validation...) {
		if s.Format != "tokens" {
			return false
		}
	}
	return true
}

// unbuilt names the keys that were given and that nothing reads yet: they are refused, never ignored.
func unbuilt(r *recipe.Recipe) diag.List {
	var l diag.List
	no := func(given bool, key, instead string) {
		if given {
			l.Add(r.At(key), key, "not built yet; %s", instead)
		}
	}
	if r.Loop() == loss.Distillation {
		l.Add(r.At("loss.type"), "loss.type", "%q: the %s loop is not built yet; built: cross_entropy, the losses of preferences and those of reinforcement", r.Loss.Type, r.Loop())
	}
	if r.Loop() == loss.Reinforcement {
		unbuiltRollout(r, no)
	}
	held := measuredBy(r)
	if e := r.Eval.EarlyStop; e != nil && !slices.Contains(held, e.Metric) {
		l.Add(r.At("eval.early_stop.metric"), "eval.early_stop.metric", "%q is not what an evaluation of this loop measures; use %s", e.Metric, strings.Join(held, ", "))
	}
	if r.Rollout != nil {
		held = append(held, "reward/mean")
	}
	if b := r.Checkpoint.KeepBest; b != nil && b.Metric != trainLoss && !slices.Contains(held, b.Metric) {
		l.Add(r.At("checkpoint.keep_best.metric"), "checkpoint.keep_best.metric", "%q is not what this loop measures; use %s or %s", b.Metric, strings.Join(held, ", "), trainLoss)
	}
	no(r.Logging.TensorBoard, "logging.tensorboard", "use metrics.jsonl and report.html of the run folder")
	no(r.Logging.WandB != nil, "logging.wandb", "use metrics.jsonl and report.html of the run folder")
	no(r.Logging.MLflow != nil, "logging.mlflow", "use metrics.jsonl and report.html of the run folder")
	return l
}

// unbuiltRollout names what the loop that samples does not do yet.
func unbuiltRollout(r *recipe.Recipe, no func(given bool, key, instead string)) {
	if g, ok := r.Loss.Params.(*loss.GRPO); ok {
		no(g.Beta > 0, "loss.params.beta", "use 0, and a small learning_rate or tighter clip thresholds to stay near the reference")
	}
	no(r.Advantage.KLCoef > 0, "advantage.kl_coef", "use 0, and a small learning_rate or tighter clip thresholds to stay near the reference")
	no(r.Advantage.ImportanceCap != nil, "advantage.importance_cap", "use null; the clip thresholds of the loss bound a ratio that is off")
	no(r.Rollout.ReplayRoutedExperts, "rollout.replay_routed_experts", "use false")
	no(r.Rollout.Env != nil, "rollout.env", "use null and rewards: one completion a prompt")
}

// measuredBy are the metrics of an evaluation that a recipe can go by.
func measuredBy(r *recipe.Recipe) []string {
	switch {
	case r.Rollout != nil:
		return sampledBy(r)
	case r.Loop() != loss.Preference:
		return []string{evalLoss}
	case r.Loss.Type == "kto":
		return []string{evalLoss, "eval/rewards/margin"}
	}
	return []string{evalLoss, "eval/rewards/accuracy", "eval/rewards/margin"}
}

// LeftOut says how many rows the recipe's own words leave out or cut, a line a reason: nothing is left out in silence.
func (in *Inputs) LeftOut() []string {
	var out []string
	d, longest := in.Data, in.Recipe.Dataset.MaxLength
	if d.SkippedRows > 0 {
		out = append(out, fmt.Sprintf("bad rows skipped, as dataset.on_bad_row says: %d; the first: %s", d.SkippedRows, d.Skipped[0]))
	}
	if d.Dropped > 0 {
		out = append(out, fmt.Sprintf("rows of more than %d tokens dropped, as dataset.overlong says: %d", longest, d.Dropped))
	}
	if d.Cut > 0 {
		out = append(out, fmt.Sprintf("rows of more than %d tokens cut, as dataset.overlong says: %d", longest, d.Cut))
	}
	if d.Same > 0 {
		out = append(out, fmt.Sprintf("pairs of two equal sides dropped, as dataset.on_identical_pair says: %d; the first: %s", d.Same, d.Identical[0].Pos))
	}
	return out
}

// sets are the training rows and, where there are any, the held-out ones.
func (in *Inputs) sets() []*dataset.Set {
	if in.Held == nil {
		return []*dataset.Set{in.Train}
	}
	return []*dataset.Set{in.Train, in.Held}
}
