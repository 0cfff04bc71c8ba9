package sandbox

import (
	"net/http"
	"time"

	"github.com/google/uuid"

	"trainer/internal/sandbox/fault"
	"trainer/internal/wire"
)

// Preparing is the pace of an FP4 job, beside the kinds of operations. One that has none runs as long as a resource takes to
// be READY.
const Preparing wire.Kind = "prepare-for-fp4-inference"

const (
	jobPrefix = "shp-quant-"
	// creditLimit is far above every price here.
	creditLimit = 10_000
	// maxFileID bounds what a job repeats of its request.
	maxFileID = 256
)

// readJob reads and checks the body that a job and its estimate share. The lock is not held.
func (s *Server) readJob(r *request) (*jobSpec, model, error) {
	var in wire.PrepareFP4
	b, err := readBody(r.Request, smallBody)
	if err == nil {
		err = decode(b, &in)
	}
	if err != nil {
		return nil, model{}, err
	}
	if in.Inputs == nil {
		return nil, model{}, invalid("inputs", "inputs: is required")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.state.prepares(*in.Inputs)
	if err != nil {
		return nil, model{}, err
	}
	m, err := findModel(c.session.resource.spec.BaseModel)
	spec := &jobSpec{Inputs: *in.Inputs, Checkpoint: c.id, Queue: s.options.Provision / 2, Run: s.options.Provision}
	if pace, ok := s.options.OpTime[Preparing]; ok {
		spec.Run = pace.Base
	}
	return spec, m, err
}

// prepares finds the checkpoint whose model a job's inputs name.
func (s *state) prepares(in wire.QuantizationInputs) (*checkpoint, error) {
	const object, adapter = "inputs.model_object_id", "inputs.adapter_object_id"
	id, param := in.ModelObjectID, object
	switch {
	case id != "" && in.AdapterObjectID != "":
		return nil, invalid(adapter, "%s: stands beside model_object_id, whose older name it is; give one", adapter)
	case id == "" && in.ModelRevisionID != "":
		return nil, invalid("inputs.model_revision_id", "inputs.model_revision_id: goes only with model_object_id")
	case len(in.CalibrationFileID) > maxFileID:
		return nil, invalid("inputs.calibration_file_id", "inputs.calibration_file_id: has %d bytes, at most %d are accepted", len(in.CalibrationFileID), maxFileID)
	case id == "" && in.AdapterObjectID == "":
		return nil, invalid(object, "%s: is required", object)
	case id == "":
		id, param = in.AdapterObjectID, adapter
	}
	for _, j := range s.jobs.order {
		if j.spec.Artifact == id {
			return nil, invalid(param, "%s: %q is what job %s made; only what training has registered is prepared", param, id, j.id)
		}
	}
	switch c := s.registered(id); {
	case c == nil:
		return nil, invalid(param, "%s: %.100q is no model that training has registered here", param, id)
	case !c.inference:
		return nil, invalid(param, "%s: %q is of training checkpoint %s; only models of inference checkpoints are prepared", param, id, c.id)
	case in.ModelRevisionID != "" && in.ModelRevisionID != c.revision:
		return nil, invalid("inputs.model_revision_id", "inputs.model_revision_id: %.100q is no revision of %s, which has %s", in.ModelRevisionID, id, c.revision)
	default:
		return c, nil
	}
}

// price of a job is an hour of the GPUs that the model is trained on, in US dollars.
func (m model) jobPrice() float64 { return usdPerGPUHour * float64(m.gpus) }

// broke is the refusal of what the project can't pay.
func broke(what string) error {
	return &problem{http.StatusPaymentRequired, invalidRequest, "insufficient_credits", "", "the project's credit does not cover " + what}
}

func (s *Server) estimateJob(r *request) (any, error) {
	spec, m, err := s.readJob(r)
	if err != nil {
		return nil, err
	}
	out := wire.QuantizationEstimate{
		PriceUSD: m.jobPrice(), TimeHours: spec.Run.Hours(), CreditLimit: creditLimit, AllowedToProceed: true,
	}
	if _, poor := s.dice.Roll(fault.NoCredit, "", r.event); poor {
		out.CreditLimit, out.AllowedToProceed = 0, false
	}
	return out, nil
}

func (s *Server) createJob(r *request) (any, error) {
	spec, _, err := s.readJob(r)
	if err != nil {
		return nil, err
	}
	if _, poor := s.dice.Roll(fault.NoCredit, "", r.event); poor {
		return nil, broke("the job")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.afflictJob(r.event, spec)
	id := uuid.NewString()
	for _, id := range s.doubled(r.event, id) {
		one := *spec
		one.Artifact, one.Revision = registryID("ml_"), registryID("rv_")
		if err := s.commit(&record{Kind: kindJob, ID: jobPrefix + id, Job: &one}, nil); err != nil {
			return nil, err
		}
	}
	j := s.state.jobs.byID[jobPrefix+id]
	return j.first(), nil
}

// first is the job as its create answers: it runs at the next read at the earliest.
func (j *job) first() wire.QuantizationJob {
	out := j.show(j.created)
	out.Status, out.Events, out.Results, out.UpdatedAt = wire.JobQueued, []wire.JobEvent{}, nil, j.created
	return out
}

// job finds one, with the lock held.
func (s *Server) job(id string) (*job, error) {
	if j, ok := s.state.jobs.byID[id]; ok {
		return j, nil
	}
	return nil, notFound("id", "job", id)
}

func (s *Server) getJob(r *request) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j, err := s.job(r.ids[0])
	if err != nil {
		return nil, err
	}
	return j.show(s.clock.now()), nil
}

func (s *Server) listEvents(r *request) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j, err := s.job(r.ids[0])
	if err != nil {
		return nil, err
	}
	return wire.List[wire.JobEvent]{Object: "list", Data: j.course(s.clock.now()).events}, nil
}

// listJobs lists every job, newest first.
func (s *Server) listJobs(*request) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out, now := wire.List[wire.QuantizationJob]{Object: "list", Data: []wire.QuantizationJob{}}, s.clock.now()
	for i := len(s.state.jobs.order) - 1; i >= 0; i-- {
		if j := s.state.jobs.order[i]; !now.Before(j.created.Add(j.spec.Hidden)) {
			out.Data = append(out.Data, j.show(now))
		}
	}
	return out, nil
}

// cancelJob asks a job to end. Asking again changes nothing, so that a request whose answer was lost can be sent again.
func (s *Server) cancelJob(r *request) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j, err := s.job(r.ids[0])
	if err != nil {
		return nil, err
	}
	now := s.clock.now()
	switch st := j.course(now).status; st {
	case wire.JobCancelRequested, wire.JobCancelled:
		return j.show(now), nil
	case wire.JobQueued, wire.JobRunning:
	default:
		return nil, wrongState("job_finished", "job %s is %s already", j.id, st)
	}
	if err := s.commit(&record{Kind: kindCancel, ID: j.id}, nil); err != nil {
		return nil, err
	}
	out := j.show(j.cancelled)
	out.Status = wire.JobCancelRequested // cancelled at the next read at the earliest
	return out, nil
}

// jobSpec is a job as created, with everything that its course depends on.
type jobSpec struct {
	Inputs     wire.QuantizationInputs `json:"inputs"`
	Checkpoint string                  `json:"checkpoint"` // whose model is prepared
	Queue      time.Duration           `json:"queue"`      // from created until it runs
	Run        time.Duration           `json:"run"`        // from then to its end
	Artifact   string                  `json:"artifact"`   // what it registers
	Revision   string                  `json:"revision"`
	Error      *jobError               `json:"error,omitempty"`
	Hidden     time.Duration           `json:"hidden,omitempty"` // from created until lists show it
}

// jobError is a failure that was asked for.
type jobError struct {
	Code  wire.JobEventType `json:"code"`
	After time.Duration     `json:"after"` // from created
}

func (e *jobError) status() wire.JobStatus {
	if e.Code == wire.EventUserError {
		return wire.JobUserError
	}
	return wire.JobError
}
