package runner

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Ask asks the service what it would refuse of the plan and what it would charge. It is free and creates nothing. The
// plan's Cost is set.
func (in *Inputs) Ask(ctx context.Context, p *Plan, b Backend, res Resources) error {
	models, err := b.Models(ctx)
	if err != nil {
		return fmt.Errorf("ask what the service trains: %w", err)
	}
	c, problems := in.Check(p, models)
	if err := problems.Err(); err != nil {
		return err
	}
	usd, err := res.Price(ctx, SpecOf(in.Recipe, c.GPUType))
	if err != nil {
		return fmt.Errorf("ask for the price: %w", err)
	}
	dead := in.Recipe.InactiveTimeout + time.Minute
	p.Cost = &Cost{USDPerHour: usd, DeadMan: dead, DeadManUSD: usd * dead.Hours()}
	return nil
}

// ReadMetrics reads metrics.jsonl of a run folder: one map a line, in step order. A torn last line is left out.
func ReadMetrics(dir string) ([]map[string]float64, error) {
	b, err := os.ReadFile(filepath.Join(dir, metricsName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []map[string]float64
	s := bufio.NewScanner(bytes.NewReader(b))
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		m := map[string]float64{}
		if json.Unmarshal(s.Bytes(), &m) == nil {
			out = append(out, m)
		}
	}
	return out, s.Err()
}
