package together

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"trainer/internal/wire"
	"trainer/runner"
)

// createBody says everything that the service has a default for, since its documents do not agree on the defaults.
func createBody(spec runner.ResourceSpec) ([]byte, error) {
	body := wire.CreateResource{
		BaseModel:       spec.BaseModel,
		BaseWeightsRef:  spec.BaseWeightsRef,
		ComputeConfig:   &wire.ComputeConfig{GPUType: spec.GPUType, NumGeneratorReplicas: new(spec.Generators)},
		LoRAEnabled:     new(spec.LoRA),
		OptimizerConfig: &wire.OptimizerConfig{Adam: &struct{}{}},
		InactiveTimeout: new(int(spec.InactiveTimeout / time.Second)),
	}
	if spec.Muon != "" {
		strategy := wire.MuonScalingStrategy("MUON_SCALING_STRATEGY_" + strings.ToUpper(spec.Muon))
		body.OptimizerConfig = &wire.OptimizerConfig{Muon: &wire.MuonConfig{ScalingStrategy: strategy}}
	}
	b, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("encoding the model resource: %w", err)
	}
	return b, nil
}

// Price implements runner.Resources.
func (c *Client) Price(ctx context.Context, spec runner.ResourceSpec) (float64, error) {
	body, err := createBody(spec)
	if err != nil {
		return 0, err
	}
	var cost wire.CostEstimate
	k := &call{method: http.MethodPost, path: wire.PathResources + "/estimate-cost", body: body, read: into(&cost)}
	if err := c.do(ctx, k, reading); err != nil {
		return 0, err
	}
	if !strings.EqualFold(cost.Currency, "USD") {
		return 0, fmt.Errorf("%s: the price is in %q, not in US dollars", k.name(), cost.Currency)
	}
	return cost.PricePerHour, nil
}

// Create implements runner.Resources.
func (c *Client) Create(ctx context.Context, spec runner.ResourceSpec) (runner.Resource, error) {
	body, err := createBody(spec)
	if err != nil {
		return runner.Resource{}, err
	}
	return c.resource(ctx, &call{method: http.MethodPost, path: wire.PathResources, body: body, stall: thorough}, creating)
}

// Resource implements runner.Resources.
func (c *Client) Resource(ctx context.Context, id string) (runner.Resource, error) {
	return c.resource(ctx, &call{method: http.MethodGet, path: resourcePath(id)}, reading)
}

// Mine implements runner.Resources.
func (c *Client) Mine(ctx context.Context, finished bool) ([]runner.Resource, time.Time, error) {
	query := url.Values{"created_by": {"me"}}
	if !finished {
		live := []string{string(wire.ResourcePending), string(wire.ResourceCreating), string(wire.ResourceReady)}
		query.Set("status", strings.Join(live, ","))
	}
	list, at, err := all(ctx, c, wire.PathResources, query, func(r wire.Resource) string { return r.ID })
	if err != nil {
		return nil, at, err
	}
	out := make([]runner.Resource, len(list))
	for i := range list {
		out[i] = resource(&list[i], at)
	}
	return out, at, nil
}

// Extend implements runner.Resources. A fraction of a second is rounded up.
func (c *Client) Extend(ctx context.Context, id string, d time.Duration) error {
	body, err := json.Marshal(wire.ExtendExpiry{Seconds: int((d + time.Second - 1) / time.Second)})
	if err != nil {
		return fmt.Errorf("encoding the extension: %w", err)
	}
	_, err = c.resource(ctx, &call{method: http.MethodPost, path: resourcePath(id) + "/extend-expiry", body: body}, moved)
	return err
}

// Stop implements runner.Resources.
func (c *Client) Stop(ctx context.Context, id string, force bool) (runner.Resource, error) {
	path := resourcePath(id) + "/stop"
	if force {
		path += "?force=true"
	}
	r, err := c.resource(ctx, &call{method: http.MethodPost, path: path}, stopping)
	var no *runner.Refused
	if !errors.As(err, &no) || no.Status == http.StatusNotFound {
		return r, err
	}
	now, look := c.Resource(ctx, id)
	if look != nil || !wire.ResourceStatus("MODEL_RESOURCES_STATUS_"+now.Status).Final() {
		return r, err
	}
	return now, nil
}

func resourcePath(id string) string { return wire.PathResources + "/" + url.PathEscape(id) }

// resource sends k, which answers a resource.
func (c *Client) resource(ctx context.Context, k *call, p policy) (r runner.Resource, err error) {
	k.read = func(h http.Header, body io.Reader) error {
		var w wire.Resource
		if err := json.NewDecoder(body).Decode(&w); err != nil {
			return err
		}
		if w.ID == "" || w.Status == "" {
			return errors.New("a resource without an id or a status")
		}
		r = resource(&w, date(h))
		return nil
	}
	err = c.do(ctx, k, p)
	return r, err
}

func resource(w *wire.Resource, at time.Time) runner.Resource {
	r := runner.Resource{
		ID: w.ID, Status: w.Status.Name(), BaseModel: w.BaseModel, BaseWeightsRef: w.BaseWeightsRef,
		GPUType: w.ComputeConfig.GPUType, CreatedBy: w.CreatedBy, LoRA: w.LoRAEnabled,
		QueuePosition:   w.StatusDetails.QueuePosition,
		InactiveTimeout: time.Duration(w.InactiveTimeout) * time.Second,
		CreatedAt:       w.CreatedAt, UpdatedAt: w.UpdatedAt, ServerTime: at,
	}
	if n := w.ComputeConfig.NumGeneratorReplicas; n != nil {
		r.Generators = *n
	}
	if w.ExpiresAt != nil {
		r.ExpiresAt = *w.ExpiresAt
	}
	if w.Error != nil {
		r.ErrorCode, r.ErrorMessage = w.Error.Code.Name(), w.Error.Message
	}
	return r
}

// date is the service's clock at the answer; zero when it does not say.
func date(h http.Header) time.Time {
	at, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		return time.Time{}
	}
	return at
}
