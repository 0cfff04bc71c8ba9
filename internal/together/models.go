package together

import (
	"context"
	"net/http"

	"trainer/internal/wire"
	"trainer/runner"
)

// Models implements runner.Backend.
func (c *Client) Models(ctx context.Context) ([]runner.Model, error) {
	var page wire.SupportedModels
	if err := c.do(ctx, &call{method: http.MethodGet, path: wire.PathModels, read: into(&page)}, reading); err != nil {
		return nil, err
	}
	models := make([]runner.Model, len(page.Data))
	for i, m := range page.Data {
		models[i] = runner.Model{Name: m.BaseModel, DefaultGPU: m.DefaultGPUType, StandIn: m.StandIn}
		for _, compute := range m.ComputeConfigs {
			models[i].Configs = append(models[i].Configs, config(compute))
		}
	}
	return models, nil
}

func config(c wire.SupportedCompute) runner.ModelConfig {
	out := runner.ModelConfig{GPUType: c.GPUType}
	if t := c.TrainerConfig; t != nil {
		out.LoRA, out.Full = limits(t.LoRA), limits(t.Full)
	}
	if g := c.GeneratorConfig; g != nil {
		out.Generator = &runner.GeneratorLimits{
			ContextLength: g.ContextLength, MaxTokens: g.SamplingDefaults.MaxTokens, Temperature: g.SamplingDefaults.Temperature,
		}
	}
	return out
}

func limits(l *wire.TrainLimits) *runner.TrainLimits {
	if l == nil {
		return nil
	}
	return &runner.TrainLimits{MaxBatchSize: l.MaxBatchSize, MaxSeqLength: l.MaxSeqLength, MaxRank: l.MaxRank}
}
