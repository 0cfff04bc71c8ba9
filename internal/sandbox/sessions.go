package sandbox

import (
	"encoding/json"
	"net/http"
	"unicode/utf8"

	"github.com/google/uuid"

	"trainer/internal/sandbox/fault"
	"trainer/internal/wire"
)

// createSession is wire.CreateSession, but the seed stays text until it can be refused by its name.
type createSession struct {
	ModelResourcesID       string                `json:"model_resources_id"`
	DisplayName            string                `json:"display_name"`
	Metadata               *wire.SessionMetadata `json:"metadata"`
	LoRAConfig             *createLoRA           `json:"lora_config"`
	ResumeFromCheckpointID string                `json:"resume_from_checkpoint_id"`
	LoadOptimizer          *bool                 `json:"load_optimizer"`
}

type createLoRA struct {
	Rank         *int            `json:"rank"`
	Alpha        *int            `json:"alpha"`
	Dropout      *float64        `json:"dropout"`
	Seed         json.RawMessage `json:"seed"`
	TrainUnembed *bool           `json:"train_unembed"`
}

func (s *Server) createSession(r *request) (any, error) {
	var in createSession
	b, err := readBody(r.Request, smallBody)
	if err == nil {
		err = decode(b, &in)
	}
	if err != nil {
		return nil, err
	}
	if in.ModelResourcesID == "" {
		return nil, invalid("model_resources_id", "model_resources_id: is required")
	}
	names := sessionNames{DisplayName: in.DisplayName}
	if in.Metadata != nil {
		names.WandB = in.Metadata.WandB
	}
	if err := names.check(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	spec, err := s.sessionSpec(&in)
	if err != nil {
		return nil, err
	}
	spec.Names, spec.Provision = names, s.options.Provision/2
	s.afflictSession(r.event, spec)
	id := uuid.NewString()
	for _, id := range s.doubled(r.event, id) {
		if err := s.commit(&record{Kind: kindSession, ID: id, Session: spec}, nil); err != nil {
			return nil, err
		}
	}
	out := s.showSession(s.state.sessions.byID[id])
	out.Status = wire.SessionCreating // RUNNING at the next read at the earliest
	return out, nil
}

func (n sessionNames) check() error {
	if c := utf8.RuneCountInString(n.DisplayName); c > 128 {
		return invalid("display_name", "display_name: has %d characters, at most 128 are accepted", c)
	}
	if n.WandB == nil {
		return nil
	}
	for _, v := range []string{n.WandB.Entity, n.WandB.Project, n.WandB.Group, n.WandB.RunID, n.WandB.RunName, n.WandB.URL} {
		if len(v) > 1024 {
			return invalid("metadata.wandb", "metadata.wandb: a member has %d bytes, at most 1024 are accepted", len(v))
		}
	}
	return nil
}

// sessionSpec checks a create against the resource and the checkpoint, with the lock held.
func (s *Server) sessionSpec(in *createSession) (*sessionSpec, error) {
	now := s.clock.now()
	res, err := s.resource(in.ModelResourcesID)
	if err != nil {
		return nil, err
	}
	if st := res.status(now); st != wire.ResourceReady {
		return nil, wrongState("model_resources_not_ready", "model resource %s is %s, a session needs a READY one", res.id, st.Name())
	}
	spec := &sessionSpec{Resource: res.id, From: in.ResumeFromCheckpointID}
	if spec.LoRA, err = in.adapter(res.spec.LoRA); err != nil {
		return nil, err
	}
	if spec.From != "" {
		if err := s.resumes(spec, in, res); err != nil {
			return nil, err
		}
	}
	if n := res.holding(now); n >= res.slots() {
		return nil, &problem{http.StatusTooManyRequests, "rate_limit_error", "session_limit", "model_resources_id",
			"model resource " + res.id + " has " + count(n, "active session") + ", which is its limit"}
	}
	return spec, nil
}

// adapter is lora_config with its defaults; nil for full weights.
func (in *createSession) adapter(lora bool) (*loraSpec, error) {
	c := in.LoRAConfig
	if !lora {
		if c != nil {
			return nil, invalid("lora_config", "lora_config: the model resource trains full weights")
		}
		return nil, nil
	}
	spec := &loraSpec{Rank: 32, Alpha: 64, TrainUnembed: true}
	if c == nil {
		return spec, nil
	}
	if c.Rank != nil {
		spec.Rank = *c.Rank
	}
	if c.Alpha != nil {
		spec.Alpha = *c.Alpha
	}
	if c.TrainUnembed != nil {
		spec.TrainUnembed = *c.TrainUnembed
	}
	switch {
	case spec.Rank < 1 || spec.Rank > maxRank:
		return nil, invalid("lora_config.rank", "lora_config.rank: %d is not a rank from 1 to %d", spec.Rank, maxRank)
	case spec.Alpha < 1 || spec.Alpha > 1<<20:
		return nil, invalid("lora_config.alpha", "lora_config.alpha: %d is not a number from 1 to %d", spec.Alpha, 1<<20)
	case c.Dropout != nil && (*c.Dropout < 0 || *c.Dropout >= 1):
		return nil, invalid("lora_config.dropout", "lora_config.dropout: %v is not in [0, 1)", *c.Dropout)
	}
	if c.Dropout != nil {
		spec.Dropout = *c.Dropout
	}
	if len(c.Seed) > 0 {
		var seed wire.Integer
		if err := seed.UnmarshalJSON(c.Seed); err != nil {
			return nil, invalid("lora_config.seed", "lora_config.seed: %v", err)
		}
		if string(c.Seed) != "null" {
			spec.Seed = new(int64(seed))
		}
	}
	return spec, nil
}

// resumes fits spec to the checkpoint that it starts from: what the request leaves out is taken from there, what differs is
// refused.
func (s *Server) resumes(spec *sessionSpec, in *createSession, res *resource) error {
	const param = "resume_from_checkpoint_id"
	c, ok := s.state.checkpoints.byID[spec.From]
	if !ok {
		return notFound(param, "checkpoint", spec.From)
	}
	from := c.session.resource.spec
	switch {
	case from.BaseModel != res.spec.BaseModel:
		return invalid(param, "%s: checkpoint %s is of %s, the model resource trains %s", param, c.id, from.BaseModel, res.spec.BaseModel)
	case from.BaseWeightsRef != res.spec.BaseWeightsRef:
		return invalid(param, "%s: checkpoint %s is over base weights %q, the model resource has %q", param, c.id, from.BaseWeightsRef, res.spec.BaseWeightsRef)
	case from.LoRA != res.spec.LoRA:
		return invalid(param, "%s: checkpoint %s has %s, the model resource trains %s", param, c.id, what(from.LoRA), what(res.spec.LoRA))
	case c.inference && in.LoadOptimizer != nil && *in.LoadOptimizer:
		return invalid("load_optimizer", "load_optimizer: inference checkpoint %s has no optimizer state", c.id)
	case !c.inference && (in.LoadOptimizer == nil || *in.LoadOptimizer) && (from.Muon == "") != (res.spec.Muon == ""):
		return invalid("load_optimizer", "load_optimizer: checkpoint %s has the state of another optimizer than the model resource's; use false", c.id)
	}
	spec.LoadOptimizer = !c.inference && (in.LoadOptimizer == nil || *in.LoadOptimizer)
	if c.session.spec.LoRA == nil {
		return nil
	}
	own := *c.session.spec.LoRA
	if asked := in.LoRAConfig; asked != nil && asked.Dropout != nil {
		own.Dropout = *asked.Dropout // no part of the weights
	}
	if asked := in.LoRAConfig; asked != nil {
		switch {
		case asked.Rank != nil && *asked.Rank != own.Rank:
			return invalid("lora_config.rank", "lora_config.rank: %d, but checkpoint %s has rank %d", *asked.Rank, c.id, own.Rank)
		case asked.Alpha != nil && *asked.Alpha != own.Alpha:
			return invalid("lora_config.alpha", "lora_config.alpha: %d, but checkpoint %s has alpha %d", *asked.Alpha, c.id, own.Alpha)
		case asked.TrainUnembed != nil && *asked.TrainUnembed != own.TrainUnembed:
			return invalid("lora_config.train_unembed", "lora_config.train_unembed: %v, but checkpoint %s has %v", *asked.TrainUnembed, c.id, own.TrainUnembed)
		}
	}
	own.Seed = spec.LoRA.Seed // ignored, and given back
	spec.LoRA = &own
	return nil
}

func what(lora bool) string {
	if lora {
		return "a LoRA adapter"
	}
	return "full weights"
}

// session finds one, with the lock held.
func (s *Server) session(id string) (*session, error) {
	if sess, ok := s.state.sessions.byID[id]; ok {
		return sess, nil
	}
	return nil, notFound("session_id", "training session", id)
}

// running refuses a session that takes no work, with the lock held.
func (s *Server) running(sess *session) error {
	if st := sess.status(s.clock.now()); st != wire.SessionRunning {
		return wrongState("session_not_active", "training session %s is %s; it takes no work", sess.id, st.Name())
	}
	return nil
}

// sessionAnswer is a session with the member that is the sandbox's own.
type sessionAnswer struct {
	wire.Session
	StandIn bool `json:"stand_in,omitempty"`
}

// showSession is the session as it is now, with the lock held.
func (s *Server) showSession(sess *session) sessionAnswer {
	now := s.clock.now()
	applied, pending := sess.serving(now)
	base := sess.resource.spec.BaseModel
	out := sessionAnswer{Session: wire.Session{
		ID: sess.id, Status: sess.status(now), BaseModel: base, ModelResourcesID: sess.resource.id,
		DisplayName: sess.spec.Names.DisplayName, Step: wire.Int64(sess.step),
		PolicyState: wire.PolicyState{
			AppliedWeightsVersion: wire.Int64(applied), TargetWeightsVersion: wire.Int64(sess.target),
			TrainerStep: wire.Int64(sess.trainerStep), PendingPublish: pending,
		},
		Metadata: wire.SessionMetadata{WandB: sess.spec.Names.WandB}, ResumeFromCheckpointID: sess.spec.From,
		InferenceCheckpoints: []wire.InferenceCheckpoint{}, TrainingCheckpoints: []wire.TrainingCheckpoint{},
		CreatedAt: sess.created, UpdatedAt: sess.updated, CreatedBy: user,
	}, StandIn: standsIn(base)}
	if l := sess.spec.LoRA; l != nil {
		out.LoRAConfig = &wire.LoRAConfig{Rank: l.Rank, Alpha: l.Alpha, TrainUnembed: l.TrainUnembed, Dropout: l.Dropout}
		if l.Seed != nil {
			out.LoRAConfig.Seed = new(wire.Int64(*l.Seed))
		}
	}
	for i := len(sess.checkpoints) - 1; i >= 0; i-- {
		if c := sess.checkpoints[i]; c.inference {
			out.InferenceCheckpoints = append(out.InferenceCheckpoints, c.inferring())
		} else {
			out.TrainingCheckpoints = append(out.TrainingCheckpoints, c.training())
		}
	}
	if sess.failure != "" {
		out.Error = &wire.Fault{Code: sess.code, Message: sess.failure, OccurredAt: sess.failed}
	}
	return out
}

func (s *Server) getSession(r *request) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sess, err := s.session(r.ids[0])
	if err != nil {
		return nil, err
	}
	out := s.showSession(sess)
	if hit, ok := s.dice.Roll(fault.LaggingStep, "", r.event); ok {
		out.Step = max(out.Step-wire.Int64(hit.By), 0)
	}
	return out, nil
}

func (s *Server) listSessions(r *request) (any, error) {
	q := r.URL.Query()
	status, err := wanted(q, "status", "TRAINING_SESSION_STATUS_UNSPECIFIED", string(wire.SessionCreating), string(wire.SessionRunning),
		string(wire.SessionStopped), string(wire.SessionStopping), string(wire.SessionError), string(wire.SessionExpired))
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now, on := s.clock.now(), q.Get("model_resources_id")
	return page(q, &s.state.sessions, func(sess *session) string { return sess.id }, func(sess *session) bool {
		return byCaller(q) && (len(status) == 0 || status[string(sess.status(now))]) && (on == "" || on == sess.resource.id) &&
			!now.Before(sess.created.Add(sess.spec.Hidden))
	}, s.showSession)
}

// wandbChange tells an absent member, which stays, from an empty one, which clears.
type wandbChange struct {
	Entity  *string `json:"entity"`
	Project *string `json:"project"`
	Group   *string `json:"group"`
	RunID   *string `json:"run_id"`
	RunName *string `json:"run_name"`
	URL     *string `json:"url"`
}

func (c *wandbChange) over(old *wire.WandB) *wire.WandB {
	next := wire.WandB{}
	if old != nil {
		next = *old
	}
	for _, m := range []struct{ from, to *string }{
		{c.Entity, &next.Entity}, {c.Project, &next.Project}, {c.Group, &next.Group},
		{c.RunID, &next.RunID}, {c.RunName, &next.RunName}, {c.URL, &next.URL},
	} {
		if m.from != nil {
			*m.to = *m.from
		}
	}
	return &next
}

func (s *Server) updateSession(r *request) (any, error) {
	var in struct {
		DisplayName *string `json:"display_name"`
		Metadata    *struct {
			WandB *wandbChange `json:"wandb"`
		} `json:"metadata"`
	}
	b, err := readBody(r.Request, smallBody)
	if err == nil {
		err = decode(b, &in)
	}
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	sess, err := s.session(r.ids[0])
	if err != nil {
		return nil, err
	}
	names := sess.spec.Names
	if in.DisplayName != nil {
		names.DisplayName = *in.DisplayName
	}
	if in.Metadata != nil && in.Metadata.WandB != nil {
		names.WandB = in.Metadata.WandB.over(names.WandB)
	}
	if err := names.check(); err != nil {
		return nil, err
	}
	if err := s.commit(&record{Kind: kindChange, ID: sess.id, Change: &names}, nil); err != nil {
		return nil, err
	}
	return s.showSession(sess), nil
}

func (s *Server) stopSession(r *request) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sess, err := s.session(r.ids[0])
	if err != nil {
		return nil, err
	}
	// Stopping what has stopped changes nothing, so that a stop whose answer was lost can be sent again.
	if !sess.ended.IsZero() || sess.failure != "" {
		return s.showSession(sess), nil
	}
	if err := s.commit(&record{Kind: kindStop, ID: sess.id, Cancelled: sess.waiting()}, nil); err != nil {
		return nil, err
	}
	s.forget(sess)
	out := s.showSession(sess)
	out.Status = wire.SessionStopping // STOPPED at the next read at the earliest
	return out, nil
}
