package report

import (
	"cmp"
	"slices"
	"strings"

	"trainer/runner"
)

// Metrics that this package looks at by name; all others it shows as they come.
const (
	trainLoss       = "train/loss"
	evalLoss        = "eval/loss"
	learningRate    = "learning_rate"
	rewardMean      = "reward/mean"
	evalReward      = "eval/reward"
	evalPass        = "eval/pass@1"
	reverseKL       = "distill/reverse_kl"
	forwardKL       = "distill/forward_kl"
	rewardMargin    = "rewards/margin" // of a loss of preferences: the chosen side's reward less the rejected one's
	tokensPerSecond = "time/tokens_per_second"
	stepSeconds     = "time/step_seconds"
	elapsedSeconds  = "time/elapsed_seconds"
	costUSD         = "cost/usd"
	costForecast    = "cost/forecast_usd" // of the whole run, at the pace of its newest steps
	trainedTokens   = "trained_tokens"
	groups          = "groups"  // of a step that trains on samples
	skipped         = "skipped" // 1 at a step that was left out: a mark, not a curve
)

// headline is a number of a step that a person follows. Text is how the bar shows it, around %s; rank says which leaves
// first when the terminal is narrow: the highest.
type headline struct {
	key, name, text string
	rank            int
	format          func(float64) string
}

// headlines in the order in which they are shown, the same in progress and log lines.
var headlines = []headline{
	{trainLoss, "loss", "loss %s", 1, Loss},
	{rewardMean, "reward", "reward %s", 2, Loss},
	{forwardKL, "forward_kl", "kl %s", 2, Loss},
	{reverseKL, "reverse_kl", "kl %s", 2, Loss},
	{rewardMargin, "margin", "margin %s", 3, Loss},
	{learningRate, "learning_rate", "lr %s", 6, Rate},
	{tokensPerSecond, "tokens/s", "%s tok/s", 5, Short},
	{costUSD, "cost", "%s", 4, USD},
	{costForecast, "forecast", "of %s", 8, USD},
}

// field is a name with its value in text.
type field struct{ name, value string }

// shown tells whether a metric is worth its place: dollars are only where something has a price.
func shown(r runner.RunInfo, metrics map[string]float64, key string) bool {
	v, ok := metrics[key]
	return ok && (key != costUSD && key != costForecast || v != 0 || r.PriceUSDPerHour != 0)
}

// stepFields are the headlines that the metrics of a step have.
func stepFields(r runner.RunInfo, metrics map[string]float64) []field {
	var fields []field
	for _, h := range headlines {
		if shown(r, metrics, h.key) {
			fields = append(fields, field{h.name, h.format(metrics[h.key])})
		}
	}
	return fields
}

// evalFields are all metrics of an evaluation by name, in the order of evalKeys.
func evalFields(metrics map[string]float64) []field {
	var fields []field
	for _, key := range evalKeys(metrics) {
		fields = append(fields, field{key, score(key, metrics[key])})
	}
	return fields
}

// evalKeys are the names under eval/, sorted, but first what an evaluation is made for: eval/loss, eval/reward and each eval/pass@k.
func evalKeys[V any](metrics map[string]V) []string {
	var keys []string
	for key := range metrics {
		if strings.HasPrefix(key, "eval/") {
			keys = append(keys, key)
		}
	}
	rank := func(key string) int {
		switch {
		case key == evalLoss:
			return 0
		case key == evalReward:
			return 1
		case strings.HasPrefix(key, "eval/pass@"):
			return 2
		}
		return 3
	}
	slices.SortFunc(keys, func(a, b string) int { return cmp.Or(rank(a)-rank(b), strings.Compare(a, b)) })
	return keys
}

// opening is what a run is, in one line.
func opening(r runner.RunInfo) string {
	parts := []string{r.BaseModel}
	evaluates := r.Plan != nil && r.Plan.Evaluates
	switch {
	case evaluates:
		parts = append(parts, "an evaluation")
	case r.Plan != nil:
		parts = append(parts, Count(len(r.Plan.Rates))+" steps")
	}
	if r.Done > 0 && !evaluates {
		parts = append(parts, "going on after step "+Count(r.Done))
	}
	if r.Start != "" {
		parts = append(parts, "from "+r.Start)
	}
	if r.PriceUSDPerHour > 0 {
		parts = append(parts, USD(r.PriceUSDPerHour)+" an hour")
	}
	return printable(r.Name + ": " + strings.Join(parts, ", "))
}

// mark says that a run is not of the real service or model; empty when it is.
func mark(r runner.RunInfo) string {
	switch {
	case r.StandIn:
		return "stand-in"
	case r.Sandbox:
		return "sandbox"
	}
	return ""
}

// standInNote is what the mark means.
func standInNote(r runner.RunInfo) string {
	return printable("the sandbox trains a small stand-in for " + r.BaseModel + ": losses and samples say nothing about that model")
}
