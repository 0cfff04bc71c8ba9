package probe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"trainer/internal/wire"
	"trainer/runner"
)

// Service is what a probe asks; together.Client is one.
type Service interface {
	// Describe reads the resource.
	Describe(ctx context.Context, id string) (wire.Resource, error)
	// Post and Settled send an operation, and wait for its end. Errors: *runner.Refused for a clear 4xx.
	Post(ctx context.Context, session string, kind wire.Kind, key string, body []byte) (wire.Operation[json.RawMessage], error)
	Settled(ctx context.Context, session string, kind wire.Kind, id string, most time.Duration) (wire.Operation[json.RawMessage], error)
	Sessions
}

// Operations and Tokens are about the most that a probe sends, for telling it beforehand.
const (
	Operations = 110
	Tokens     = 6000
)

// Target is a resource that can be probed.
type Target struct {
	res wire.Resource
}

// Find reads the resource, and refuses one that cannot be probed.
func Find(ctx context.Context, s Service, id string) (*Target, error) {
	res, err := s.Describe(ctx, id)
	var no *runner.Refused
	switch {
	case errors.As(err, &no) && no.Status == 404:
		return nil, fmt.Errorf("model resource %q: there is none; `trainer resources list` has yours: %w", id, err)
	case err != nil:
		return nil, fmt.Errorf("read the model resource: %w", err)
	case res.Status.Final():
		return nil, fmt.Errorf("model resource %s is %s: a probe needs one that is READY, and makes none itself; `trainer resources list` has yours", id, res.Status.Name())
	case res.Status != wire.ResourceReady:
		return nil, fmt.Errorf("model resource %s is %s: probe it once `trainer resources list` says that it is READY", id, res.Status.Name())
	}
	return &Target{res}, nil
}

// String says what is probed: Qwen/Qwen3-8B, LoRA, Adam, 1 generator replica.
func (t *Target) String() string {
	weights, optimizer, generators := "full weights", "Adam", fmt.Sprintf("%d generator replicas", t.generators())
	if t.res.LoRAEnabled {
		weights = "LoRA"
	}
	if t.muon() {
		optimizer = "Muon"
	}
	if t.generators() == 1 {
		generators = "1 generator replica"
	}
	return fmt.Sprintf("%s, %s, %s, %s", t.res.BaseModel, weights, optimizer, generators)
}

func (t *Target) muon() bool { return t.res.OptimizerConfig.Muon != nil }

func (t *Target) generators() int {
	if n := t.res.ComputeConfig.NumGeneratorReplicas; n != nil {
		return *n
	}
	return 0
}

func (t *Target) report() *Report {
	r := &Report{
		Resource: t.res.ID, BaseModel: t.res.BaseModel, LoRA: t.res.LoRAEnabled, Optimizer: "adam", Generators: t.generators(),
		Choices: []Finding{}, Facts: []Finding{},
	}
	if t.muon() {
		r.Optimizer = "muon"
	}
	return r
}

// probe is one probe on its way.
type probe struct {
	*Target
	service Service
	session string
	report  *Report
	known   keyed
	rig     rig
}

// experiment answers one question. An error that has a reason leaves it open, any other ends the probe.
type experiment struct {
	name   string
	choice bool
	run    func(*probe, context.Context) (Finding, error)
}

// experiments are in the order in which they are made: what may spoil the weights comes last, and what needs the first
// weights comes before training.
func experiments() []experiment {
	return []experiment{
		{"same_key", false, (*probe).sameKey},
		{ReusedKey, true, (*probe).reusedKey},
		{"repeated_forward", false, (*probe).repeatedForward},
		{SampledLogprobs, true, (*probe).sampledLogprobs},
		{"first_step", false, (*probe).firstStep},
		{GradNormalization, true, (*probe).gradNormalization},
		{"trainer_order", false, (*probe).trainerOrder},
		{"pipeline_sync", false, (*probe).pipelineSync},
		{"metrics", false, (*probe).metricNames},
		{StopToken, true, (*probe).stopToken},
		{FailedLeaves, true, (*probe).failedLeaves},
	}
}

// Run makes every experiment in a session of its own, which is stopped on every way out, also when ctx ends. say is told
// what is being asked, and may be nil. Errors: *runner.Refused where no session could be had, the cause of ctx, or that the
// service does not answer. The report is nil with them, but for a session that could not be stopped when all was asked.
func Run(ctx context.Context, s Service, t *Target, say func(string)) (r *Report, err error) {
	room := &room{service: s, res: t.res}
	defer func() { err = errors.Join(err, room.close(ctx)) }() // on a panic too
	id, err := room.open(ctx)
	if err != nil {
		return nil, err
	}
	p := &probe{Target: t, service: s, session: id, report: t.report()}
	p.report.Session = id
	for _, e := range experiments() {
		if say != nil {
			say(e.name)
		}
		if err := p.ask(ctx, e); err != nil {
			return nil, fmt.Errorf("%s: %w", e.name, err)
		}
	}
	return p.report, nil
}

// ask makes one experiment, and writes down what it found.
func (p *probe) ask(ctx context.Context, e experiment) error {
	f, err := e.run(p, ctx)
	f.Name = e.name
	if err != nil {
		why := reason(err)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case why == "":
			return err
		}
		f.Value, f.How = Unknown, why
	}
	if e.choice {
		p.report.Choices = append(p.report.Choices, f)
	} else {
		p.report.Facts = append(p.report.Facts, f)
	}
	return nil
}
