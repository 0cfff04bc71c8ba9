package sandbox

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strings"

	"trainer/internal/sandbox/engine"
	"trainer/internal/sandbox/pretrained"
	"trainer/internal/sandbox/pretrained/curriculum"
	"trainer/internal/tokenizer"
	"trainer/internal/wire"
)

// The sandbox's limits, which supported-models tells and every request is held to.
const (
	maxBatch   = 128 // samples in a forward-backward
	maxRank    = 64
	gpuType    = "B200-SXM"
	ownPrefix  = "sandbox/"
	defaultIDs = 151936
)

// model is what a base_model name stands for here.
type model struct {
	name   string
	config engine.Config
	gpus   int                 // of the trainer; one generator replica has half of them, at least one
	taught func() *engine.Base // the weights that go by the name; nil: they are drawn
}

// ownModels are the bodies that go by their own names, with the byte vocabulary.
func ownModels() []model {
	ids := tokenizer.Bytes().Size()
	return []model{
		{name: ownPrefix + "bytes-tiny", config: engine.Tiny(ids)},
		{name: ownPrefix + "bytes-small", config: engine.Small(ids)},
		{name: ownPrefix + "pretrained-tiny", config: curriculum.Shape(), taught: pretrained.Tiny},
	}
}

// family is the vocabulary of a family of real models, and the GPUs that training one is priced at.
type family struct {
	prefix string
	ids    int
	gpus   int
}

// families is searched for the longest prefix of a name; vocabularies are the vocab_size of the published configs.
func families() []family {
	return []family{
		{"Qwen/", defaultIDs, 1},
		{"Qwen/Qwen2.5-7B", 152064, 1},
		{"Qwen/Qwen2.5-14B", 152064, 2},
		{"Qwen/Qwen2.5-32B", 152064, 4},
		{"Qwen/Qwen2.5-72B", 152064, 8},
		{"Qwen/Qwen3-235B", defaultIDs, 16},
		{"Qwen/Qwen3.5", 248320, 1},
		{"Qwen/Qwen3.8", 248320, 4},
		{"openai/gpt-oss", 201088, 2},
		{"openai/gpt-oss-120b", 201088, 8},
		{"meta-llama/Llama-2", 32000, 1},
		{"meta-llama/", 128256, 1},
		{"meta-llama/Llama-3.1-70B", 128256, 8},
		{"meta-llama/Llama-3.3-70B", 128256, 8},
		{"meta-llama/Llama-4", 202048, 8},
		{"deepseek-ai/DeepSeek", 129280, 16},
		{"google/gemma-2", 256000, 1},
		{"google/gemma-3", 262208, 1},
		{"mistralai/Mistral", 131072, 2},
		{"mistralai/Mistral-7B", 32768, 1},
		{"mistralai/Mixtral", 32768, 4},
		{"moonshotai/Kimi-K2", 163840, 16},
		{"zai-org/GLM-4", 151552, 8},
		{"MiniMaxAI/MiniMax-M", 200064, 8},
		{"microsoft/phi-4", 100352, 1},
	}
}

// wellKnown are the real names that supported-models lists; any other is served as well.
func wellKnown() []string {
	return []string{
		"Qwen/Qwen3.8-27B", "Qwen/Qwen3.5-4B", "Qwen/Qwen3-8B", "openai/gpt-oss-20b", "openai/gpt-oss-120b",
		"meta-llama/Llama-3.1-8B-Instruct", "meta-llama/Llama-3.3-70B-Instruct", "deepseek-ai/DeepSeek-V3.1",
		"google/gemma-3-4b-it", "moonshotai/Kimi-K2-Instruct", "zai-org/GLM-4.6", "MiniMaxAI/MiniMax-M2",
	}
}

// findModel resolves a base_model. A name that is not the sandbox's own gets a stand-in of its vocabulary's size.
func findModel(name string) (model, error) {
	own := ownModels()
	if i := slices.IndexFunc(own, func(m model) bool { return m.name == name }); i >= 0 {
		return own[i], nil
	}
	if strings.HasPrefix(name, ownPrefix) {
		var names []string
		for _, m := range own {
			names = append(names, m.name)
		}
		return model{}, invalid("base_model", "base_model: %q is not a model of the sandbox; it has %s",
			name, strings.Join(names, ", "))
	}
	best := family{ids: defaultIDs, gpus: 1}
	for _, f := range families() {
		if strings.HasPrefix(name, f.prefix) && len(f.prefix) > len(best.prefix) {
			best = f
		}
	}
	return model{name: name, config: engine.Tiny(best.ids), gpus: best.gpus}, nil
}

// Vocabulary is the number of token ids of what serves a base model here; 0 for a name that nothing serves. Ids are below it.
func Vocabulary(baseModel string) int {
	m, err := findModel(baseModel)
	if err != nil {
		return 0
	}
	return m.config.Vocab
}

// WithVocabulary is a base model whose stand-in has at least so many token ids, of those the one with the fewest; "" for none.
func WithVocabulary(ids int) string {
	best := ""
	for _, name := range wellKnown() {
		if n := Vocabulary(name); n >= ids && (best == "" || n < Vocabulary(best)) {
			best = name
		}
	}
	return best
}

// usdPerGPUHour is a plausible price, so that budgets can be rehearsed; what costs nothing is the sandbox itself.
const usdPerGPUHour = 5.50

// price is in US dollars an hour for the whole resource.
func (m model) price(generators int) float64 {
	return usdPerGPUHour * float64(m.gpus+generators*((m.gpus+1)/2))
}

func (m model) supported() wire.SupportedModel {
	return wire.SupportedModel{
		BaseModel: m.name, DefaultGPUType: gpuType, StandIn: standsIn(m.name),
		ComputeConfigs: []wire.SupportedCompute{{
			GPUType: gpuType,
			TrainerConfig: &wire.TrainerConfig{
				LoRA: &wire.TrainLimits{MaxBatchSize: maxBatch, MaxSeqLength: m.config.Context, MaxRank: maxRank},
				Full: &wire.TrainLimits{MaxBatchSize: maxBatch, MaxSeqLength: m.config.Context},
			},
			GeneratorConfig: &wire.GeneratorConfig{
				ContextLength:    m.config.Context,
				SamplingDefaults: wire.SamplingDefaults{Logprobs: 1, MaxTokens: 512, N: 1, Temperature: 1},
			},
		}},
	}
}

// weights are the frozen ones that sessions start from. A ref stands for other weights than the name's own: they are drawn.
func (m model) weights(ref string) *engine.Base {
	if m.taught != nil && ref == "" {
		return m.taught()
	}
	return engine.NewBase(m.config, baseSeed(m.name, ref))
}

// baseSeed decides the frozen weights that are drawn: the same name and ref have the same ones on every machine, for ever.
func baseSeed(name, ref string) uint64 {
	sum := sha256.Sum256([]byte("sandbox base 1\n" + name + "\n" + ref))
	return binary.LittleEndian.Uint64(sum[:])
}
