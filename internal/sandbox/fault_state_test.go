package sandbox

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"trainer/internal/wire"
)

const syncNow = `{"weight_sync_type":"WEIGHT_SYNC_TYPE_SYNCHRONOUS"}`

// keyed submits under a key of the test's.
func (c *client) keyed(session string, kind wire.Kind, key, body string) string {
	c.t.Helper()
	var op wire.Operation[json.RawMessage]
	c.ok("POST", opsPath(session, kind), body, &op, wire.KeyHeader, key)
	return op.ID
}

func TestQueuesOfAnyLengthAndPlace(t *testing.T) {
	clock := newHandClock()
	_, c := open(t, Options{Clock: clock, Provision: time.Minute, Faults: rules(t, "queue:fixed=10m,position=5,at=1")})
	r := c.resource(`{"base_model":"sandbox/bytes-tiny"}`)
	start := clock.at
	for _, tt := range []struct {
		after    time.Duration
		status   wire.ResourceStatus
		position int
	}{
		{0, wire.ResourcePending, 5}, {time.Minute, wire.ResourcePending, 5}, {3 * time.Minute, wire.ResourcePending, 4},
		{9 * time.Minute, wire.ResourcePending, 1}, {10 * time.Minute, wire.ResourceCreating, 0},
		{10*time.Minute + 29*time.Second, wire.ResourceCreating, 0}, {10*time.Minute + 30*time.Second, wire.ResourceReady, 0},
	} {
		clock.at = start.Add(tt.after)
		if got := c.getResource(r.ID); got.Status != tt.status || got.StatusDetails.QueuePosition != tt.position {
			t.Errorf("after %v: got %s at position %d, want %s at %d", tt.after, got.Status, got.StatusDetails.QueuePosition, tt.status, tt.position)
		}
	}
	if got, want := c.getResource(r.ID).ExpiresAt, clock.at.Add(time.Hour); !got.Equal(want) {
		t.Errorf("expires at %v, want an hour from READY, %v", got, want)
	}
}

func TestResourcesEndInErrorByEachCode(t *testing.T) {
	for code, after := range map[string]time.Duration{"CAPACITY_WAIT_TIMEOUT": 0, "PROVISIONING_FAILED": 45 * time.Second, "RESOURCE_UNAVAILABLE": time.Hour} {
		t.Run(code, func(t *testing.T) {
			clock := newHandClock()
			dir := t.TempDir()
			o := Options{Dir: dir, Clock: clock, Provision: time.Minute}
			o.Faults = rules(t, fmt.Sprintf("resource-error:code=%s,after=%s,at=1", code, after))
			s, c := open(t, o)
			r := c.resource(`{"base_model":"sandbox/bytes-tiny","inactive_timeout":7200}`)
			session := ""
			if after == time.Hour {
				clock.at = clock.at.Add(time.Minute)
				session = c.session(`{"model_resources_id":"` + r.ID + `"}`).ID
				clock.at = clock.at.Add(-time.Minute)
			}
			clock.at = clock.at.Add(after)
			want := clock.at
			clock.at = clock.at.Add(3 * time.Minute)
			check := func(when string) {
				got := c.getResource(r.ID)
				if got.Status != wire.ResourceError || got.Error == nil || got.Error.Code.Name() != code || !got.Error.OccurredAt.Equal(want) {
					t.Errorf("%s: got %+v, want ERROR with %s at %v", when, got, code, want)
				}
				if session == "" {
					return
				}
				if s := c.getSession(session); s.Status != wire.SessionError || s.Error.Code != wire.SessionResourceUnavailable {
					t.Errorf("%s: its session: got %+v, want ERROR with RESOURCE_UNAVAILABLE", when, s)
				}
			}
			check("at once")
			c.refused(400, "POST", wire.PathSessions, `{"model_resources_id":"`+r.ID+`"}`)
			c.refused(400, "POST", wire.PathResources+"/"+r.ID+"/stop", "")
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			o.Faults = nil
			_, c = open(t, o)
			check("after a restart without the fault")
		})
	}
}

func TestSessionsExpireWithWorkQueued(t *testing.T) {
	_, c := open(t, Options{Faults: rules(t, "expire-session:on=optim-step,at=2", "reorder:on=forward-backward,at=2,after=1h")})
	id := c.tiny()
	c.loss(id, "", row("hello"))
	c.run(id, wire.KindOptimStep, `{}`, nil)
	held := c.post(id, wire.KindForwardBackward, batch(t, "", row("hello")))
	late := c.post(id, wire.KindOptimStep, `{}`)
	for _, op := range []wire.Operation[json.RawMessage]{
		c.wait(id, wire.KindForwardBackward, held.ID), c.wait(id, wire.KindOptimStep, late.ID),
	} {
		if op.Error == nil || op.Error.Code != wire.CodeSessionNotActive {
			t.Errorf("what was queued: got %+v, want SESSION_NOT_ACTIVE", op)
		}
	}
	got := c.getSession(id)
	if got.Status != wire.SessionExpired || got.Step != 1 {
		t.Errorf("got %s at step %d, want EXPIRED at 1", got.Status, got.Step)
	}
	if r := c.getResource(got.ModelResourcesID); r.Status != wire.ResourceReady {
		t.Errorf("its resource: got %s, want READY", r.Status)
	}
}

func TestASessionExpiresAWhileAfterItsCreate(t *testing.T) {
	clock := newHandClock()
	_, c := open(t, Options{Clock: clock, Faults: rules(t, "expire-session:after=30s,at=1")})
	id := c.tiny()
	clock.at = clock.at.Add(29 * time.Second)
	if got := c.getSession(id).Status; got != wire.SessionRunning {
		t.Errorf("a second before: got %s, want RUNNING", got)
	}
	clock.at = clock.at.Add(time.Second)
	if got := c.getSession(id).Status; got != wire.SessionExpired {
		t.Errorf("then: got %s, want EXPIRED", got)
	}
}

func TestGeneratorsThatAreSlowToPublish(t *testing.T) {
	for _, mode := range []string{"SYNCHRONOUS", "BACKGROUND_PUBLISH"} {
		t.Run(mode, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, c := open(t, Options{Faults: rules(t, "slow-publish:fixed=20s")})
				id := c.tiny()
				c.run(id, wire.KindOptimStep, `{}`, nil)
				start := time.Now()
				c.run(id, wire.KindWeightsSync, strings.Replace(syncNow, "SYNCHRONOUS", mode, 1), nil)
				took, state := time.Since(start), c.getSession(id).PolicyState
				if mode == "SYNCHRONOUS" {
					if took < 20*time.Second || state.AppliedWeightsVersion != 1 || state.PendingPublish {
						t.Errorf("got %+v after %v, want version 1 live after 20s", state, took)
					}
					return
				}
				if took > time.Second || state.AppliedWeightsVersion != 0 || !state.PendingPublish {
					t.Errorf("got %+v after %v, want version 0 still live, at once", state, took)
				}
				time.Sleep(20 * time.Second)
				if state := c.getSession(id).PolicyState; state.AppliedWeightsVersion != 1 || state.PendingPublish {
					t.Errorf("20s later: got %+v, want version 1 live", state)
				}
			})
		})
	}
}

func TestKeysAreForgotten(t *testing.T) {
	clock := &movedClock{}
	_, c := open(t, Options{Clock: clock, Faults: rules(t, "forget-key:after=60s,on=optim-step")})
	id := c.tiny()
	first := c.keyed(id, wire.KindOptimStep, "k", `{}`)
	clock.move(59 * time.Second)
	if again := c.keyed(id, wire.KindOptimStep, "k", `{}`); again != first {
		t.Errorf("after 59s: got %s, want the first, %s", again, first)
	}
	c.refused(422, "POST", opsPath(id, wire.KindOptimStep), `{"adam_params":{}}`, wire.KeyHeader, "k")
	clock.move(time.Second)
	second := c.keyed(id, wire.KindOptimStep, "k", `{"adam_params":{}}`)
	c.wait(id, wire.KindOptimStep, second)
	if got := c.getSession(id).Step; second == first || got != 2 {
		t.Errorf("after 60s: got operation %s and %d steps, want another one and 2", second, got)
	}
	kept := c.keyed(id, wire.KindWeightsSync, "other", syncNow)
	clock.move(30 * time.Minute)
	if again := c.keyed(id, wire.KindWeightsSync, "other", syncNow); again != kept {
		t.Errorf("the key of another kind: got %s, want the first, %s", again, kept)
	}
}

func TestFinishedOperationsAreForgotten(t *testing.T) {
	clock := &movedClock{}
	_, c := open(t, Options{Clock: clock, Faults: rules(t, "forget-operation:after=10s,on=optim-step,at=1")})
	id := c.tiny()
	first := c.post(id, wire.KindOptimStep, `{}`).ID
	second := c.post(id, wire.KindOptimStep, `{}`).ID
	c.wait(id, wire.KindOptimStep, second)
	clock.move(9 * time.Second)
	c.ok("GET", opsPath(id, wire.KindOptimStep)+"/"+first, "", nil)
	clock.move(time.Second)
	c.refused(404, "GET", opsPath(id, wire.KindOptimStep)+"/"+first, "")
	c.ok("GET", opsPath(id, wire.KindOptimStep)+"/"+second, "", nil)
}

// The held forward-backward of one step lands behind the optim-step that was to apply it.
func TestTrainerOperationsOutOfOrder(t *testing.T) {
	rate := `{"adam_params":{"learning_rate":0.01}}`
	want := trainedBy(t, Options{}, func(c *client, id string) {
		c.run(id, wire.KindOptimStep, rate, nil)
		c.loss(id, "", row("hello"))
		c.run(id, wire.KindOptimStep, rate, nil)
	})
	dir := t.TempDir()
	o := Options{Dir: dir, Faults: rules(t, "reorder:on=forward-backward,at=1,after=1h")}
	s, c := open(t, o)
	id := c.tiny()
	held := c.post(id, wire.KindForwardBackward, batch(t, "", row("hello")))
	before := c.post(id, wire.KindOptimStep, rate)
	var op wire.Operation[json.RawMessage]
	c.wait(id, wire.KindOptimStep, before.ID)
	if op = c.wait(id, wire.KindForwardBackward, held.ID); op.Status != wire.OperationCompleted {
		t.Errorf("the held one: got %+v, want COMPLETED", op)
	}
	c.run(id, wire.KindOptimStep, rate, nil)
	got, err := s.WeightsHash(id)
	if err != nil || got != want {
		t.Errorf("the weights are not those of the other order (%v)", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s, _ = open(t, Options{Dir: dir})
	if got, err := s.WeightsHash(id); err != nil || got != want {
		t.Errorf("after a restart the weights are others (%v)", err)
	}
}

func TestAHeldOperationThatNothingOvertakesRunsAtLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := open(t, Options{Faults: rules(t, "reorder:at=1,after=30s")})
		id := c.tiny()
		start := time.Now()
		op := c.post(id, wire.KindOptimStep, `{}`)
		if op.Status != wire.OperationPending {
			t.Errorf("got %s, want PENDING", op.Status)
		}
		c.wait(id, wire.KindOptimStep, op.ID)
		if took := time.Since(start); took < 30*time.Second || took > 31*time.Second {
			t.Errorf("it took %v, want 30s", took)
		}
	})
}

func TestStepsFromZeroAfterAResume(t *testing.T) {
	dir := t.TempDir()
	_, c := open(t, Options{Dir: dir, Faults: rules(t, "step-zero:at=1")})
	r := c.resource(`{"base_model":"sandbox/bytes-tiny"}`)
	first := c.session(`{"model_resources_id":"` + r.ID + `","lora_config":{"rank":2,"seed":5}}`).ID
	step := func(id string) int64 {
		c.loss(id, "", row("hello"))
		var out wire.OptimStepOutput
		c.run(id, wire.KindOptimStep, `{}`, &out)
		return int64(*out.Step)
	}
	step(first)
	step(first)
	var saved wire.TrainingCheckpointOutput
	c.run(first, wire.KindTrainingCheckpoint, "", &saved)
	resume := `{"model_resources_id":"` + r.ID + `","resume_from_checkpoint_id":"` + saved.Checkpoint.ID + `"}`
	zero, plain := c.session(resume).ID, c.session(resume).ID
	if a, b := c.getSession(zero).Step, c.getSession(plain).Step; a != 0 || b != 2 {
		t.Errorf("at first: got %d and %d, want 0 and 2", a, b)
	}
	if a, b := step(zero), step(plain); a != 1 || b != 3 {
		t.Errorf("the next optim-step: got %d and %d, want 1 and 3", a, b)
	}
	// A checkpoint that counts from 0 still carries Adam's own count.
	c.run(zero, wire.KindTrainingCheckpoint, "", &saved)
	third := c.session(`{"model_resources_id":"` + r.ID + `","resume_from_checkpoint_id":"` + saved.Checkpoint.ID + `"}`).ID
	if a, b := step(third), step(plain); a != 2 || b != 4 {
		t.Errorf("resumed from it: got %d and %d, want 2 and 4", a, b)
	}
	s := c.http.(*Server)
	a, err := s.WeightsHash(third)
	b, err2 := s.WeightsHash(plain)
	if err != nil || err2 != nil || a != b {
		t.Errorf("the weights differ by how steps are counted (%v, %v)", err, err2)
	}
}

func TestALaggingStep(t *testing.T) {
	_, c := open(t, Options{Faults: rules(t, "lagging-step:by=2")})
	id := c.tiny()
	for want := range 4 {
		if got := c.getSession(id); int(got.Step) != max(want-2, 0) || int(got.PolicyState.TrainerStep) != want {
			t.Errorf("after %d steps: got %d, trainer_step %d; want %d and %d", want, got.Step, got.PolicyState.TrainerStep, max(want-2, 0), want)
		}
		c.run(id, wire.KindOptimStep, `{}`, nil)
	}
}

func TestCreatesShowUpLateOrTwice(t *testing.T) {
	clock := newHandClock()
	_, c := open(t, Options{Clock: clock, Faults: rules(t, "late-create:after=30s,at=1,on=create-resource", "double-create:at=2,on=creates")})
	list := func(path string) (ids []string) {
		var p wire.Page[struct {
			ID string `json:"id"`
		}]
		c.ok("GET", path, "", &p)
		for _, x := range p.Data {
			ids = append(ids, x.ID)
		}
		return ids
	}
	late := c.resource(`{"base_model":"sandbox/bytes-tiny"}`)
	if ids := list(wire.PathResources); len(ids) != 0 {
		t.Errorf("at once: got %v, want none", ids)
	}
	if got := c.getResource(late.ID); got.Status != wire.ResourceReady {
		t.Errorf("asked for by its id: got %s, want READY", got.Status)
	}
	clock.at = clock.at.Add(30 * time.Second)
	if ids := list(wire.PathResources); len(ids) != 1 || ids[0] != late.ID {
		t.Errorf("after 30s: got %v, want %s", ids, late.ID)
	}
	twice := c.session(`{"model_resources_id":"` + late.ID + `","display_name":"one"}`)
	ids := list(wire.PathSessions)
	if len(ids) != 2 || ids[0] != twice.ID || ids[1] == twice.ID {
		t.Errorf("created twice: got %v, want %s and another", ids, twice.ID)
	}
	if a, b := c.getSession(ids[0]), c.getSession(ids[1]); a.DisplayName != "one" || b.DisplayName != "one" {
		t.Errorf("created twice: got %+v and %+v, want equal names", a, b)
	}
}

func TestARefusedStop(t *testing.T) {
	_, c := open(t, Options{Faults: rules(t, "refuse-stop:at=1", "refuse-stop:at=2,status=409")})
	id := c.tiny()
	stop := wire.PathSessions + "/" + id + "/stop"
	if e := c.refused(400, "POST", stop, ""); *e.Code != "stop_refused" {
		t.Errorf("got %+v, want the code stop_refused", e)
	}
	if got := c.getSession(id).Status; got != wire.SessionRunning {
		t.Errorf("got %s, want RUNNING", got)
	}
	c.refused(409, "POST", stop, "")
	c.ok("POST", stop, "", nil)
}

func TestTheKeyIsWithdrawnInMidRun(t *testing.T) {
	_, c := open(t, Options{Key: "secret", Faults: rules(t, "unauthorized:on=operations,at=2")})
	auth := []string{"Authorization", "Bearer secret"}
	var r wire.Resource
	c.ok("POST", wire.PathResources, `{"base_model":"sandbox/bytes-tiny"}`, &r, auth...)
	var s wire.Session
	c.ok("POST", wire.PathSessions, `{"model_resources_id":"`+r.ID+`"}`, &s, auth...)
	post := func(key string) []string { return append([]string{wire.KeyHeader, key}, auth...) }
	c.ok("POST", opsPath(s.ID, wire.KindOptimStep), `{}`, nil, post("a")...)
	c.refused(401, "POST", opsPath(s.ID, wire.KindOptimStep), `{}`, post("b")...)
	c.ok("POST", opsPath(s.ID, wire.KindOptimStep), `{}`, nil, post("b")...)
}

// Verdicts are in the log: a server that is opened without any faults says and trains the same.
func TestVerdictsSurviveARestart(t *testing.T) {
	dir := t.TempDir()
	o := Options{Dir: dir, Choices: Choices{GradNormalization: "valid_tokens"}}
	o.Faults = rules(t, "fail:on=forward-backward,at=2,leaves=gradient,code=TIMEOUT", "fail:on=optim-step,at=2,leaves=step", "forget-operation:on=optim-step,at=1")
	s, c := open(t, o)
	id := c.tiny()
	var ids []string
	for i := range 3 {
		fb := c.post(id, wire.KindForwardBackward, batch(t, "", row("one row"), row(strings.Repeat("another row ", i+1)))).ID
		opt := c.post(id, wire.KindOptimStep, `{}`).ID
		c.wait(id, wire.KindForwardBackward, fb)
		ids = append(ids, string(wire.KindForwardBackward)+"/"+fb, string(wire.KindOptimStep)+"/"+opt)
	}
	c.wait(id, wire.KindOptimStep, strings.TrimPrefix(ids[5], string(wire.KindOptimStep)+"/"))
	all := func() (out string) {
		for _, op := range ids {
			status, b := c.do("GET", wire.PathSessions+"/"+id+"/operations/"+op, nil)
			out += fmt.Sprintf("%d %s\n", status, b)
		}
		_, b := c.do("GET", wire.PathSessions+"/"+id, nil)
		return out + string(b)
	}
	want := all()
	if strings.Count("\n"+want, "\n404 ") != 1 || strings.Count(want, "_STATUS_FAILED") != 2 {
		t.Fatalf("got\n%s\nwant one that is forgotten and two that FAILED", want)
	}
	weights, err := s.WeightsHash(id)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	// Without its snapshot everything is run again.
	if err := os.Remove(filepath.Join(dir, filepath.FromSlash(snapshotFile(id)))); err != nil {
		t.Fatal(err)
	}
	s, c = open(t, Options{Dir: dir})
	if got := all(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got, err := s.WeightsHash(id); err != nil || got != weights {
		t.Errorf("the weights differ (%v)", err)
	}
}

func TestAHeldOperationIsOvertakenInALaterLife(t *testing.T) {
	rate := `{"adam_params":{"learning_rate":0.01}}`
	want := trainedBy(t, Options{}, func(c *client, id string) {
		c.run(id, wire.KindOptimStep, rate, nil)
		c.loss(id, "", row("hello"))
		c.run(id, wire.KindOptimStep, rate, nil)
	})
	dir := t.TempDir()
	s, c := open(t, Options{Dir: dir, Faults: rules(t, "reorder:on=forward-backward,after=1h")})
	id := c.tiny()
	held := c.post(id, wire.KindForwardBackward, batch(t, "", row("hello")))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s, next := open(t, Options{Dir: dir})
	next.keys = c.keys
	next.run(id, wire.KindOptimStep, rate, nil)
	if op := next.wait(id, wire.KindForwardBackward, held.ID); op.Status != wire.OperationCompleted {
		t.Errorf("the held one: got %+v, want COMPLETED", op)
	}
	next.run(id, wire.KindOptimStep, rate, nil)
	if got, err := s.WeightsHash(id); err != nil || got != want {
		t.Errorf("the weights are not those of the other order (%v)", err)
	}
}

// A snapshot keeps how many tokens the gathered gradient is of.
func TestTheDivisorSurvivesARestart(t *testing.T) {
	rate := `{"adam_params":{"learning_rate":0.01,"grad_clip_norm":0,"eps":0.01}}`
	o := Options{Choices: Choices{GradNormalization: perValidToken}}
	want := trainedBy(t, o, func(c *client, id string) {
		c.loss(id, "", row("hello"))
		c.loss(id, "", row("goodbye"))
		c.run(id, wire.KindOptimStep, rate, nil)
	})
	o.Dir = t.TempDir()
	s, c := open(t, o)
	id := c.tiny()
	c.loss(id, "", row("hello"))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s, next := open(t, o)
	next.keys = c.keys
	next.loss(id, "", row("goodbye"))
	next.run(id, wire.KindOptimStep, rate, nil)
	if got, err := s.WeightsHash(id); err != nil || got != want {
		t.Errorf("the weights differ from those of one life (%v)", err)
	}
}
