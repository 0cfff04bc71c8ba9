package runner

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"trainer/internal/diag"
	"trainer/recipe"
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
	if err := in.askAttached(ctx, res); err != nil {
		return err
	}
	if err := in.askStart(ctx, b); err != nil {
		return err
	}
	usd, err := res.Price(ctx, SpecOf(in.Recipe, c.GPUType))
	if err != nil {
		return fmt.Errorf("ask for the price: %w", err)
	}
	of, err := in.decideTeacher(ctx, models, res)
	if err != nil {
		return err
	}
	teacher := 0.0
	if of != nil {
		teacher = of.PriceUSD
		usd += teacher
	}
	dead := in.Recipe.InactiveTimeout + time.Minute
	p.Cost = &Cost{USDPerHour: usd, TeacherUSD: teacher, DeadMan: dead, DeadManUSD: usd * dead.Hours()}
	const key = "limits.max_cost_usd"
	least := usd / 30 // the minute that bills at once, and the one that overrun keeps for the end
	if most := in.Recipe.Limits.MaxCostUSD; most != nil && *most < least {
		return diag.List{{Pos: in.Recipe.At(key), Key: key, Msg: fmt.Sprintf("%g is less than two minutes cost, $%.2f: nothing would train", *most, least)}}
	}
	return nil
}

// askAttached looks at the resources that the recipe attaches to: whether they are there and fit.
func (in *Inputs) askAttached(ctx context.Context, res Resources) error {
	r := in.Recipe
	if err := askResource(ctx, res, r, "model_resources_id", r.ModelResourcesID, SpecOf(r, "")); err != nil {
		return err
	}
	if r.Teacher == nil {
		return nil
	}
	return askResource(ctx, res, r, "teacher.model_resources_id", r.Teacher.ModelResourcesID, teacherResource(r, ""))
}

func askResource(ctx context.Context, res Resources, r *recipe.Recipe, key string, id *string, spec ResourceSpec) error {
	if id == nil {
		return nil
	}
	got, err := res.Resource(ctx, *id)
	var refused *Refused
	msg := ""
	switch {
	case errors.As(err, &refused) && refused.Status == http.StatusNotFound:
		msg = "there is no such resource; see `trainer resources list`"
	case err != nil:
		return fmt.Errorf("ask for resource %s: %w", *id, err)
	default:
		msg = unfit(spec, got)
	}
	if msg == "" {
		return nil
	}
	return diag.List{{Pos: r.At(key), Key: key, Msg: fmt.Sprintf("%s: %s", *id, msg)}}
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
