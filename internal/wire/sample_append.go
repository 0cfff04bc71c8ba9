package wire

import (
	"fmt"
	"strconv"
)

// AppendSample appends the compact JSON of q; what is nil or false is left out. A number that is not finite is an error;
// then dst comes back as it was.
func AppendSample(dst []byte, q *SampleRequest) ([]byte, error) {
	start := len(dst)
	dst = append(dst, `{"model_inputs":[`...)
	for i, prompt := range q.Inputs {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"chunks":[{"encoded_text":{"tokens":[`...)
		dst = append(appendInts(dst, prompt), `]}}]}`...)
	}
	dst = append(dst, ']')
	if q.NumSamples != nil {
		dst = strconv.AppendInt(append(dst, `,"num_samples":`...), int64(*q.NumSamples), 10)
	}
	dst, err := appendSampling(append(dst, `,"sampling_params":{`...), &q.Params)
	if err != nil {
		return dst[:start], err
	}
	dst = append(dst, '}')
	if q.PromptLogprobs {
		dst = append(dst, `,"prompt_logprobs":true`...)
	}
	if q.TopPromptLogprobs > 0 {
		dst = strconv.AppendInt(append(dst, `,"topk_prompt_logprobs":`...), int64(q.TopPromptLogprobs), 10)
	}
	if q.RoutedExperts {
		dst = append(dst, `,"return_routed_experts":true`...)
	}
	return append(appendPayload(dst, q.PayloadID), '}'), nil
}

func appendSampling(dst []byte, p *SamplingParams) ([]byte, error) {
	open := len(dst)
	member := func(name string) {
		if len(dst) > open {
			dst = append(dst, ',')
		}
		dst = append(appendString(dst, name), ':')
	}
	if p.MaxTokens != nil {
		member("max_tokens")
		dst = strconv.AppendInt(dst, int64(*p.MaxTokens), 10)
	}
	for _, x := range []struct {
		name  string
		value *float64
	}{{"temperature", p.Temperature}, {"top_p", p.TopP}} {
		if x.value == nil {
			continue
		}
		member(x.name)
		var err error
		if dst, err = appendDouble(dst, *x.value); err != nil {
			return dst, fmt.Errorf("sampling_params.%s: %w", x.name, err)
		}
	}
	if p.TopK != nil {
		member("top_k")
		dst = strconv.AppendInt(dst, int64(*p.TopK), 10)
	}
	if len(p.Stop) > 0 {
		member("stop")
		for i, text := range p.Stop {
			dst = appendString(append(dst, "[,"[min(i, 1)]), text)
		}
		dst = append(dst, ']')
	}
	if p.Seed != nil {
		member("seed")
		dst = append(strconv.AppendInt(append(dst, '"'), *p.Seed, 10), '"')
	}
	return dst, nil
}

// Shortened is the body that goes with an upload: payloadID, and the first ShortLength tokens of every prompt. It shares
// the slices of q.
func (q *SampleRequest) Shortened(payloadID string) *SampleRequest {
	s := *q
	s.PayloadID, s.Inputs = payloadID, make([][]int32, len(q.Inputs))
	for i, prompt := range q.Inputs {
		s.Inputs[i] = first(prompt)
	}
	return &s
}
