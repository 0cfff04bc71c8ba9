package loss

import "cmp"

// How grpo joins the tokens of a request, and what its ratio is of; the API's words in lower case.
const (
	FixedHorizon  = "fixed_horizon" // Σ over tokens / (B·S), S the longest sequence
	TokenRatio    = "token"         // each token its own
	SequenceRatio = "sequence"      // the geometric mean over the sequence, for all of its tokens
)

// GRPO is the clipped policy gradient with an aggregation and a KL term of its own: per token
// p = max(−s·A, −clamp(s, low, high)·A) + beta·k3, s the ratio of weights now to sampling, k3 the estimator of the KL to the
// reference. Source: Shao et al. 2024 (arXiv 2402.03300), eq. 3; separate bounds and the token mean after Yu et al. 2025
// (arXiv 2503.14476); the ratio of a sequence is GSPO-token, Zheng et al. 2025 (arXiv 2507.18071).
type GRPO struct {
	// ClipLowThreshold is the lower bound of the ratio itself: 0.8 where others write 0.2.
	ClipLowThreshold float64 `yaml:"clip_low_threshold" validate:"gte=0,lte=1"`
	// ClipHighThreshold is the upper bound of the ratio itself: 1.28 where others write 0.28.
	ClipHighThreshold float64 `yaml:"clip_high_threshold" validate:"gte=1"`
	// Beta is the weight of the KL to the reference; 0 needs no reference.
	Beta float64 `yaml:"beta" default:"0.0" validate:"gte=0"`
	// AggType is how tokens are joined: their mean, the mean of the means of sequences, or the sum over the number of
	// sequences times the longest.
	AggType string `yaml:"agg_type" validate:"oneof=token_mean sequence_mean fixed_horizon"`
	// RatioType is what the ratio is of: each token, or the whole sequence (GSPO).
	RatioType string `yaml:"ratio_type" validate:"oneof=token sequence"`

	// Horizon is S of fixed_horizon; 0 takes the longest sequence of the step. The service always takes its own.
	Horizon int `yaml:"-"`
}

func newGRPO() *GRPO {
	return &GRPO{ClipLowThreshold: 0.8, ClipHighThreshold: 1.28, AggType: TokenMean, RatioType: TokenRatio}
}

// Check implements Checker.
func (l *GRPO) Check() error {
	return cmp.Or(
		clipBounds(l.ClipLowThreshold, l.ClipHighThreshold),
		atLeast("beta", l.Beta, 0),
		oneOf("agg_type", l.AggType, TokenMean, SequenceMean, FixedHorizon),
		oneOf("ratio_type", l.RatioType, TokenRatio, SequenceRatio),
		atLeast("horizon", float64(l.Horizon), 0),
	)
}

// Eval implements Loss; step has OldLogprobs and Advantages, and RefLogprobs when Beta is above 0. The gradient by ℓ, before
// the aggregation's factor, is −A·s and 0 where the token is clipped, plus beta·(1 − e^(ρ − ℓ)) where |ρ − ℓ| <= 10; nothing
// flows from a sequence's ratio to its other tokens. A sequence without a trained position counts in the divisors of
// sequence_mean and fixed_horizon. Metrics, all means over trained positions: loss/ratio/mean, loss/kl_policy/mean
// (−log s), loss/clip/clipped_ratio/mean, loss/clip/high_fraction, loss/clip/low_fraction, loss/kl_ref/mean (Beta above 0),
// and valid_tokens. Errors as CrossEntropy.Eval.
func (l *GRPO) Eval(now [][]float64, step []Datum) (Result, error) {
	r, err := l.eval(now, step)
	return named("grpo", r, err)
}

func (l *GRPO) eval(now [][]float64, step []Datum) (Result, error) {
	columns := []column{old, advantages}
	if l.Beta > 0 {
		columns = append(columns, reference)
	}
	if err := ready(l, now, step, columns...); err != nil {
		return Result{}, err
	}
	var m grpoMetrics
	r := Result{Grads: zeros(step)}
	scale := spread(l.AggType, step, l.Horizon)
	for i, d := range step {
		shared := 0.0
		if l.RatioType == SequenceRatio {
			shared = meanLogRatio(now[i], d)
		}
		for t, w := range d.Weights {
			if w == 0 {
				continue
			}
			x := token{now: now[i][t], old: d.OldLogprobs[t], advantage: d.Advantages[t]}
			logRatio := x.logRatio()
			if l.RatioType == SequenceRatio {
				logRatio = shared
			}
			x.ratio = exp(logRatio)
			value, grad := x.surrogate(l.ClipLowThreshold, l.ClipHighThreshold)
			if l.Beta > 0 {
				kl, slope := klToward(d.RefLogprobs[t], x.now)
				value += float64(l.Beta * kl)
				grad += float64(l.Beta * slope)
				m.reference += kl
			}
			m.add(x, logRatio, l.ClipLowThreshold, l.ClipHighThreshold)
			r.Value += float64(scale(i) * value)
			r.Grads[i][t] = scale(i) * grad
		}
	}
	r.Metrics = m.metrics(l.Beta > 0)
	return r.finite()
}

// meanLogRatio is of the trained positions of one sequence, 0 when there are none.
func meanLogRatio(now []float64, d Datum) float64 {
	sum, n := 0.0, 0
	for t, w := range d.Weights {
		if w != 0 {
			sum += now[t] - d.OldLogprobs[t]
			n++
		}
	}
	return share(sum, n)
}

// maxKL bounds the log-ratio of a KL estimate, so that one token far from its reference does not decide the step.
const maxKL = 10

// klToward is the k3 estimate of the KL to other, and its derivative by now, which is 0 outside of the bound.
func klToward(other, now float64) (value, slope float64) {
	x := other - now
	if x > maxKL || x < -maxKL {
		return k3(clamp(x, -maxKL, maxKL)), 0
	}
	return k3(x), 1 - exp(x)
}

// spread is the factor of a token of sequence i under an aggregation of sums over trained positions.
func spread(how string, step []Datum, horizon int) func(i int) float64 {
	counts, total, longest := make([]int, len(step)), 0, 0
	for i, d := range step {
		longest = max(longest, len(d.Weights))
		for _, w := range d.Weights {
			if w != 0 {
				counts[i]++
				total++
			}
		}
	}
	switch b := float64(len(step)); how {
	case TokenMean:
		return func(int) float64 { return 1 / float64(max(total, 1)) }
	case SequenceMean:
		return func(i int) float64 { return 1 / (b * float64(max(counts[i], 1))) }
	case FixedHorizon:
		return func(int) float64 { return 1 / (b * float64(cmp.Or(horizon, longest))) }
	}
	return func(int) float64 { return 1 }
}

// grpoMetrics are sums over trained positions.
type grpoMetrics struct {
	tokens, high, low                    int
	ratio, clippedRatio, kept, reference float64
}

func (m *grpoMetrics) add(x token, logRatio, low, high float64) {
	m.tokens++
	m.ratio += x.ratio
	m.clippedRatio += clamp(x.ratio, low, high)
	m.kept -= logRatio
	switch {
	case !x.clipped(low, high):
	case x.advantage > 0:
		m.high++
	default:
		m.low++
	}
}

func (m *grpoMetrics) metrics(reference bool) map[string]float64 {
	out := map[string]float64{
		"valid_tokens":                 float64(m.tokens),
		"loss/ratio/mean":              share(m.ratio, m.tokens),
		"loss/kl_policy/mean":          share(m.kept, m.tokens),
		"loss/clip/clipped_ratio/mean": share(m.clippedRatio, m.tokens),
		"loss/clip/high_fraction":      share(float64(m.high), m.tokens),
		"loss/clip/low_fraction":       share(float64(m.low), m.tokens),
	}
	if reference {
		out["loss/kl_ref/mean"] = share(m.reference, m.tokens)
	}
	return out
}
