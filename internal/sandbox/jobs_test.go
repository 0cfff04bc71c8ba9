package sandbox

import (
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"trainer/internal/wire"
)

func (c *client) job(model string) (j wire.QuantizationJob) {
	c.t.Helper()
	c.ok("POST", wire.PathPrepareFP4, `{"inputs":{"model_object_id":"`+model+`"}}`, &j)
	return j
}

func (c *client) getJob(id string) (j wire.QuantizationJob) {
	c.t.Helper()
	c.ok("GET", wire.PathShaping+"/"+id, "", &j)
	return j
}

func (c *client) jobs() []string {
	c.t.Helper()
	var list wire.List[wire.QuantizationJob]
	c.ok("GET", wire.PathShaping, "", &list)
	ids := []string{}
	for _, j := range list.Data {
		ids = append(ids, j.ID)
	}
	return ids
}

// registered makes a model of a new session and returns its registration.
func (c *client) registered(create, session string) *wire.InferenceRegistration {
	c.t.Helper()
	r := c.resource(create)
	id := c.session(`{"model_resources_id":"` + r.ID + `"` + session + `}`).ID
	var saved wire.InferenceCheckpointOutput
	c.run(id, wire.KindInferenceCheckpoint, "", &saved)
	return saved.Checkpoint.Registration
}

const tinyResource, qwenResource = `{"base_model":"sandbox/bytes-tiny"}`, `{"base_model":"Qwen/Qwen3.5-4B"}`

func types(events []wire.JobEvent) (out []wire.JobEventType) {
	for _, e := range events {
		out = append(out, e.Type)
	}
	return out
}

// adapterCourse is what a job over an adapter goes through.
var adapterCourse = []wire.JobEventType{
	wire.EventJobStart, wire.EventDownloadComplete, wire.EventMergeComplete, wire.EventQuantizeStart, wire.EventQuantizeComplete,
	wire.EventUploadComplete, wire.EventJobComplete,
}

func TestAJobIsQueuedRunsAndCompletes(t *testing.T) {
	clock := newHandClock()
	_, c := open(t, Options{Clock: clock, OpTime: OpTime{Preparing: {Base: 10 * time.Minute}}, Provision: time.Minute})
	r := c.resource(qwenResource)
	clock.at = clock.at.Add(time.Minute)
	id := c.session(`{"model_resources_id":"` + r.ID + `"}`).ID
	clock.at = clock.at.Add(time.Minute)
	var saved wire.InferenceCheckpointOutput
	c.run(id, wire.KindInferenceCheckpoint, "", &saved)
	model := *saved.Checkpoint.Registration.Adapter

	created := clock.at
	j := c.job(model.ID)
	if j.Status != wire.JobQueued || len(j.Events) != 0 || j.Results != nil || !strings.HasPrefix(j.ID, "shp-quant-") || !j.CreatedAt.Equal(created) {
		t.Errorf("created: got %+v", j)
	}
	conf := j.Params.Configuration
	if conf.ModelRevisionID != model.RevisionID || conf.BaseModelName != "Qwen/Qwen3.5-4B" || conf.BaseObjectID == "" || j.Params.Inputs.ModelObjectID != model.ID {
		t.Errorf("params: got %+v", j.Params)
	}
	for _, tt := range []struct {
		after  time.Duration
		status wire.JobStatus
		events int
		last   time.Duration
	}{
		{29 * time.Second, wire.JobQueued, 0, 0},
		{30 * time.Second, wire.JobRunning, 1, 30 * time.Second},
		{150 * time.Second, wire.JobRunning, 2, 150 * time.Second},
		{210 * time.Second, wire.JobRunning, 4, 210 * time.Second},
		{629 * time.Second, wire.JobRunning, 5, 570 * time.Second},
		{630 * time.Second, wire.JobCompleted, 7, 630 * time.Second},
		{time.Hour, wire.JobCompleted, 7, 630 * time.Second},
	} {
		clock.at = created.Add(tt.after)
		got := c.getJob(j.ID)
		if got.Status != tt.status || !slices.Equal(types(got.Events), adapterCourse[:tt.events]) || !got.UpdatedAt.Equal(created.Add(tt.last)) {
			t.Errorf("after %v: got %s, %v, updated %v later", tt.after, got.Status, types(got.Events), got.UpdatedAt.Sub(created))
		}
		if (got.Results != nil) != (tt.status == wire.JobCompleted) {
			t.Errorf("after %v: results %+v", tt.after, got.Results)
		}
		var events wire.List[wire.JobEvent]
		c.ok("GET", wire.PathShaping+"/"+j.ID+"/events", "", &events)
		if events.Object != "list" || !reflect.DeepEqual(events.Data, got.Events) {
			t.Errorf("after %v: events %+v, want those of the job", tt.after, events)
		}
	}
	done := c.getJob(j.ID)
	if end := done.Events[6]; *end.Result != *done.Results || end.Level != wire.LevelInfo || done.Results.ModelObjectID == model.ID {
		t.Errorf("the last event is %+v, the results %+v", end, done.Results)
	}
	hashes := map[string]bool{}
	for _, e := range done.Events {
		hashes[e.Hash] = true
	}
	if len(hashes) != len(done.Events) {
		t.Errorf("%d hashes of %d events", len(hashes), len(done.Events))
	}
}

// What was merged before it was registered is not merged again.
func TestOnlyAnAdapterIsMerged(t *testing.T) {
	_, c := open(t, Options{})
	for name, tt := range map[string]struct{ create, session string }{
		"full weights":          {`{"base_model":"sandbox/bytes-tiny","lora_enabled":false}`, ""},
		"LoRA on other weights": {`{"base_model":"sandbox/bytes-tiny","base_weights_ref":"together://ml_a@rv_b"}`, ""},
	} {
		j := c.getJob(c.job(c.registered(tt.create, tt.session).Model.ID).ID)
		if got := types(j.Events); j.Status != wire.JobCompleted || slices.Contains(got, wire.EventMergeComplete) || len(got) != 6 {
			t.Errorf("%s: got %s with %v", name, j.Status, got)
		}
		if conf := j.Params.Configuration; name != "full weights" && (conf.BaseObjectID != "ml_a" || conf.BaseRevisionID != "rv_b") {
			t.Errorf("%s: got %+v, want the base of its ref", name, conf)
		}
	}
}

func TestACalibrationFileIsSaidToBeUnread(t *testing.T) {
	_, c := open(t, Options{})
	model := c.registered(tinyResource, "").Adapter
	var j wire.QuantizationJob
	c.ok("POST", wire.PathPrepareFP4, `{"inputs":{"adapter_object_id":"`+model.ID+`","calibration_file_id":"file-1"}}`, &j)
	j = c.getJob(j.ID)
	if in := j.Params.Inputs; in.CalibrationFileID != "file-1" || in.AdapterObjectID != model.ID {
		t.Errorf("inputs: got %+v", in)
	}
	i := slices.IndexFunc(j.Events, func(e wire.JobEvent) bool { return e.Level == wire.LevelWarning })
	if i < 0 || !strings.Contains(j.Events[i].Message, `"file-1" was not read`) {
		t.Errorf("events: got %+v, want a warning", j.Events)
	}
}

func TestAJobIsCancelledInTheQueueOrWhereAStageEnds(t *testing.T) {
	clock := newHandClock()
	_, c := open(t, Options{Clock: clock, OpTime: OpTime{Preparing: {Base: 10 * time.Minute}}})
	model := c.registered(tinyResource, "").Adapter.ID
	cancel := func(id string) (j wire.QuantizationJob) {
		c.ok("POST", wire.PathShaping+"/"+id+"/cancel", "", &j)
		return j
	}
	running := c.job(model).ID
	start := clock.at
	clock.at = start.Add(4 * time.Minute) // between the merge, after 3, and the end of quantizing, after 9
	for range 2 {                         // a second time as the first
		if got := cancel(running); got.Status != wire.JobCancelRequested || len(got.Events) != 4 {
			t.Errorf("cancel: got %+v", got)
		}
	}
	clock.at = start.Add(9*time.Minute - time.Microsecond)
	if got := c.getJob(running); got.Status != wire.JobCancelRequested || !got.UpdatedAt.Equal(start.Add(4*time.Minute)) {
		t.Errorf("before the stage ends: got %+v", got)
	}
	clock.at = start.Add(9 * time.Minute)
	if got := c.getJob(running); got.Status != wire.JobCancelled || len(got.Events) != 4 || got.Results != nil || !got.UpdatedAt.Equal(clock.at) {
		t.Errorf("where the stage ends: got %+v", got)
	}
	if got := cancel(running); got.Status != wire.JobCancelled {
		t.Errorf("cancelling what is cancelled: got %s", got.Status)
	}
	done := c.job(model).ID
	clock.at = clock.at.Add(time.Hour)
	if e := c.refused(400, "POST", wire.PathShaping+"/"+done+"/cancel", ""); *e.Code != "job_finished" {
		t.Errorf("cancelling what is completed: got %+v", e)
	}
}

func TestAQueuedJobIsCancelledAtOnce(t *testing.T) {
	clock := newHandClock()
	_, c := open(t, Options{Clock: clock, Provision: 10 * time.Minute})
	r := c.resource(tinyResource)
	clock.at = clock.at.Add(10 * time.Minute)
	id := c.session(`{"model_resources_id":"` + r.ID + `"}`).ID
	clock.at = clock.at.Add(10 * time.Minute)
	var saved wire.InferenceCheckpointOutput
	c.run(id, wire.KindInferenceCheckpoint, "", &saved)
	j := c.job(saved.Checkpoint.Registration.Adapter.ID).ID
	clock.at = clock.at.Add(time.Minute)
	var got wire.QuantizationJob
	c.ok("POST", wire.PathShaping+"/"+j+"/cancel", "", &got)
	if got.Status != wire.JobCancelRequested {
		t.Errorf("cancel: got %s", got.Status)
	}
	if got := c.getJob(j); got.Status != wire.JobCancelled || len(got.Events) != 0 {
		t.Errorf("then: got %+v", got)
	}
}

func TestJobsFail(t *testing.T) {
	for code, want := range map[string]wire.JobStatus{"SHAPING_ERROR": wire.JobError, "SHAPING_USER_ERROR": wire.JobUserError} {
		clock := newHandClock()
		_, c := open(t, Options{
			Clock: clock, OpTime: OpTime{Preparing: {Base: 10 * time.Minute}}, Faults: rules(t, "job-error:code="+code+",after=5m"),
		})
		j := c.job(c.registered(tinyResource, "").Adapter.ID).ID
		clock.at = clock.at.Add(5*time.Minute - time.Microsecond)
		if got := c.getJob(j); got.Status != wire.JobRunning {
			t.Errorf("%s, before: got %s", code, got.Status)
		}
		clock.at = clock.at.Add(time.Hour)
		got := c.getJob(j)
		last := got.Events[len(got.Events)-1]
		if got.Status != want || string(last.Type) != code || last.Level != wire.LevelError || len(got.Events) != 5 || got.Results != nil {
			t.Errorf("%s: got %+v", code, got)
		}
		c.refused(400, "POST", wire.PathShaping+"/"+j+"/cancel", "")
	}
}

func TestTheEstimateIsThePriceOfTheJob(t *testing.T) {
	_, c := open(t, Options{OpTime: OpTime{Preparing: {Base: 90 * time.Minute}}})
	var e wire.QuantizationEstimate
	c.ok("POST", wire.PathPrepareFP4+"/estimate", `{"inputs":{"model_object_id":"`+c.registered(qwenResource, "").Adapter.ID+`"}}`, &e)
	if want := (wire.QuantizationEstimate{PriceUSD: 5.5, TimeHours: 1.5, CreditLimit: creditLimit, AllowedToProceed: true}); e != want {
		t.Errorf("got %+v, want %+v", e, want)
	}
	if got := c.jobs(); len(got) != 0 {
		t.Errorf("an estimate made a job: %v", got)
	}
}

func TestWhatCannotBePaidIsRefused(t *testing.T) {
	s, c := open(t, Options{Faults: rules(t, "no-credit:on=estimate-job+prepare-for-fp4-inference")})
	in := `{"inputs":{"model_object_id":"` + c.registered(tinyResource, "").Adapter.ID + `"}}`
	var e wire.QuantizationEstimate
	c.ok("POST", wire.PathPrepareFP4+"/estimate", in, &e)
	if e.AllowedToProceed {
		t.Errorf("estimate: got %+v", e)
	}
	c.refused(http.StatusPaymentRequired, "POST", wire.PathPrepareFP4, in)
	if got := c.jobs(); len(got) != 0 {
		t.Errorf("got jobs %v", got)
	}
	c.refused(400, "POST", wire.PathPrepareFP4, `{"inputs":{}}`) // what is wrong with the request is said first
	if n := len(s.state.resources.order); n != 1 {
		t.Errorf("got %d resources", n)
	}
	s, c = open(t, Options{Faults: rules(t, "no-credit:times=1")})
	c.refused(http.StatusPaymentRequired, "POST", wire.PathResources, tinyResource)
	c.resource(tinyResource)
	if n := len(s.state.resources.order); n != 1 {
		t.Errorf("got %d resources, want the second alone", n)
	}
}

// A create takes no key: one whose answer was lost, sent again, makes two jobs; the list shows both.
func TestJobsAreListedNewestFirst(t *testing.T) {
	clock := newHandClock()
	_, c := open(t, Options{Clock: clock, Faults: rules(t,
		"double-create:on=prepare-for-fp4-inference,at=2", "late-create:on=prepare-for-fp4-inference,at=3,after=1m")})
	model := c.registered(tinyResource, "").Adapter.ID
	first, second, late := c.job(model).ID, c.job(model).ID, c.job(model).ID
	got := c.jobs()
	if len(got) != 3 || got[0] != second || got[2] != first {
		t.Errorf("got %v, want %s first, its double, and %s", got, second, first)
	}
	if double := c.getJob(got[1]); double.Results.ModelObjectID == c.getJob(second).Results.ModelObjectID {
		t.Error("both register the same model")
	}
	clock.at = clock.at.Add(time.Minute)
	if got := c.jobs(); len(got) != 4 || got[0] != late {
		t.Errorf("a minute later: got %v, want %s first", got, late)
	}
}

func TestOnlyWhatTrainingRegisteredIsPrepared(t *testing.T) {
	_, c := open(t, Options{})
	model := c.registered(tinyResource, "").Adapter
	r := c.resource(tinyResource)
	var saved wire.TrainingCheckpointOutput
	c.run(c.session(`{"model_resources_id":"`+r.ID+`"}`).ID, wire.KindTrainingCheckpoint, "", &saved)
	made := c.getJob(c.job(model.ID).ID)
	if c.registered(`{"base_model":"MiniMaxAI/MiniMax-M3"}`, "") != nil {
		t.Error("a MiniMax-M3 checkpoint is registered")
	}
	const object, adapter = "inputs.model_object_id", "inputs.adapter_object_id"
	for _, tt := range []struct{ name, body, param string }{
		{"no body", ``, ""},
		{"a list", `[]`, ""},
		{"nothing", `{}`, "inputs"},
		{"inputs that are null", `{"inputs":null}`, "inputs"},
		{"inputs that are a list", `{"inputs":[]}`, "inputs"},
		{"inputs without a model", `{"inputs":{}}`, object},
		{"a model that is a number", `{"inputs":{"model_object_id":1}}`, object},
		{"an unknown model", `{"inputs":{"model_object_id":"ml_x"}}`, object},
		{"an unknown model by the older name", `{"inputs":{"adapter_object_id":"ml_x"}}`, adapter},
		{"both names", `{"inputs":{"model_object_id":"` + model.ID + `","adapter_object_id":"` + model.ID + `"}}`, adapter},
		{"another revision", `{"inputs":{"model_object_id":"` + model.ID + `","model_revision_id":"rv_x"}}`, "inputs.model_revision_id"},
		{"a revision that is a list", `{"inputs":{"model_object_id":"` + model.ID + `","model_revision_id":[]}}`, "inputs.model_revision_id"},
		{"a revision without its model", `{"inputs":{"model_revision_id":"` + model.RevisionID + `"}}`, "inputs.model_revision_id"},
		{"a revision beside the older name", `{"inputs":{"adapter_object_id":"` + model.ID + `","model_revision_id":"` + model.RevisionID + `"}}`, "inputs.model_revision_id"},
		{"a file that is an object", `{"inputs":{"model_object_id":"` + model.ID + `","calibration_file_id":{}}}`, "inputs.calibration_file_id"},
		{"a file's name that is too long", `{"inputs":{"model_object_id":"` + model.ID + `","calibration_file_id":"` + strings.Repeat("x", 257) + `"}}`, "inputs.calibration_file_id"},
		{"a training checkpoint's model", `{"inputs":{"model_object_id":"` + saved.Checkpoint.Registration.ID + `"}}`, object},
		{"what a job made", `{"inputs":{"model_object_id":"` + made.Results.ModelObjectID + `"}}`, object},
		{"the base model", `{"inputs":{"model_object_id":"` + made.Params.Configuration.BaseObjectID + `"}}`, object},
	} {
		for _, path := range []string{wire.PathPrepareFP4, wire.PathPrepareFP4 + "/estimate"} {
			e := (&client{t: t, http: c.http}).refused(400, "POST", path, tt.body)
			param := ""
			if e.Param != nil {
				param = *e.Param
			}
			if param != tt.param || !strings.Contains(e.Message, lastPart(tt.param)) {
				t.Errorf("%s: got %+v, want the place %q", tt.name, e, tt.param)
			}
		}
	}
	for _, path := range []string{"/x", "/x/events", "/prepare-for-fp4-inference"} {
		c.refused(404, "GET", wire.PathShaping+path, "")
	}
	c.refused(404, "POST", wire.PathShaping+"/x/cancel", "")
	if got := c.jobs(); len(got) != 1 {
		t.Errorf("the refusals made jobs: %v", got)
	}
	c.ok("POST", wire.PathPrepareFP4, `{"inputs":{"model_object_id":"`+model.ID+`","model_revision_id":"`+model.RevisionID+`"}}`, nil)
}

// A job, its cancelling and what was decided to go wrong with it are there after a kill, and its time has stood still.
func TestJobsSurviveAKill(t *testing.T) {
	dir, clock := t.TempDir(), newHandClock()
	o := Options{Clock: clock, OpTime: OpTime{Preparing: {Base: 10 * time.Minute}}, Faults: rules(t, "job-error:at=3,after=8m"), Dir: dir}
	s, c := open(t, o)
	model := c.registered(tinyResource, "").Adapter.ID
	ids := []string{c.job(model).ID, c.job(model).ID, c.job(model).ID}
	clock.at = clock.at.Add(4 * time.Minute)
	c.ok("POST", wire.PathShaping+"/"+ids[1]+"/cancel", "", nil)
	var before []wire.QuantizationJob
	for _, id := range ids {
		before = append(before, c.getJob(id))
	}
	copied := t.TempDir()
	if err := copyDir(copied, dir); err != nil { // the folder as a kill leaves it
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	clock.at = clock.at.Add(24 * time.Hour)
	_, c = open(t, Options{Clock: clock, Dir: copied}) // other paces change nothing of what was created
	for i, id := range ids {
		if got := c.getJob(id); !reflect.DeepEqual(got.Events, before[i].Events) || got.Status != before[i].Status || got.Params != before[i].Params {
			t.Errorf("job %d: got %+v, want %+v", i, got, before[i])
		}
	}
	clock.at = clock.at.Add(time.Hour)
	for i, want := range []wire.JobStatus{wire.JobCompleted, wire.JobCancelled, wire.JobError} {
		if got := c.getJob(ids[i]); got.Status != want {
			t.Errorf("job %d at last: got %s, want %s", i, got.Status, want)
		}
	}
}
