package wire

// SupportedModels is the answer of GET PathModels.
type SupportedModels struct {
	Data []SupportedModel `json:"data"`
}

// SupportedModel is a base model that can be trained.
type SupportedModel struct {
	BaseModel      string             `json:"base_model"`
	DefaultGPUType string             `json:"default_gpu_type"`
	ComputeConfigs []SupportedCompute `json:"compute_configs,omitempty"`
	// StandIn is a member of the sandbox alone: another body stands in for the model.
	StandIn bool `json:"stand_in,omitempty"`
}

// SupportedCompute is a model on a GPU type; nil where it is not offered.
type SupportedCompute struct {
	GPUType         string           `json:"gpu_type"`
	TrainerConfig   *TrainerConfig   `json:"trainer_config,omitempty"`
	GeneratorConfig *GeneratorConfig `json:"generator_config,omitempty"`
}

// TrainerConfig has the limits of the training modes.
type TrainerConfig struct {
	LoRA *TrainLimits `json:"lora,omitempty"`
	Full *TrainLimits `json:"full,omitempty"`
}

// TrainLimits are of one training mode. MaxRank is of LoRA alone.
type TrainLimits struct {
	MaxBatchSize int `json:"max_batch_size"` // samples in a forward-backward
	MaxSeqLength int `json:"max_seq_length"` // tokens in a sample
	MaxRank      int `json:"max_rank,omitempty"`
}

// GeneratorConfig has the limits of sampling.
type GeneratorConfig struct {
	ContextLength    int              `json:"context_length"` // tokens of prompt plus completion
	SamplingDefaults SamplingDefaults `json:"sampling_defaults"`
}

// SamplingDefaults apply to what a sample request leaves out.
type SamplingDefaults struct {
	Logprobs    int     `json:"logprobs"`
	MaxTokens   int     `json:"max_tokens"`
	N           int     `json:"n"`
	Temperature float64 `json:"temperature"`
}

// CostEstimate prices a resource.
type CostEstimate struct {
	Currency     string  `json:"currency"` // ISO 4217
	PricePerHour float64 `json:"price_per_hour"`
}
