package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/urfave/cli/v2"

	"trainer/internal/diag"
	"trainer/internal/report"
	"trainer/runner"
)

func (a *app) models() *cli.Command {
	return &cli.Command{
		Name: "models", Usage: "list what the service trains: GPU types, limits, price", ArgsUsage: "[NAME]",
		Description: "Examples:\n  trainer models --sandbox\n  TOGETHER_API_KEY=… trainer models Qwen/Qwen3.8-27B",
		Flags:       []cli.Flag{sandboxFlag, jsonFlag},
		Action: func(c *cli.Context) error {
			name := c.Args().First()
			w, err := a.place(name, c.Bool("sandbox") || loopback(a.getenv("TOGETHER_BASE_URL")))
			if err != nil {
				return err
			}
			l, err := a.connect(w, "")
			if err != nil {
				return err
			}
			defer func() { _ = l.close() }()
			rows, err := offers(c.Context, l, name)
			if err != nil {
				return err
			}
			if c.Bool("json") {
				return a.printJSON(rows)
			}
			return report.Table(a.out, []string{"MODEL", "GPU", "MODE", "MAX BATCH", "MAX TOKENS", "MAX RANK", "CONTEXT", "USD/HOUR"}, offerRows(rows))
		},
	}
}

// offer is one way to train a model.
type offer struct {
	Model   string   `json:"base_model"`
	GPU     string   `json:"gpu_type"`
	Mode    string   `json:"mode"` // lora, full
	Batch   int      `json:"max_batch_size"`
	Tokens  int      `json:"max_seq_length"`
	Rank    int      `json:"max_rank,omitempty"`
	Context int      `json:"context_length,omitempty"`
	Price   *float64 `json:"price_usd_per_hour"`
	StandIn bool     `json:"stand_in,omitempty"`
}

func offers(ctx context.Context, l *link, name string) ([]offer, error) {
	models, err := l.client.Models(ctx)
	if err != nil {
		return nil, err
	}
	var names []string
	var out []offer
	for _, m := range models {
		names = append(names, m.Name)
		if name != "" && m.Name != name {
			continue
		}
		for _, cfg := range m.Configs {
			rows := modes(m, cfg)
			for i := range rows {
				price, err := l.client.Price(ctx, runner.ResourceSpec{BaseModel: m.Name, GPUType: cfg.GPUType, LoRA: rows[i].Mode == "lora", InactiveTimeout: minTimeout})
				if err == nil {
					rows[i].Price = &price
				}
			}
			out = append(out, rows...)
		}
	}
	if name != "" && !slices.Contains(names, name) {
		return nil, &usage{fmt.Sprintf("trainer models: %q is not a model of the service%s", name, diag.DidYouMean(name, names))}
	}
	return out, nil
}

func modes(m runner.Model, cfg runner.ModelConfig) []offer {
	base := offer{Model: m.Name, GPU: cfg.GPUType, StandIn: m.StandIn}
	if cfg.Generator != nil {
		base.Context = cfg.Generator.ContextLength
	}
	var out []offer
	if t := cfg.LoRA; t != nil {
		o := base
		o.Mode, o.Batch, o.Tokens, o.Rank = "lora", t.MaxBatchSize, t.MaxSeqLength, t.MaxRank
		out = append(out, o)
	}
	if t := cfg.Full; t != nil {
		o := base
		o.Mode, o.Batch, o.Tokens = "full", t.MaxBatchSize, t.MaxSeqLength
		out = append(out, o)
	}
	return out
}

func offerRows(offers []offer) [][]string {
	number := func(n int) string {
		if n == 0 {
			return ""
		}
		return strconv.Itoa(n)
	}
	var rows [][]string
	for _, o := range offers {
		price := ""
		if o.Price != nil {
			price = fmt.Sprintf("%.2f", *o.Price)
		}
		name := o.Model
		if o.StandIn {
			name += " (stand-in)"
		}
		rows = append(rows, []string{name, o.GPU, o.Mode, number(o.Batch), number(o.Tokens), number(o.Rank), number(o.Context), price})
	}
	return rows
}
