package sandbox

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"trainer/internal/wire"
)

func TestAResourceIsQueuedLoadedAndReady(t *testing.T) {
	clock := newHandClock()
	_, c := open(t, Options{Clock: clock, Provision: time.Minute})
	a := c.resource(`{"base_model":"sandbox/bytes-tiny","inactive_timeout":300}`)
	b := c.resource(`{"base_model":"sandbox/bytes-tiny"}`)
	if a.Status != wire.ResourcePending || a.StatusDetails.QueuePosition != 1 || a.ExpiresAt != nil {
		t.Errorf("created: got %+v, want PENDING, first in the queue", a)
	}
	if got := c.getResource(b.ID); got.StatusDetails.QueuePosition != 2 {
		t.Errorf("the second one: got position %d, want 2", got.StatusDetails.QueuePosition)
	}
	c.refused(400, "POST", wire.PathSessions, `{"model_resources_id":"`+a.ID+`"}`)
	clock.at = clock.at.Add(30 * time.Second)
	if got := c.getResource(a.ID); got.Status != wire.ResourceCreating || got.StatusDetails.QueuePosition != 0 {
		t.Errorf("after half of the time: got %+v, want CREATING", got)
	}
	c.refused(400, "POST", wire.PathResources+"/"+a.ID+"/extend-expiry", `{"seconds":60}`)
	clock.at = clock.at.Add(30 * time.Second)
	got := c.getResource(a.ID)
	if got.Status != wire.ResourceReady || got.ExpiresAt == nil || !got.ExpiresAt.Equal(clock.at.Add(300*time.Second)) {
		t.Errorf("after a minute: got %+v, want READY until 300 s from now", got)
	}
	if !got.UpdatedAt.Equal(clock.at) {
		t.Errorf("updated_at: got %v, want the time it became READY, %v", got.UpdatedAt, clock.at)
	}
	s := c.session(`{"model_resources_id":"` + a.ID + `"}`)
	if s.Status != wire.SessionCreating || c.getSession(s.ID).Status != wire.SessionCreating {
		t.Errorf("session: got %s, want CREATING", s.Status)
	}
	c.refused(400, "POST", opsPath(s.ID, wire.KindOptimStep), `{}`, wire.KeyHeader, "k")
	clock.at = clock.at.Add(30 * time.Second)
	if got := c.getSession(s.ID).Status; got != wire.SessionRunning {
		t.Errorf("session after 30 s: got %s, want RUNNING", got)
	}
}

func TestWithoutADelayEverythingIsReadyAtTheNextRead(t *testing.T) {
	_, c := open(t, Options{})
	r := c.resource(`{"base_model":"sandbox/bytes-tiny"}`)
	if r.Status != wire.ResourcePending || r.StatusDetails.QueuePosition != 0 {
		t.Errorf("created: got %+v, want PENDING and not queued", r)
	}
	if got := c.getResource(r.ID).Status; got != wire.ResourceReady {
		t.Errorf("read: got %s, want READY", got)
	}
	s := c.session(`{"model_resources_id":"` + r.ID + `"}`)
	if got := c.getSession(s.ID).Status; s.Status != wire.SessionCreating || got != wire.SessionRunning {
		t.Errorf("session: created %s, then %s; want CREATING, then RUNNING", s.Status, got)
	}
}

func TestIdlenessEndsAResourceAndItsSessions(t *testing.T) {
	clock := newHandClock()
	_, c := open(t, Options{Clock: clock})
	r := c.resource(`{"base_model":"sandbox/bytes-tiny","inactive_timeout":300}`)
	id := c.session(`{"model_resources_id":"` + r.ID + `","lora_config":{"rank":2}}`).ID
	clock.at = clock.at.Add(299 * time.Second)
	c.run(id, wire.KindOptimStep, `{}`, nil) // activity
	active := clock.at
	clock.at = clock.at.Add(299 * time.Second)
	got := c.getResource(r.ID)
	if got.Status != wire.ResourceReady || !got.ExpiresAt.Equal(active.Add(300*time.Second)) {
		t.Fatalf("a second before: got %+v, want READY until %v", got, active.Add(300*time.Second))
	}
	c.ok("POST", wire.PathResources+"/"+r.ID+"/extend-expiry", `{"seconds":600}`, &got)
	if want := clock.at.Add(600 * time.Second); !got.ExpiresAt.Equal(want) {
		t.Errorf("extended: got %v, want %v", got.ExpiresAt, want)
	}
	c.ok("POST", wire.PathResources+"/"+r.ID+"/extend-expiry", `{"seconds":60}`, &got)
	if want := clock.at.Add(600 * time.Second); !got.ExpiresAt.Equal(want) {
		t.Errorf("extended by less: got %v, want no earlier than before, %v", got.ExpiresAt, want)
	}
	clock.at = clock.at.Add(601 * time.Second)
	if got := c.getSession(id); got.Status != wire.SessionExpired {
		t.Errorf("session: got %s, want EXPIRED", got.Status)
	}
	got = c.getResource(r.ID)
	if got.Status != wire.ResourceStopped || got.ExpiresAt != nil || !got.UpdatedAt.Equal(clock.at.Add(-time.Second)) {
		t.Errorf("resource: got %+v, want STOPPED a second ago", got)
	}
	e := c.refused(400, "POST", opsPath(id, wire.KindOptimStep), `{}`, wire.KeyHeader, "late")
	if e.Code == nil || *e.Code != "session_not_active" {
		t.Errorf("work for an expired session: got %+v, want the code session_not_active", e)
	}
	c.refused(400, "POST", wire.PathResources+"/"+r.ID+"/stop", "")
}

func TestStoppingNeedsForceWhileSessionsAreActive(t *testing.T) {
	_, c := open(t, Options{})
	r := c.resource(`{"base_model":"sandbox/bytes-tiny"}`)
	s := c.session(`{"model_resources_id":"` + r.ID + `"}`)
	stop := wire.PathResources + "/" + r.ID + "/stop"
	if e := c.refused(400, "POST", stop, ""); *e.Code != "active_sessions" {
		t.Errorf("stop with a session: got %+v", e)
	}
	var got wire.Resource
	c.ok("POST", stop+"?force=true", "", &got)
	if got.Status != wire.ResourceStopping {
		t.Errorf("stop: got %s, want STOPPING", got.Status)
	}
	if a, b := c.getResource(r.ID).Status, c.getSession(s.ID).Status; a != wire.ResourceStopped || b != wire.SessionStopped {
		t.Errorf("then: got %s and %s, want STOPPED", a, b)
	}
	if e := c.refused(400, "POST", stop, ""); *e.Code != "invalid_argument" {
		t.Errorf("stop again: got %+v, want invalid_argument", e)
	}
	c.ok("POST", wire.PathSessions+"/"+s.ID+"/stop", "", nil) // what has stopped is stopped
}

func TestSessionCaps(t *testing.T) {
	_, c := open(t, Options{})
	for _, tt := range []struct {
		name, body string
		most       int
	}{
		{"five with lora", `{"base_model":"sandbox/bytes-tiny"}`, 5},
		{"one with full weights", `{"base_model":"sandbox/bytes-tiny","lora_enabled":false}`, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := c.resource(tt.body)
			create := `{"model_resources_id":"` + r.ID + `"}`
			var last wire.Session
			for range tt.most {
				last = c.session(create)
			}
			c.refused(429, "POST", wire.PathSessions, create)
			c.ok("POST", wire.PathSessions+"/"+last.ID+"/stop", "", nil)
			c.session(create)
		})
	}
}

// slowStore holds every file that is written until the test lets it go.
type slowStore struct {
	store
	begun, goOn chan struct{}
}

func (s *slowStore) put(name string, write func(io.Writer) error) error {
	s.begun <- struct{}{}
	<-s.goOn
	return s.store.put(name, write)
}

func TestStopCancelsWhatHasNotBegun(t *testing.T) {
	for _, stop := range []string{"the session", "the resource"} {
		t.Run(stop, func(t *testing.T) {
			s, c := open(t, Options{})
			slow := &slowStore{s.store, make(chan struct{}), make(chan struct{})}
			s.store = slow
			id := c.tiny()
			saving := c.post(id, wire.KindTrainingCheckpoint, "")
			<-slow.begun
			waiting := c.post(id, wire.KindForwardBackward, batch(t, "", row("hello")))
			var running wire.Operation[struct{}]
			c.ok("GET", opsPath(id, wire.KindTrainingCheckpoint)+"/"+saving.ID, "", &running)
			if running.Status != wire.OperationRunning || waiting.Status != wire.OperationPending {
				t.Errorf("got %s and %s, want RUNNING and PENDING", running.Status, waiting.Status)
			}
			path := wire.PathSessions + "/" + id + "/stop"
			resource := c.getSession(id).ModelResourcesID
			if stop == "the resource" {
				path = wire.PathResources + "/" + resource + "/stop?force=true"
			}
			c.ok("POST", path, "", nil)
			if got := c.wait(id, wire.KindForwardBackward, waiting.ID); got.Error == nil || got.Error.Code != wire.CodeSessionNotActive {
				t.Errorf("what had not begun: got %+v, want SESSION_NOT_ACTIVE", got)
			}
			if got := c.getSession(id).Status; got != wire.SessionStopping {
				t.Errorf("session: got %s, want STOPPING while its operation runs", got)
			}
			if got := c.getResource(resource).Status; stop == "the resource" && got != wire.ResourceStopping {
				t.Errorf("resource: got %s, want STOPPING while an operation runs", got)
			}
			close(slow.goOn)
			if got := c.wait(id, wire.KindTrainingCheckpoint, saving.ID); got.Status != wire.OperationCompleted {
				t.Errorf("what had begun: got %+v, want COMPLETED", got)
			}
			if got := c.getSession(id).Status; got != wire.SessionStopped {
				t.Errorf("session: got %s, want STOPPED", got)
			}
		})
	}
}

func TestWeightsSyncPublishesNowOrAMomentLater(t *testing.T) {
	for _, tt := range []struct {
		mode    wire.WeightSyncType
		pending bool
	}{{wire.SyncSynchronous, false}, {wire.SyncBackgroundPublish, true}, {wire.SyncPipeline, true}} {
		t.Run(string(tt.mode), func(t *testing.T) {
			clock := newHandClock()
			_, c := open(t, Options{Clock: clock})
			id := c.tiny()
			c.run(id, wire.KindOptimStep, `{}`, nil)
			var out wire.WeightsSyncOutput
			c.run(id, wire.KindWeightsSync, fmt.Sprintf(`{"weight_sync_type":%q}`, tt.mode), &out)
			if *out.WeightsVersion != 1 {
				t.Errorf("version: got %d, want 1", *out.WeightsVersion)
			}
			want := wire.PolicyState{TrainerStep: 1, TargetWeightsVersion: 1, AppliedWeightsVersion: 1, PendingPublish: tt.pending}
			if tt.pending {
				want.AppliedWeightsVersion = 0
			}
			if got := c.getSession(id).PolicyState; got != want {
				t.Errorf("at once: got %+v, want %+v", got, want)
			}
			clock.at = clock.at.Add(time.Second)
			want.AppliedWeightsVersion, want.PendingPublish = 1, false
			if got := c.getSession(id).PolicyState; got != want {
				t.Errorf("a second later: got %+v, want %+v", got, want)
			}
		})
	}
}

func TestListsAreFilteredPagedAndNewestFirst(t *testing.T) {
	_, c := open(t, Options{})
	var ids []string
	for range 5 {
		ids = append(ids, c.resource(`{"base_model":"sandbox/bytes-tiny"}`).ID)
	}
	c.ok("POST", wire.PathResources+"/"+ids[2]+"/stop", "", nil)
	list := func(query string) (got []string, meta wire.PageMeta) {
		var p wire.Page[wire.Resource]
		c.ok("GET", wire.PathResources+"?"+query, "", &p)
		for _, r := range p.Data {
			got = append(got, r.ID)
		}
		return got, p.Meta
	}
	ready := "status=MODEL_RESOURCES_STATUS_READY%2CMODEL_RESOURCES_STATUS_PENDING&created_by=me&limit=3"
	first, meta := list(ready)
	if want := []string{ids[4], ids[3], ids[1]}; fmt.Sprint(first) != fmt.Sprint(want) || !meta.HasMore || meta.NextCursor != ids[1] {
		t.Errorf("first page: got %v %+v, want %v and more", first, meta, want)
	}
	second, meta := list(ready + "&after=" + meta.NextCursor)
	if fmt.Sprint(second) != fmt.Sprint(ids[:1]) || meta.HasMore || meta.NextCursor != "" {
		t.Errorf("second page: got %v %+v, want %v and no more", second, meta, ids[:1])
	}
	if got, _ := list("created_by=somebody"); len(got) != 0 {
		t.Errorf("another's: got %v, want none", got)
	}
	for _, bad := range []string{"limit=0", "limit=101", "limit=x", "after=nothing", "status=READY"} {
		c.refused(400, "GET", wire.PathResources+"?"+bad, "")
	}
	a, b := c.session(`{"model_resources_id":"`+ids[0]+`"}`), c.session(`{"model_resources_id":"`+ids[1]+`"}`)
	for query, want := range map[string]string{
		"":                                         b.ID + " " + a.ID,
		"model_resources_id=" + ids[0]:             a.ID,
		"status=TRAINING_SESSION_STATUS_RUNNING":   b.ID + " " + a.ID,
		"status=TRAINING_SESSION_STATUS_STOPPED":   "",
		"created_by=me&limit=1&after=" + b.ID:      a.ID,
		"created_by=me&model_resources_id=nothing": "",
	} {
		var p wire.Page[wire.Session]
		c.ok("GET", wire.PathSessions+"?"+query, "", &p)
		var got []string
		for _, s := range p.Data {
			got = append(got, s.ID)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("sessions?%s: got %v, want %v", query, got, want)
		}
	}
}

func TestCheckpointsAreListedReadAndResumed(t *testing.T) {
	s, c := open(t, Options{})
	r := c.resource(`{"base_model":"sandbox/bytes-tiny"}`)
	other := c.resource(`{"base_model":"sandbox/bytes-tiny"}`)
	id := c.session(`{"model_resources_id":"` + r.ID + `","lora_config":{"rank":4,"alpha":9,"seed":"11"}}`).ID
	step := func(id string) {
		c.loss(id, "", row("checkpoints"))
		c.run(id, wire.KindOptimStep, `{"adam_params":{"learning_rate":0.01}}`, nil)
	}
	step(id)
	step(id)
	var training wire.TrainingCheckpointOutput
	var inference wire.InferenceCheckpointOutput
	c.run(id, wire.KindTrainingCheckpoint, "", &training)
	c.run(id, wire.KindInferenceCheckpoint, "", &inference)
	tc, ic := training.Checkpoint, inference.Checkpoint
	if tc.Step != 2 || tc.Registration == nil || ic.Step != 2 || ic.Registration.Adapter == nil {
		t.Errorf("checkpoints: got %+v and %+v, want step 2, registered", tc, ic)
	}
	var page wire.Page[wire.Checkpoint]
	c.ok("GET", wire.PathCheckpoints+"?session_id="+id, "", &page)
	if len(page.Data) != 2 || page.Data[0].ID != ic.ID || page.Data[1].ID != tc.ID || page.Data[1].LoRARank != 4 {
		t.Errorf("list: got %+v, want both, newest first", page.Data)
	}
	c.ok("GET", wire.PathCheckpoints+"?type=CHECKPOINT_TYPE_TRAINING&base_model=sandbox%2Fbytes-tiny", "", &page)
	if len(page.Data) != 1 || page.Data[0].ID != tc.ID {
		t.Errorf("training ones: got %+v", page.Data)
	}
	var one wire.Checkpoint
	c.ok("GET", wire.PathCheckpoints+"/"+ic.ID, "", &one)
	if one.Type != wire.CheckpointInference || one.SessionID != id || one.InferenceRegistration == nil {
		t.Errorf("read: got %+v", one)
	}
	if got := c.getSession(id); len(got.TrainingCheckpoints) != 1 || len(got.InferenceCheckpoints) != 1 {
		t.Errorf("session: got %+v", got)
	}
	step(id)
	want, err := s.WeightsHash(id)
	if err != nil {
		t.Fatal(err)
	}
	start := func(resource, more string) wire.Session {
		return c.session(`{"model_resources_id":"` + resource + `","resume_from_checkpoint_id":` + more + `}`)
	}
	for name, res := range map[string]string{"the same resource": r.ID, "another resource": other.ID} {
		got := start(res, `"`+tc.ID+`","lora_config":{"rank":4,"seed":99}`)
		if got.Step != 2 || got.PolicyState.TrainerStep != 0 || got.LoRAConfig.Alpha != 9 || got.ResumeFromCheckpointID != tc.ID {
			t.Errorf("resumed on %s: got %+v, want step 2 of the checkpoint and its alpha", name, got)
		}
		step(got.ID)
		if hash, err := s.WeightsHash(got.ID); err != nil || hash != want {
			t.Errorf("resumed on %s, one step later: other weights than the session that went on (%v)", name, err)
		}
		if got := c.getSession(got.ID); got.Step != 3 || got.PolicyState.TrainerStep != 1 {
			t.Errorf("resumed on %s, one step later: got %+v", name, got)
		}
	}
	for name, more := range map[string]string{
		"weights only":              `"` + tc.ID + `","load_optimizer":false`,
		"from inference checkpoint": `"` + ic.ID + `"`,
	} {
		got := start(other.ID, more)
		step(got.ID)
		hash, err := s.WeightsHash(got.ID)
		if err != nil || hash == want || got.Step != 0 {
			t.Errorf("%s: step %d, same weights %v, %v; want fresh moments and step 0", name, got.Step, hash == want, err)
		}
	}
	full := c.resource(`{"base_model":"sandbox/bytes-tiny","lora_enabled":false}`)
	small := c.resource(`{"base_model":"sandbox/bytes-small"}`)
	for _, tt := range []struct{ resource, more, param string }{
		{other.ID, `"` + ic.ID + `","load_optimizer":true`, "load_optimizer"},
		{other.ID, `"` + tc.ID + `","lora_config":{"rank":5}`, "lora_config.rank"},
		{other.ID, `"` + tc.ID + `","lora_config":{"alpha":5}`, "lora_config.alpha"},
		{other.ID, `"` + tc.ID + `","lora_config":{"train_unembed":false}`, "lora_config.train_unembed"},
		{full.ID, `"` + tc.ID + `"`, "resume_from_checkpoint_id"},
		{small.ID, `"` + tc.ID + `"`, "resume_from_checkpoint_id"},
	} {
		e := c.refused(400, "POST", wire.PathSessions, `{"model_resources_id":"`+tt.resource+`","resume_from_checkpoint_id":`+tt.more+`}`)
		if e.Param == nil || *e.Param != tt.param {
			t.Errorf("%s: got param %v, want %s", tt.more, e.Param, tt.param)
		}
	}
}

func TestAPatchKeepsWhatItLeavesOutAndClearsWhatIsEmpty(t *testing.T) {
	_, c := open(t, Options{})
	id := c.tiny()
	patch := func(body string) (s wire.Session) {
		c.ok("PATCH", wire.PathSessions+"/"+id, body, &s)
		return s
	}
	patch(`{"display_name":"one","metadata":{"wandb":{"entity":"e","run_id":"r1"}}}`)
	got := patch(`{"metadata":{"wandb":{"run_id":"r2"}}}`)
	if got.DisplayName != "one" || *got.Metadata.WandB != (wire.WandB{Entity: "e", RunID: "r2"}) {
		t.Errorf("got %q %+v, want the name kept and run_id replaced", got.DisplayName, got.Metadata.WandB)
	}
	got = patch(`{"display_name":"","metadata":{"wandb":{"entity":""}}}`)
	if got.DisplayName != "" || *got.Metadata.WandB != (wire.WandB{RunID: "r2"}) {
		t.Errorf("got %q %+v, want name and entity cleared", got.DisplayName, got.Metadata.WandB)
	}
	c.refused(400, "PATCH", wire.PathSessions+"/"+id, `{"display_name":"`+strings.Repeat("é", 129)+`"}`)
	patch(`{"display_name":"` + strings.Repeat("é", 128) + `"}`)
}

// A bubble has its own time and ends only when every goroutine in it has: a socket or a goroutine left behind would hang.
func TestAServerLivesInABubbleOfTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := Open(Options{Dir: t.TempDir(), Provision: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		c := &client{t: t, http: s}
		r := c.resource(`{"base_model":"sandbox/bytes-tiny","inactive_timeout":300}`)
		time.Sleep(time.Minute)
		id := c.session(`{"model_resources_id":"` + r.ID + `","lora_config":{"rank":2}}`).ID
		time.Sleep(time.Minute)
		c.loss(id, "", row("bubble"))
		c.run(id, wire.KindOptimStep, `{}`, nil)
		time.Sleep(5 * time.Minute)
		if got := c.getSession(id).Status; got != wire.SessionExpired {
			t.Errorf("after 5 minutes: got %s, want EXPIRED", got)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		late, err := http.NewRequest("GET", host+wire.PathModels, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.RoundTrip(late); err == nil {
			t.Error("a closed server answered")
		}
	})
}
