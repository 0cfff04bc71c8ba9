package runner

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"trainer/internal/chat"
	"trainer/internal/dataset"
	"trainer/internal/diag"
	"trainer/internal/hub"
	"trainer/internal/rollout"
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
	// StandIn: the sandbox stands in for the base model.
	StandIn bool
	// Instead says why the byte vocabulary stands in for the tokenizer of the base model, which a stand-in has where it can be
	// had; empty: it does not.
	Instead string
	// Tokenizer is nil where rows come as tokens and no tokenizer is at hand.
	Tokenizer *tokenizer.Tokenizer
	Template  *chat.Template
	// Commits are those of the hub that the names of the recipe were resolved to, by the name with its revision.
	Commits map[string]string
	// Graders are the rewards, opened; empty in a loop without them.
	Graders Graders
	// Unjudged: an evaluation samples what is held out, and its rewards say nothing.
	Unjudged bool
	// Env is the environment of the recipe, opened; nil where there is none, or where it may not be asked.
	Env rollout.Env
	// Start is where the run begins; nil: at the base model's weights. It is set before NewPlan.
	Start *Start
	// Teacher is the checkpoint that the teacher has; nil: the weights of its base model. It is set as Start is.
	Teacher *Start

	longestHeld int // tokens of the longest prompt that an evaluation of rows samples of

	missing  []string // what is not here and may not be fetched
	reworded bool     // the environment changes prompts: they have up to dataset.max_length tokens, whatever those of the rows have
}

// Seeds are derived from the recipe's one.
type Seeds struct{ Order, LoRA int64 }

// SandboxPrefix begins the names of the sandbox's own models.
const SandboxPrefix = "sandbox/"

// Open reads what the recipe names and checks every row; h decides whether what this machine does not have is fetched. sandbox
// says that the sandbox stands in for a base model that is not its own. The error is a diag.List where the recipe or the data are at
// fault, and an *Unfetched where all that is here is sound and something is not.
func Open(ctx context.Context, r *recipe.Recipe, h *hub.Hub, sandbox bool) (*Inputs, error) {
	in := &Inputs{Recipe: r, Sandbox: sandbox, StandIn: sandbox && !strings.HasPrefix(r.BaseModel, SandboxPrefix)}
	in.Unjudged = in.examines() && len(r.Reward) == 0
	problems := unbuilt(r)
	if err := in.openTemplate(ctx, h, &problems); err != nil {
		return nil, err
	}
	if in.distils() {
		if err := in.matchTeacher(ctx, h, &problems); err != nil {
			return nil, err
		}
	}
	if err := problems.Err(); err != nil {
		return nil, err
	}
	data, err := in.openRows(ctx, h)
	if err != nil {
		return nil, err
	}
	in.Commits = in.commitsOf(h)
	in.Data, in.Train, in.Held = data, data.Train, data.Held
	in.Seeds = Seeds{Order: seed("order", r.Seed), LoRA: seed("lora", r.Seed)}
	if r.LoRA != nil && r.LoRA.Seed != nil {
		in.Seeds.LoRA = *r.LoRA.Seed
	}
	return in, nil
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
		unbuiltTeacher(r, no)
	}
	no(r.Loop() == loss.Distillation && r.Rollout.Env != nil, "rollout.env", "use null: a teacher scores one completion a prompt")
	if r.Loop() == loss.Reinforcement && r.Rollout.Env != nil && r.Rollout.ReplayRoutedExperts {
		const key = "rollout.replay_routed_experts"
		l.Add(r.At(key), key, "not together with rollout.env: the API gives the experts of each sampled turn a key of its own, and takes one for a whole sequence, which a conversation of several turns is; use false, or leave out rollout.env")
	}
	held := measuredBy(r)
	if e := r.Eval.EarlyStop; e != nil && !slices.Contains(held, e.Metric) {
		l.Add(r.At("eval.early_stop.metric"), "eval.early_stop.metric", "%q is not what an evaluation of this loop measures; use %s", e.Metric, strings.Join(held, ", "))
	}
	switch {
	case r.Loss.Type == "forward_kl":
		held = append(held, forwardKL)
	case r.Loop() == loss.Distillation, r.Taught():
		held = append(held, reverseKL)
	case r.Rollout != nil:
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

// measuredBy are the metrics of an evaluation that a recipe can go by.
func measuredBy(r *recipe.Recipe) []string {
	switch {
	case r.Loss.Type == "forward_kl" && r.Rollout == nil:
		return []string{evalForwardKL, evalLoss}
	case r.Loss.Type == "forward_kl":
		return []string{evalForwardKL, evalReverseKL}
	case r.Loop() == loss.Distillation:
		return []string{evalReverseKL}
	case r.Taught():
		return []string{evalLoss, evalReverseKL}
	case r.Rollout != nil:
		return sampledBy(r)
	case r.Eval.SamplingParams != nil && len(r.Reward) > 0:
		return append(scoredBy(r), sampledBy(r)...)
	}
	return scoredBy(r)
}

// scoredBy are those of rows.
func scoredBy(r *recipe.Recipe) []string {
	switch {
	case r.Loop() != loss.Preference, r.Loss.Type == "command":
		return []string{evalLoss}
	case r.Loss.Type == "kto":
		return []string{evalLoss, "eval/rewards/margin"}
	}
	return []string{evalLoss, "eval/rewards/accuracy", "eval/rewards/margin"}
}

// LeftOut says how many rows the recipe's own words leave out or cut, a line a reason: nothing is left out in silence.
func (in *Inputs) LeftOut() []string {
	var out []string
	longest := in.Recipe.Dataset.MaxLength
	say := func(n int, of func(dataset.Counts) int, format string, a ...any) {
		if n > 0 {
			out = append(out, fmt.Sprintf(format, a...)+": "+in.bySource(n, of))
		}
	}
	d := in.Data
	say(d.SkippedRows, func(c dataset.Counts) int { return c.Bad }, "bad rows skipped, as dataset.on_bad_row says")
	if d.SkippedRows > 0 {
		out[0] += "; the first: " + d.Skipped[0].String()
	}
	say(d.Dropped, func(c dataset.Counts) int { return c.Overlong }, "rows of more than %d tokens dropped, as dataset.overlong says", longest)
	say(d.Cut, func(c dataset.Counts) int { return c.Cut }, "rows of more than %d tokens cut, as dataset.overlong says", longest)
	say(d.Same, func(c dataset.Counts) int { return c.Same }, "pairs of two equal sides dropped, as dataset.on_identical_pair says")
	if d.Same > 0 {
		out[len(out)-1] += "; the first: " + d.Identical[0].Pos.String()
	}
	return out
}

// Leaks says how many rows are on both sides; empty for none.
func (in *Inputs) Leaks() string {
	if in.Data.Leaked == 0 {
		return ""
	}
	return fmt.Sprintf("rows of train that are also held out, word for word: %d; what an evaluation says of those is how well they are remembered", in.Data.Leaked)
}

// bySource is n, with the share of each source where there are several.
func (in *Inputs) bySource(n int, of func(dataset.Counts) int) string {
	sources := in.Data.Sources()
	if len(sources) == 1 {
		return fmt.Sprint(n)
	}
	var parts []string
	for _, s := range sources {
		if k := of(s.Counts); k > 0 {
			parts = append(parts, fmt.Sprintf("%d of %d in %s", k, s.Counts.Seen, s.Name))
		}
	}
	return fmt.Sprintf("%d (%s)", n, strings.Join(parts, ", "))
}

// sets are the training rows and, where there are any, the held-out ones.
func (in *Inputs) sets() []*dataset.Set {
	if in.Held == nil {
		return []*dataset.Set{in.Train}
	}
	return []*dataset.Set{in.Train, in.Held}
}
