package loss

import (
	"cmp"
	"fmt"
)

// What becomes of an importance weight above the cap.
const (
	TokenTruncate    = "token_truncate"    // it is the cap
	TokenMask        = "token_mask"        // the token is left out: 0
	SequenceTruncate = "sequence_truncate" // the weight is of the whole sequence, a product, and at most the cap
)

// ImportanceWeights correct for a sampler whose probabilities are not quite the trainer's, [T]: e^(trained − q) of the
// trained positions of d, held to the cap in one of three ways, and 0 elsewhere. trained is [T], log-probabilities by the
// trainer under the weights that sampled; d has OldLogprobs. A weight goes into the advantage, in which the policy losses are
// homogeneous, and trained takes the place of q in their ratio: with q there, the same difference would count twice. Source:
// truncated importance sampling, Yao et al. 2025. Errors are ErrInvalid.
func ImportanceWeights(trained []float64, d Datum, mode string, limit float64) ([]float64, error) {
	step := []Datum{d}
	err := cmp.Or(oneOf("mode", mode, TokenTruncate, TokenMask, SequenceTruncate), above("cap", limit, 0))
	if err == nil {
		err = check([][]float64{trained}, step)
	}
	if err == nil {
		err = needs(step, old)
	}
	if err != nil {
		return nil, fmt.Errorf("weighing tokens by importance: %w", err)
	}
	out := make([]float64, len(d.Weights))
	if mode == SequenceTruncate {
		sum := 0.0
		each(step, func(_, t int) { sum += trained[t] - d.OldLogprobs[t] })
		each(step, func(_, t int) { out[t] = min(exp(sum), limit) })
		return out, nil
	}
	each(step, func(_, t int) {
		w := exp(trained[t] - d.OldLogprobs[t])
		if w > limit {
			w = limit
			if mode == TokenMask {
				w = 0
			}
		}
		out[t] = w
	})
	return out, nil
}
