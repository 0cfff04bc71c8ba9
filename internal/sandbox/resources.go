package sandbox

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/google/uuid"

	"trainer/internal/sandbox/fault"
	"trainer/internal/wire"
)

const smallBody = 1 << 20

// maxGenerators is far above what one resource can have, and keeps prices finite.
const maxGenerators = 1024

var weightsRef = regexp.MustCompile(`^together://ml_[A-Za-z0-9]+(@rv_[A-Za-z0-9]+)?$`)

func (s *Server) listModels(*request) (any, error) {
	list := wire.SupportedModels{}
	for _, m := range ownModels() {
		list.Data = append(list.Data, m.supported())
	}
	for _, name := range wellKnown() {
		m, err := findModel(name)
		if err != nil {
			return nil, err
		}
		list.Data = append(list.Data, m.supported())
	}
	return list, nil
}

// readResource reads and checks the body that create and estimate-cost share.
func (s *Server) readResource(r *request) (model, *resourceSpec, error) {
	var in wire.CreateResource
	b, err := readBody(r.Request, smallBody)
	if err == nil {
		err = decode(b, &in)
	}
	if err == nil {
		err = noEmptyWords(b)
	}
	if err != nil {
		return model{}, nil, err
	}
	if in.BaseModel == "" {
		return model{}, nil, invalid("base_model", "base_model: is required")
	}
	m, err := findModel(in.BaseModel)
	if err != nil {
		return model{}, nil, err
	}
	spec, err := resourceDefaults(in)
	if err != nil {
		return model{}, nil, err
	}
	spec.Provision = s.options.Provision
	return m, spec, s.pin(spec)
}

// noEmptyWords tells words that are empty, which are no values, from those that were left out.
func noEmptyWords(b []byte) error {
	var in struct {
		Ref     *string `json:"base_weights_ref"`
		Compute struct {
			GPUType *string `json:"gpu_type"`
		} `json:"compute_config"`
		Optimizer struct {
			Muon struct {
				Scaling *string `json:"scaling_strategy"`
			} `json:"muon"`
		} `json:"optimizer_config"`
	}
	if err := decode(b, &in); err != nil {
		return err
	}
	for name, word := range map[string]*string{
		"base_weights_ref": in.Ref, "compute_config.gpu_type": in.Compute.GPUType,
		"optimizer_config.muon.scaling_strategy": in.Optimizer.Muon.Scaling,
	} {
		if word != nil && *word == "" {
			return invalid(name, "%s: is empty; leave it out for the default", name)
		}
	}
	return nil
}

func resourceDefaults(in wire.CreateResource) (*resourceSpec, error) {
	spec := &resourceSpec{
		BaseModel: in.BaseModel, BaseWeightsRef: in.BaseWeightsRef, GPUType: gpuType, Generators: 1, LoRA: true,
		InactiveTimeout: time.Hour,
	}
	if ref := in.BaseWeightsRef; ref != "" && (len(ref) > 256 || !weightsRef.MatchString(ref)) {
		return nil, invalid("base_weights_ref", "base_weights_ref: %.300q is not together://ml_… or together://ml_…@rv_…", ref)
	}
	if c := in.ComputeConfig; c != nil {
		if c.GPUType != "" && c.GPUType != gpuType {
			return nil, invalid("compute_config.gpu_type", "compute_config.gpu_type: %q is not offered; use %s", c.GPUType, gpuType)
		}
		if n := c.NumGeneratorReplicas; n != nil {
			if *n < 0 || *n > maxGenerators {
				return nil, invalid("compute_config.num_generator_replicas",
					"compute_config.num_generator_replicas: %d is not a number from 0 to %d", *n, maxGenerators)
			}
			spec.Generators = *n
		}
	}
	if in.LoRAEnabled != nil {
		spec.LoRA = *in.LoRAEnabled
	}
	if o := in.OptimizerConfig; o != nil && o.Muon != nil {
		const place = "optimizer_config.muon"
		if o.Adam != nil {
			return nil, invalid(place, "%s: stands beside adam; a resource has one optimizer", place)
		}
		switch o.Muon.ScalingStrategy {
		case "", unspecifiedScaling, wire.MuonMatchAdam:
			spec.Muon = wire.MuonMatchAdam
		case wire.MuonOriginal:
			spec.Muon = wire.MuonOriginal
		default:
			return nil, invalid(place+".scaling_strategy", "%s.scaling_strategy: %q is not one of %s, %s", place,
				o.Muon.ScalingStrategy, wire.MuonMatchAdam, wire.MuonOriginal)
		}
	}
	if t := in.InactiveTimeout; t != nil {
		if *t < 300 || *t > 86400 {
			return nil, invalid("inactive_timeout", "inactive_timeout: %d is not a number of seconds from 300 to 86400", *t)
		}
		spec.InactiveTimeout = time.Duration(*t) * time.Second
	}
	return spec, nil
}

// unspecifiedScaling asks for the default.
const unspecifiedScaling wire.MuonScalingStrategy = "MUON_SCALING_STRATEGY_UNSPECIFIED"

// optimizer is as the API tells it.
func (s *resourceSpec) optimizer() wire.OptimizerConfig {
	if s.Muon != "" {
		return wire.OptimizerConfig{Muon: &wire.MuonConfig{ScalingStrategy: s.Muon}}
	}
	return wire.OptimizerConfig{Adam: &struct{}{}}
}

func (s *Server) estimateCost(r *request) (any, error) {
	m, spec, err := s.readResource(r)
	if err != nil {
		return nil, err
	}
	return wire.CostEstimate{Currency: "USD", PricePerHour: m.price(spec.Generators)}, nil
}

func (s *Server) createResource(r *request) (any, error) {
	_, spec, err := s.readResource(r)
	if err != nil {
		return nil, err
	}
	if _, poor := s.dice.Roll(fault.NoCredit, "", r.event); poor {
		return nil, broke("a model resource")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.afflictResource(r.event, spec)
	id := uuid.NewString()
	for _, id := range s.doubled(r.event, id) {
		if err := s.commit(&record{Kind: kindResource, ID: id, Resource: spec}, nil); err != nil {
			return nil, err
		}
	}
	out := s.showResource(s.state.resources.byID[id])
	out.Status, out.ExpiresAt = wire.ResourcePending, nil // READY at the next read at the earliest
	return out, nil
}

// resourceAnswer is a resource with the member that is the sandbox's own.
type resourceAnswer struct {
	wire.Resource
	StandIn bool `json:"stand_in,omitempty"`
}

// showResource is the resource as it is now, with the lock held.
func (s *Server) showResource(r *resource) resourceAnswer {
	now := s.clock.now()
	generators := r.spec.Generators
	out := resourceAnswer{Resource: wire.Resource{
		ID: r.id, Status: r.status(now), BaseModel: r.spec.BaseModel, BaseWeightsRef: r.spec.BaseWeightsRef,
		ComputeConfig: wire.ComputeConfig{GPUType: r.spec.GPUType, NumGeneratorReplicas: &generators},
		LoRAEnabled:   r.spec.LoRA, OptimizerConfig: r.spec.optimizer(),
		InactiveTimeout: int(r.spec.InactiveTimeout / time.Second),
		CreatedAt:       r.created, UpdatedAt: later(r.updated, r.reached(now)), CreatedBy: user,
	}, StandIn: standsIn(r.spec.BaseModel)}
	switch out.Status {
	case wire.ResourceError:
		out.Error = &wire.Fault{Code: r.spec.Error.Code, Message: askedFault, OccurredAt: r.ended}
	case wire.ResourceReady:
		expires := r.expires()
		out.ExpiresAt = &expires
	case wire.ResourcePending:
		out.StatusDetails.QueuePosition = 1 + r.ahead(now)
		for _, other := range s.state.resources.order {
			if other == r {
				break
			}
			if other.status(now) == wire.ResourcePending {
				out.StatusDetails.QueuePosition++
			}
		}
	}
	return out
}

// standsIn tells a real model's name, behind which is another body.
func standsIn(name string) bool { return !strings.HasPrefix(name, ownPrefix) }

// resource finds one, with the lock held.
func (s *Server) resource(id string) (*resource, error) {
	if r, ok := s.state.resources.byID[id]; ok {
		return r, nil
	}
	return nil, notFound("model_resources_id", "model resource", id)
}

func (s *Server) getResource(r *request) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	res, err := s.resource(r.ids[0])
	if err != nil {
		return nil, err
	}
	return s.showResource(res), nil
}

func (s *Server) listResources(r *request) (any, error) {
	q := r.URL.Query()
	status, err := wanted(q, "status", string(wire.ResourcePending), string(wire.ResourceCreating), string(wire.ResourceReady),
		string(wire.ResourceError), string(wire.ResourceStopped), string(wire.ResourceStopping))
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.now()
	return page(q, &s.state.resources, func(r *resource) string { return r.id }, func(r *resource) bool {
		return byCaller(q) && (len(status) == 0 || status[string(r.status(now))]) && !now.Before(r.created.Add(r.spec.Hidden))
	}, s.showResource)
}

func (s *Server) extendExpiry(r *request) (any, error) {
	var in struct {
		Seconds *int `json:"seconds"`
	}
	b, err := readBody(r.Request, smallBody)
	if err == nil {
		err = decode(b, &in)
	}
	if err != nil {
		return nil, err
	}
	if in.Seconds == nil {
		return nil, invalid("seconds", "seconds: is required")
	}
	if *in.Seconds < 60 || *in.Seconds > 86400 {
		return nil, invalid("seconds", "seconds: %d is not a number from 60 to 86400", *in.Seconds)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	res, err := s.resource(r.ids[0])
	if err != nil {
		return nil, err
	}
	now := s.clock.now()
	if st := res.status(now); st != wire.ResourceReady {
		return nil, wrongState("model_resources_not_ready", "model resource %s is %s; only a READY one can be extended", res.id, st.Name())
	}
	until := now.Add(time.Duration(*in.Seconds) * time.Second)
	if err := s.commit(&record{Kind: kindExtend, ID: res.id, Until: until}, nil); err != nil {
		return nil, err
	}
	return s.showResource(res), nil
}

func (s *Server) stopResource(r *request) (any, error) {
	force := false
	switch v := r.URL.Query().Get("force"); v {
	case "", "false":
	case "true":
		force = true
	default:
		return nil, invalid("force", "force: %q is neither true nor false", v)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	res, err := s.resource(r.ids[0])
	if err != nil {
		return nil, err
	}
	now := s.clock.now()
	switch st := res.status(now); {
	case st == wire.ResourceStopping:
		return s.showResource(res), nil
	case st.Final():
		return nil, wrongState("invalid_argument", "model resource %s is %s already", res.id, st.Name())
	}
	if n := res.holding(now); n > 0 && !force {
		return nil, wrongState("active_sessions", "model resource %s has %s; stop them, or stop it with force=true", res.id, count(n, "active session"))
	}
	stop := &record{Kind: kindStop, ID: res.id}
	for _, sess := range res.sessions {
		stop.Cancelled = append(stop.Cancelled, sess.waiting()...)
	}
	if err := s.commit(stop, nil); err != nil {
		return nil, err
	}
	for _, sess := range res.sessions {
		s.forget(sess)
	}
	out := s.showResource(res)
	out.Status = wire.ResourceStopping // STOPPED at the next read at the earliest
	return out, nil
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

var _ http.Handler = (*Server)(nil)
var _ http.RoundTripper = (*Server)(nil)
