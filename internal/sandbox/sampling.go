package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"

	"trainer/internal/sandbox/engine"
	"trainer/internal/tokenizer"
	"trainer/internal/wire"
)

// The limits of a sample request.
const (
	maxPrompts   = 512
	maxSamples   = 1024 // completions of a prompt
	maxSequences = 4096 // completions of a request
	maxStops     = 16   // stop texts
	maxStop      = 1024 // bytes of one
)

// defaultMaxTokens is the contract's; what the context leaves is less where a prompt is long.
const defaultMaxTokens = 512

// readSample reads and checks the body of sample.
func (s *Server) readSample(session string, m model, body []byte) (*work, error) {
	q, err := readAt(bytes.NewReader(body), maxPrompts, wire.DecodeSample)
	if err != nil {
		return nil, err
	}
	res := s.resourceOf(session)
	if res.Generators == 0 {
		return nil, wrongState("no_generators", "the model resource has num_generator_replicas 0: nothing samples")
	}
	w := &work{payloadID: q.PayloadID}
	if q.PayloadID != "" {
		if q.Inputs == nil {
			return nil, invalid("model_inputs", "model_inputs: is required, shortened, beside payload_id")
		}
		logprobs, top, routed := q.PromptLogprobs, q.TopPromptLogprobs, q.RoutedExperts
		if q, err = readPayload(s, session, w, maxPrompts, wire.DecodeSample); err != nil {
			return nil, err
		}
		q.PromptLogprobs, q.TopPromptLogprobs = q.PromptLogprobs || logprobs, max(q.TopPromptLogprobs, top)
		q.RoutedExperts = q.RoutedExperts || routed
	}
	w.routed = q.RoutedExperts && m.experts()
	w.sample, err = sampleOf(q, m)
	if err == nil && w.sample.Seed != nil && res.Generators > 1 {
		w.unseedable = true
	}
	return w, err
}

// sampleOf is the request as the engine takes it.
func sampleOf(q *wire.SampleRequest, m model) (*engine.SampleRequest, error) {
	if len(q.Inputs) == 0 {
		return nil, invalid("model_inputs", "model_inputs: needs at least one prompt")
	}
	out := &engine.SampleRequest{
		Prompts: q.Inputs, Samples: 1, PromptLogprobs: q.PromptLogprobs, TopPromptLogprobs: q.TopPromptLogprobs,
		Sampling: engine.Sampling{Temperature: 1, TopP: 1, StopIDs: m.stops(), Seed: q.Params.Seed},
	}
	if q.NumSamples != nil {
		out.Samples = *q.NumSamples
	}
	switch {
	case out.Samples < 1 || out.Samples > maxSamples:
		return nil, invalid("num_samples", "num_samples: %d is not a number from 1 to %d", out.Samples, maxSamples)
	case out.Samples*len(q.Inputs) > maxSequences:
		return nil, invalid("num_samples", "num_samples: %d of %d prompts are more than %d sequences", out.Samples, len(q.Inputs), maxSequences)
	case q.TopPromptLogprobs < 0 || q.TopPromptLogprobs > engine.MostAlternatives:
		return nil, invalid("topk_prompt_logprobs", "topk_prompt_logprobs: %d is not a number from 0 to %d",
			q.TopPromptLogprobs, engine.MostAlternatives)
	}
	longest := 0
	for i, p := range q.Inputs {
		if err := checkPrompt(i, p, m.config); err != nil {
			return nil, err
		}
		longest = max(longest, len(p))
	}
	return out, setSampling(&out.Sampling, q.Params, m, m.config.Context-longest)
}

func checkPrompt(i int, prompt []int32, c engine.Config) error {
	place := fmt.Sprintf("model_inputs[%d]", i)
	if n := len(prompt); n == 0 || n >= c.Context {
		return invalid(place, "%s: has %d tokens; a prompt has from 1 to %d, one less than the context", place, n, c.Context-1)
	}
	for t, id := range prompt {
		if !within(id, c) {
			return invalid(place, "%s: token %d is %d, outside of the vocabulary of %d", place, t, id, c.Vocab)
		}
	}
	return nil
}

// setSampling fills in what p says; room is what the longest prompt leaves of the context.
func setSampling(s *engine.Sampling, p wire.SamplingParams, m model, room int) error {
	fault := func(name, format string, a ...any) error {
		name = "sampling_params." + name
		return invalid(name, name+": "+format, a...)
	}
	s.MaxTokens = min(defaultMaxTokens, room)
	if p.MaxTokens != nil {
		if s.MaxTokens = *p.MaxTokens; s.MaxTokens < 1 || s.MaxTokens > room {
			return fault("max_tokens", "%d is not a number from 1 to %d, which is what the longest prompt leaves of the context", s.MaxTokens, room)
		}
	}
	if p.Temperature != nil {
		if s.Temperature = *p.Temperature; !(s.Temperature >= 0) || math.IsInf(s.Temperature, 1) {
			return fault("temperature", "%v is not a finite number of at least 0", s.Temperature)
		}
	}
	if p.TopP != nil {
		if s.TopP = *p.TopP; !(s.TopP > 0 && s.TopP <= 1) {
			return fault("top_p", "%v is not above 0 and at most 1", s.TopP)
		}
	}
	if p.TopK != nil {
		if s.TopK = max(*p.TopK, 0); *p.TopK < -1 {
			return fault("top_k", "%d is not a number of ids, or -1 for all", *p.TopK)
		}
	}
	if len(p.Stop) > maxStops {
		return fault("stop", "has %d texts, at most %d are accepted", len(p.Stop), maxStops)
	}
	for i, text := range p.Stop {
		if text == "" || len(text) > maxStop {
			return fault(fmt.Sprintf("stop[%d]", i), "has %d bytes; a stop text has from 1 to %d", len(text), maxStop)
		}
	}
	s.StopTexts, s.Text = p.Stop, m.text()
	return nil
}

// text gives the bytes that an id stands for. The sandbox's own models have the byte vocabulary. A stand-in has a stranger's,
// of which only the ids below 256 are taken for bytes; any other id has no text.
func (m model) text() func(int32) []byte {
	ids := tokenizer.Bytes()
	if standsIn(m.name) {
		return func(id int32) []byte {
			if id < 256 {
				return []byte{byte(id)}
			}
			return nil
		}
	}
	return func(id int32) []byte { return []byte(ids.Decode([]int32{id})) }
}

// stops are the ids that end a completion: those that the published generation configs of a family name.
func (m model) stops() []int32 {
	if end, ok := tokenizer.Bytes().Control("<|end|>"); ok && !standsIn(m.name) {
		return []int32{end}
	}
	var longest string
	var ids []int32
	for _, f := range stopFamilies() {
		if strings.HasPrefix(m.name, f.prefix) && len(f.prefix) >= len(longest) {
			longest, ids = f.prefix, f.ids
		}
	}
	return ids
}

type stopFamily struct {
	prefix string
	ids    []int32
}

// stopFamilies has the longest prefix of a name win; the empty one is for names that nothing is known of, whose vocabulary
// is taken to be Qwen's.
func stopFamilies() []stopFamily {
	return []stopFamily{
		{"", []int32{151645, 151643}},
		{"Qwen/Qwen3.5", []int32{248046, 248044}},
		{"Qwen/Qwen3.8", []int32{248046, 248044}},
		{"openai/gpt-oss", []int32{200002, 199999, 200012}},
		{"meta-llama/", []int32{128001, 128008, 128009}},
		{"meta-llama/Llama-2", []int32{2}},
		{"meta-llama/Llama-4", []int32{200001, 200007, 200008}},
		{"deepseek-ai/DeepSeek", []int32{1}},
		{"google/gemma-2", []int32{1, 107}},
		{"google/gemma-3", []int32{1, 106}},
		{"mistralai/", []int32{2}},
		{"moonshotai/Kimi-K2", []int32{163586}},
		{"zai-org/GLM-4", []int32{151329, 151336, 151338}},
		{"MiniMaxAI/MiniMax-M", []int32{200020}},
		{"microsoft/phi-4", []int32{100257, 100265}},
	}
}

// resourceOf is the spec of a session's resource. The lock is not held.
func (s *Server) resourceOf(session string) resourceSpec {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state.sessions.byID[session].resource.spec
}

// errSeed is what a seed gives where several engines share the prompts.
var errSeed = errors.New("seed is not supported with several generator replicas")
