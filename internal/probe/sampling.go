package probe

import (
	"context"
	"encoding/json"
	"fmt"
	"math"

	"trainer/internal/wire"
)

var errNoGenerators = unknown("the model resource has no generator replicas")

// sampleBody is the body of a sample.
type sampleBody struct {
	Inputs         []modelInput   `json:"model_inputs"`
	Samples        int            `json:"num_samples"`
	Params         samplingParams `json:"sampling_params"`
	PromptLogprobs bool           `json:"prompt_logprobs,omitempty"`
}

type modelInput struct {
	Chunks [1]struct {
		Text struct {
			Tokens []int32 `json:"tokens"`
		} `json:"encoded_text"`
	} `json:"chunks"`
}

// samplingParams says all but the seed, which several engines do not take.
type samplingParams struct {
	MaxTokens   int      `json:"max_tokens"`
	Temperature float64  `json:"temperature"`
	TopP        float64  `json:"top_p"`
	TopK        int      `json:"top_k"`
	Stop        []string `json:"stop,omitempty"`
}

// first asks for the first token of n completions of each prompt, and returns the results, one a prompt.
func (p *probe) first(ctx context.Context, b sampleBody, prompts ...[]int32) ([]wire.SampleResult, error) {
	tokens := 0
	for _, prompt := range prompts {
		var in modelInput
		in.Chunks[0].Text.Tokens = prompt
		b.Inputs = append(b.Inputs, in)
		tokens += len(prompt) + b.Samples
	}
	b.Params.MaxTokens, b.Params.TopP, b.Params.TopK = 1, 1, -1
	body, err := json.Marshal(b)
	if err != nil {
		return nil, fmt.Errorf("encoding sample: %w", err)
	}
	var out wire.SampleOutput
	if err := p.do(ctx, wire.KindSample, body, tokens, &out); err != nil {
		return nil, err
	}
	if len(out.Results) != len(prompts) {
		return nil, unknown("sample answered %d results to %d prompts", len(out.Results), len(prompts))
	}
	return out.Results, nil
}

// sampledLogprobs samples first tokens at a temperature of 2 and scores the same tokens as parts of prompts. Of the model's
// own distribution both log-probabilities are the same; after temperature the sampled ones are half the scored ones, but
// for a constant. So the slope of the one by the other decides: it is 1, or a half.
func (p *probe) sampledLogprobs(ctx context.Context) (Finding, error) {
	if p.generators() == 0 {
		return Finding{}, errNoGenerators
	}
	const temperature = 2.0
	prompt := row(8, 6).Tokens
	drawn, err := p.first(ctx, sampleBody{Samples: 32, Params: samplingParams{Temperature: temperature}}, prompt)
	if err != nil {
		return Finding{}, err
	}
	sampled := map[int32]float64{}
	var ids []int32
	for _, s := range drawn[0].Sequences {
		if len(s.Tokens) != 1 || len(s.Logprobs) != 1 {
			continue // a stop token that is left out
		}
		id := int32(s.Tokens[0])
		if _, ok := sampled[id]; !ok {
			ids = append(ids, id)
		}
		sampled[id] = s.Logprobs[0]
	}
	var prompts [][]int32
	for _, id := range ids {
		prompts = append(prompts, append(prompt[:len(prompt):len(prompt)], id))
	}
	if len(ids) < 4 {
		return Finding{}, unknown("%d samples at a temperature of %g gave %d different tokens, too few to compare", len(drawn[0].Sequences), temperature, len(ids))
	}
	scored, err := p.first(ctx, sampleBody{Samples: 1, Params: samplingParams{Temperature: 1}, PromptLogprobs: true}, prompts...)
	if err != nil {
		return Finding{}, err
	}
	var x, y []float64
	for i, r := range scored {
		if len(r.PromptLogprobs) != len(prompt)+1 {
			return Finding{}, unknown("sample returned %d prompt_logprobs for %d tokens", len(r.PromptLogprobs), len(prompt)+1)
		}
		x, y = append(x, r.PromptLogprobs[len(prompt)]), append(y, sampled[ids[i]])
	}
	return bySlope(x, y, 1/temperature)
}

// bySlope decides between slope 1 and slope after of y by x.
func bySlope(x, y []float64, after float64) (Finding, error) {
	slope, sigma := fit(x, y)
	seen := fmt.Sprintf("at a temperature of %g, the log-probabilities of %d sampled tokens rise %.2f times as fast as those of the same tokens in a prompt", 1/after, len(x), slope)
	within := min(max(3*sigma, 0.05), 0.2)
	switch {
	case math.Abs(slope-1) < within && sigma < 0.1:
		return Finding{Value: "before_temperature", How: seen}, nil
	case math.Abs(slope-after) < within && sigma < 0.1:
		return Finding{Value: "after_temperature", How: seen}, nil
	}
	return Finding{}, unknown("%s, give or take %.2f: neither 1 nor %g", seen, sigma, after)
}

// fit is the slope of y by x by least squares, and its standard error; NaN where x is all the same.
func fit(x, y []float64) (slope, sigma float64) {
	n := float64(len(x))
	var mx, my, xx, xy, rest float64
	for i := range x {
		mx, my = mx+x[i]/n, my+y[i]/n
	}
	for i := range x {
		xx += (x[i] - mx) * (x[i] - mx)
		xy += (x[i] - mx) * (y[i] - my)
	}
	slope = xy / xx
	for i := range x {
		d := y[i] - my - slope*(x[i]-mx)
		rest += d * d
	}
	return slope, math.Sqrt(rest / max(n-2, 1) / xx)
}
