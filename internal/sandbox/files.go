package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strings"

	"trainer/internal/sandbox/engine"
	"trainer/internal/wire"
)

// exported is one file of a download: kept in the store, or short text.
type exported struct {
	name   string
	stored string
	text   []byte
}

// variants are the words of addresses.
var variants = map[wire.CheckpointVariant]string{wire.VariantAdapter: "adapter", wire.VariantMerged: "merged"}

// downloadCheckpoint hands out addresses of an inference checkpoint's files.
func (s *Server) downloadCheckpoint(r *request) (any, error) {
	variant := wire.CheckpointVariant(r.URL.Query().Get("variant"))
	if variants[variant] == "" {
		return nil, invalid("variant", "variant: %q is not one of %s, %s", variant, wire.VariantMerged, wire.VariantAdapter)
	}
	c, err := s.checkpoint(r.ids[0])
	if err != nil {
		return nil, err
	}
	switch {
	case !c.inference:
		return nil, invalid("id", "id: checkpoint %s is a training checkpoint; only inference checkpoints are downloaded", c.id)
	case variant == wire.VariantAdapter && c.session.spec.LoRA == nil:
		return nil, invalid("variant", "variant: checkpoint %s is of full weights and has no adapter; use %s", c.id, wire.VariantMerged)
	}
	files, err := s.export(c, variant)
	if err != nil {
		return nil, err
	}
	out := wire.CheckpointFiles{}
	for _, f := range files {
		size, err := s.sizeOf(f)
		if err != nil {
			return nil, err
		}
		id := c.id + "." + variants[variant] + "." + f.name
		out.Data = append(out.Data, wire.CheckpointFile{
			Filename: f.name, Size: wire.Int64(size), URL: s.presigned(r, http.MethodGet, "/files/", id),
		})
	}
	return out, nil
}

// checkpoint finds one. The lock is not held.
func (s *Server) checkpoint(id string) (*checkpoint, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c, ok := s.state.checkpoints.byID[id]; ok {
		return c, nil
	}
	return nil, notFound("id", "checkpoint", id)
}

// getFile answers an address that downloadCheckpoint handed out.
func (s *Server) getFile(r *request) (any, error) {
	parts := strings.SplitN(r.ids[0], ".", 3)
	if len(parts) < 3 {
		return nil, notFound("file", "file", r.ids[0])
	}
	c, err := s.checkpoint(parts[0])
	if err != nil {
		return nil, err
	}
	for variant, word := range variants {
		if word != parts[1] {
			continue
		}
		files, err := s.export(c, variant)
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			if f.name == parts[2] {
				return s.contents(f)
			}
		}
	}
	return nil, notFound("file", "file", r.ids[0])
}

// contentType is of what a path answers with.
func contentType(path string) string {
	if strings.HasSuffix(path, ".safetensors") {
		return "application/octet-stream"
	}
	return "application/json"
}

func (s *Server) contents(f exported) (any, error) {
	if f.stored == "" {
		return raw(f.text), nil
	}
	file, err := s.store.open(f.stored)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", f.stored, err)
	}
	b, err := io.ReadAll(file)
	return raw(b), errors.Join(err, file.Close())
}

func (s *Server) sizeOf(f exported) (int64, error) {
	if f.stored == "" {
		return int64(len(f.text)), nil
	}
	file, err := s.store.open(f.stored)
	if err != nil {
		return 0, fmt.Errorf("reading %s: %w", f.stored, err)
	}
	n, err := io.Copy(io.Discard, file)
	return n, errors.Join(err, file.Close())
}

// export lists the files of a variant: the weights, and what a loader needs to know of them.
func (s *Server) export(c *checkpoint, variant wire.CheckpointVariant) ([]exported, error) {
	m, err := findModel(c.session.resource.spec.BaseModel)
	if err != nil {
		return nil, err
	}
	if variant == wire.VariantAdapter {
		config, err := json.MarshalIndent(adapterConfig(c.session, m), "", "  ")
		return []exported{
			{name: "adapter_model.safetensors", stored: c.file()}, {name: "adapter_config.json", text: config},
		}, err
	}
	stored := c.file()
	if c.session.spec.LoRA != nil {
		if stored, err = s.merged(c, m); err != nil {
			return nil, err
		}
	}
	config, err := json.MarshalIndent(modelConfig(c.session, m), "", "  ")
	if err != nil {
		return nil, err
	}
	generation, err := json.MarshalIndent(struct {
		EOS []int32 `json:"eos_token_id"`
	}{m.stops()}, "", "  ")
	return []exported{
		{name: "model.safetensors", stored: stored}, {name: "config.json", text: config},
		{name: "generation_config.json", text: generation},
	}, err
}

// merged is the file of a LoRA checkpoint's full weights. It is made when it is first asked for; its bytes are a function of
// the checkpoint's.
func (s *Server) merged(c *checkpoint, m model) (string, error) {
	name := "checkpoints/" + c.id + ".merged.safetensors"
	f, err := s.store.open(name)
	if err == nil {
		return name, f.Close()
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	model, err := s.modelOf(c, m)
	if err != nil {
		return "", err
	}
	model.SetSteps(c.step)
	return name, s.store.put(name, func(w io.Writer) error { return model.Publish().SaveMerged(w) })
}

// peftConfig is adapter_config.json as PEFT reads it.
type peftConfig struct {
	PEFTType      string   `json:"peft_type"`
	TaskType      string   `json:"task_type"`
	Base          string   `json:"base_model_name_or_path"`
	Rank          int      `json:"r"`
	Alpha         int      `json:"lora_alpha"`
	Dropout       float64  `json:"lora_dropout"`
	Bias          string   `json:"bias"`
	TargetModules []string `json:"target_modules"`
	FanInFanOut   bool     `json:"fan_in_fan_out"`
	InferenceMode bool     `json:"inference_mode"`
}

func adapterConfig(sess *session, m model) peftConfig {
	l := sess.spec.LoRA
	c := peftConfig{
		PEFTType: "LORA", TaskType: "CAUSAL_LM", Base: m.name, Rank: l.Rank, Alpha: l.Alpha, Dropout: l.Dropout, Bias: "none",
		TargetModules: []string{"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"}, InferenceMode: true,
	}
	if l.TrainUnembed {
		c.TargetModules = append(c.TargetModules, m.config.HeadModules()...)
	}
	return c
}

// llamaConfig is config.json as Transformers reads it. A two-level vocabulary is no Llama's, and says so in the names.
type llamaConfig struct {
	Architectures []string `json:"architectures"`
	ModelType     string   `json:"model_type"`
	Hidden        int      `json:"hidden_size"`
	Intermediate  int      `json:"intermediate_size"`
	Layers        int      `json:"num_hidden_layers"`
	Heads         int      `json:"num_attention_heads"`
	KVHeads       int      `json:"num_key_value_heads"`
	Activation    string   `json:"hidden_act"`
	Context       int      `json:"max_position_embeddings"`
	NormEpsilon   float64  `json:"rms_norm_eps"`
	RopeTheta     float64  `json:"rope_theta"`
	Vocab         int      `json:"vocab_size"`
	VocabHigh     int      `json:"vocab_high,omitempty"` // id = high·vocab_low + low
	VocabLow      int      `json:"vocab_low,omitempty"`
	Tied          bool     `json:"tie_word_embeddings"`
	DType         string   `json:"torch_dtype"`
	StandIn       bool     `json:"stand_in,omitempty"`
}

func modelConfig(sess *session, m model) llamaConfig {
	c := llamaConfig{
		Architectures: []string{"LlamaForCausalLM"}, ModelType: "llama", Hidden: m.config.Dim, Intermediate: m.config.Hidden,
		Layers: m.config.Layers, Heads: m.config.Heads, KVHeads: m.config.Heads, Activation: "silu", Context: m.config.Context,
		NormEpsilon: engine.NormEpsilon, RopeTheta: 10000, Vocab: m.config.Vocab, DType: "float32", StandIn: standsIn(m.name),
		Tied: sess.spec.LoRA == nil || !sess.spec.LoRA.TrainUnembed,
	}
	if high, low, ok := m.config.Split(); ok {
		c.Architectures, c.ModelType = []string{"SandboxTwoLevelForCausalLM"}, "sandbox_two_level"
		c.VocabHigh, c.VocabLow = high, low
	}
	return c
}
