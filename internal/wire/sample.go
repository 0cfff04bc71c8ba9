package wire

import (
	"fmt"
	"io"
	"math"
	"strconv"
)

// SampleRequest is the body of sample, inline or uploaded. An upload replaces Inputs; the POST that names it by PayloadID has
// them shortened. nil takes the service's default.
type SampleRequest struct {
	Inputs            [][]int32 // model_inputs: one a prompt, the chunks of each joined; nil: absent
	NumSamples        *int      // completions a prompt
	Params            SamplingParams
	PromptLogprobs    bool
	TopPromptLogprobs int // topk_prompt_logprobs
	RoutedExperts     bool
	PayloadID         string
}

// SamplingParams are of every prompt of a request.
type SamplingParams struct {
	MaxTokens   *int
	Temperature *float64
	TopP        *float64
	TopK        *int // -1 is off
	Stop        []string
	Seed        *int64
}

// DecodeSample reads the body of a sample request. It is strict about types; members that it does not know are skipped; an
// error names the place. More than maxPrompts prompts are refused (0: any number). Ranges are the caller's to check.
func DecodeSample(r io.Reader, maxPrompts int) (*SampleRequest, error) {
	s := newScanner(r)
	q := &SampleRequest{}
	s.object(func(name string) {
		switch {
		case name == "payload_id":
			q.PayloadID = s.text(name)
		case s.null():
			s.skip()
		case name == "model_inputs":
			s.within(name, func() { q.Inputs = s.modelInputs(maxPrompts) })
		case name == "num_samples":
			s.within(name, func() { q.NumSamples = new(s.small()) })
		case name == "sampling_params":
			s.within(name, func() { s.samplingParams(&q.Params) })
		case name == "prompt_logprobs":
			s.within(name, func() { q.PromptLogprobs = s.boolean() })
		case name == "topk_prompt_logprobs":
			s.within(name, func() { q.TopPromptLogprobs = s.small() })
		case name == "return_routed_experts":
			s.within(name, func() { q.RoutedExperts = s.boolean() })
		default:
			s.skip()
		}
	})
	s.end()
	if s.err != nil {
		return nil, fmt.Errorf("reading the body: %w", s.err)
	}
	return q, nil
}

func (s *scanner) modelInputs(most int) [][]int32 {
	list := [][]int32{}
	s.array(func(i int) {
		if most > 0 && i >= most {
			s.fail("more than %d prompts", most)
			return
		}
		list = append(list, s.modelInput())
	})
	return list
}

func (s *scanner) samplingParams(p *SamplingParams) {
	s.object(func(name string) {
		if s.null() {
			s.skip()
			return
		}
		switch name {
		case "max_tokens":
			s.within(name, func() { p.MaxTokens = new(s.small()) })
		case "temperature":
			s.within(name, func() { p.Temperature = new(s.double()) })
		case "top_p":
			s.within(name, func() { p.TopP = new(s.double()) })
		case "top_k":
			s.within(name, func() { p.TopK = new(s.small()) })
		case "seed":
			s.within(name, func() { p.Seed = new(s.int64()) })
		case "stop":
			s.within(name, func() {
				p.Stop = []string{}
				s.array(func(int) { p.Stop = append(p.Stop, string(s.string())) })
			})
		default:
			s.skip()
		}
	})
}

// small reads an integer of 32 bits.
func (s *scanner) small() int {
	n := s.number()
	switch {
	case s.err != nil:
		return 0
	case !n.integer || n.digits > 10 || n.mantissa > math.MaxInt32:
		s.fail("%.40s is not a 32-bit integer", n.text)
		return 0
	case n.negative:
		return -int(n.mantissa)
	}
	return int(n.mantissa)
}

// int64 reads an integer, as a number or as a string.
func (s *scanner) int64() int64 {
	var text []byte
	if s.peek() == '"' {
		text = s.string()
	} else {
		text = s.number().text
	}
	v, ok, err := parseInt64(text)
	if s.err == nil && (!ok || err != nil) {
		s.fail("%.40q is not a 64-bit integer", text)
	}
	return v
}

// SampleOutput is the answer of sample: Results, one a prompt, or where they are stored outside.
type SampleOutput struct {
	Results   []SampleResult `json:"results,omitempty"`
	PayloadID string         `json:"payload_id,omitempty"`
}

// SampleResult is what became of one prompt.
type SampleResult struct {
	Sequences      []SampledSequence `json:"sequences"`
	PolicySegments []PolicySegment   `json:"policy_segments"`
	PromptLogprobs []float64         `json:"prompt_logprobs,omitempty"`      // one a prompt token, entry 0 is 0; nil: not asked for
	TopLogprobs    []TopLogprobs     `json:"topk_prompt_logprobs,omitempty"` // one a prompt token, entry 0 is empty; nil: not asked for
}

// SampledSequence is one completion.
type SampledSequence struct {
	Tokens               []Int64    `json:"tokens"`
	Logprobs             []float64  `json:"logprobs"` // one a token, values of a float32
	StopReason           StopReason `json:"stop_reason"`
	PromptCacheHitTokens int        `json:"prompt_cache_hit_tokens"`
	RoutedExpertsKey     string     `json:"routed_experts_key,omitempty"`
}

// PolicySegment says under which version of the weights the tokens from StartToken on were sampled.
type PolicySegment struct {
	Version    int64 `json:"version"`
	StartToken int   `json:"start_token"`
}

// TopLogprobs are alternatives for one prompt token, by falling log-probability.
type TopLogprobs struct {
	TokenIDs []int32   `json:"token_ids"`
	Logprobs []float64 `json:"logprobs"`
}

// StopReason is an enum.
type StopReason string

// Why a sequence ended.
const (
	StopLength StopReason = "STOP_REASON_LENGTH"
	StopStop   StopReason = "STOP_REASON_STOP"
)

// AppendSampleOutput appends the compact JSON of o. A log-probability that is no finite float32 is an error; then dst comes
// back as it was.
func AppendSampleOutput(dst []byte, o *SampleOutput) ([]byte, error) {
	start := len(dst)
	dst = append(dst, '{')
	if o.Results != nil {
		dst = append(dst, `"results":[`...)
		for i := range o.Results {
			if i > 0 {
				dst = append(dst, ',')
			}
			var err error
			if dst, err = appendResult(dst, &o.Results[i]); err != nil {
				return dst[:start], fmt.Errorf("encoding the output: results[%d].%w", i, err)
			}
		}
		dst = append(dst, ']')
	}
	if o.PayloadID != "" {
		if o.Results != nil {
			dst = append(dst, ',')
		}
		dst = appendString(append(dst, `"payload_id":`...), o.PayloadID)
	}
	return append(dst, '}'), nil
}

func appendResult(dst []byte, r *SampleResult) ([]byte, error) {
	var err error
	dst = append(dst, `{"sequences":[`...)
	for i := range r.Sequences {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, err = appendSequence(dst, &r.Sequences[i]); err != nil {
			return dst, fmt.Errorf("sequences[%d].%w", i, err)
		}
	}
	dst = append(dst, `],"policy_segments":[`...)
	for i, p := range r.PolicySegments {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = fmt.Appendf(dst, `{"version":%d,"start_token":%d}`, p.Version, p.StartToken)
	}
	dst = append(dst, ']')
	if r.PromptLogprobs != nil {
		dst = append(dst, `,"prompt_logprobs":`...)
		if dst, err = appendRow(dst, r.PromptLogprobs); err != nil {
			return dst, fmt.Errorf("prompt_logprobs%w", err)
		}
	}
	if r.TopLogprobs != nil {
		dst = append(dst, `,"topk_prompt_logprobs":[`...)
		for i, top := range r.TopLogprobs {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(appendInts(append(dst, `{"token_ids":[`...), top.TokenIDs), `],"logprobs":`...)
			if dst, err = appendRow(dst, top.Logprobs); err != nil {
				return dst, fmt.Errorf("topk_prompt_logprobs[%d].logprobs%w", i, err)
			}
			dst = append(dst, '}')
		}
		dst = append(dst, ']')
	}
	return append(dst, '}'), nil
}

func appendSequence(dst []byte, s *SampledSequence) ([]byte, error) {
	dst = append(dst, `{"tokens":[`...)
	for i, id := range s.Tokens {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(strconv.AppendInt(append(dst, '"'), int64(id), 10), '"')
	}
	dst = append(dst, `],"logprobs":`...)
	var err error
	if dst, err = appendRow(dst, s.Logprobs); err != nil {
		return dst, fmt.Errorf("logprobs%w", err)
	}
	dst = appendString(append(dst, `,"stop_reason":`...), string(s.StopReason))
	dst = strconv.AppendInt(append(dst, `,"prompt_cache_hit_tokens":`...), int64(s.PromptCacheHitTokens), 10)
	if s.RoutedExpertsKey != "" {
		dst = appendString(append(dst, `,"routed_experts_key":`...), s.RoutedExpertsKey)
	}
	return append(dst, '}'), nil
}

func appendRow(dst []byte, row []float64) ([]byte, error) {
	dst, at := appendFloats(append(dst, '['), row)
	if at >= 0 {
		return dst, fmt.Errorf("[%d]: %v is not a finite float32", at, row[at])
	}
	return append(dst, ']'), nil
}
