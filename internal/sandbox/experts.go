package sandbox

import (
	"crypto/hmac"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"trainer/internal/wire"
)

// expertModels are prefixes of the names of mixture-of-experts models. Their stand-ins are dense, so there is no choice of
// experts to keep; what is kept is the protocol of the keys: who hands them out, and what they must cover.
var expertModels = []string{
	"Qwen/Qwen3-30B-A3B", "Qwen/Qwen3-235B", "openai/gpt-oss", "meta-llama/Llama-4", "deepseek-ai/DeepSeek-V", "deepseek-ai/DeepSeek-R1",
	"mistralai/Mixtral", "moonshotai/Kimi-K2", "zai-org/GLM-4.5", "zai-org/GLM-4.6", "MiniMaxAI/MiniMax-M",
}

func (m model) experts() bool {
	return slices.ContainsFunc(expertModels, func(prefix string) bool { return strings.HasPrefix(m.name, prefix) })
}

// expertsPrefix begins every routed_experts_key.
const expertsPrefix = "rek_"

// expertsKey is the key of a sequence, by its place in the log: it needs no record, and is good for as long as the folder.
// tokens are those that went through the layers, which are all of prompt and completion but the last. The lock is not held.
func (s *Server) expertsKey(base, op string, prompt, completion, tokens int) string {
	body := fmt.Sprintf("%s.%d.%d.%d", op, prompt, completion, tokens)
	return expertsPrefix + body + "." + s.expertsSignature(base, body)
}

func (s *Server) expertsSignature(base, body string) string {
	return s.signature("experts of "+base, body)
}

// keyExperts gives every sequence of an answer its key.
func (s *Server) keyExperts(op *operation, w *work, out *wire.SampleOutput) {
	base := op.session.resource.spec.BaseModel
	for i := range out.Results {
		for n := range out.Results[i].Sequences {
			seq := &out.Results[i].Sequences[n]
			seq.RoutedExpertsKey = s.expertsKey(base, op.id, i, n, len(w.sample.Prompts[i])+len(seq.Tokens)-1)
		}
	}
}

// checkExperts holds the keys of samples to those that sampling handed out for this base model, and to what they cover: the
// whole sample, or all but its last token.
func (s *Server) checkExperts(w *work, base string) error {
	for i, key := range w.experts {
		if key == "" {
			continue
		}
		const member = "routed_experts_key"
		body, signature := "", ""
		rest, known := strings.CutPrefix(key, expertsPrefix)
		if at := strings.LastIndex(rest, "."); known && at >= 0 {
			body, signature = rest[:at], rest[at+1:]
		}
		if !hmac.Equal([]byte(signature), []byte(s.expertsSignature(base, body))) {
			return sampleFault(i, member, "%.100q was not handed out with a sequence that %s sampled here", key, base)
		}
		covered, err := strconv.Atoi(body[strings.LastIndex(body, ".")+1:])
		if n := len(w.data[i].Input); err != nil || covered < n-1 {
			return sampleFault(i, member, "is of %d tokens, the sample has %d; all but the last must be covered", covered, n)
		}
	}
	return nil
}
