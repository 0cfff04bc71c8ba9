package sandbox

import (
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"trainer/internal/wire"
)

// inFlight is a request whose completions are longer than pipelineTokens.
var inFlight = prompt(`,"num_samples":3,"sampling_params":{"max_tokens":30}`, "hello", "there")

const pipeline = `{"weight_sync_type":"WEIGHT_SYNC_TYPE_PIPELINE"}`

// result is what became of a sample.
func (c *client) result(session, id string) (out wire.SampleOutput) {
	c.t.Helper()
	op := c.wait(session, wire.KindSample, id)
	if op.Status != wire.OperationCompleted || json.Unmarshal(*op.Output, &out) != nil {
		c.t.Fatalf("got %+v", op)
	}
	return out
}

func versions(out wire.SampleOutput) []wire.PolicySegment { return out.Results[0].PolicySegments }

var (
	ofBoth = []wire.PolicySegment{{}, {Version: 2, StartToken: pipelineTokens}}
	ofOne  = []wire.PolicySegment{{}}
)

func TestASampleInFlightGoesOverToThePipelinedWeights(t *testing.T) {
	_, c := open(t, Options{})
	a, b := c.tiny(), c.tiny()
	op := c.post(a, wire.KindSample, inFlight)
	c.learn(a, 2, row("hello there"))
	c.run(a, wire.KindWeightsSync, pipeline, nil)
	got, alone := c.result(a, op.ID), c.sample(b, inFlight)
	for i, r := range got.Results {
		if !slices.Equal(r.PolicySegments, ofBoth) {
			t.Errorf("prompt %d: segments %+v, want %+v", i, r.PolicySegments, ofBoth)
		}
		for n, seq := range r.Sequences {
			old := alone.Results[i].Sequences[n]
			if !slices.Equal(seq.Tokens[:pipelineTokens], old.Tokens[:pipelineTokens]) || !slices.Equal(seq.Logprobs[:pipelineTokens], old.Logprobs[:pipelineTokens]) {
				t.Errorf("prompt %d, completion %d: the beginning is not of version 0", i, n)
			}
			if want := c.scoresOf(a, []string{"hello", "there"}[i], seq); !slices.Equal(narrow([][]float64{seq.Logprobs[pipelineTokens:]})[0], narrow([][]float64{want[pipelineTokens:]})[0]) {
				t.Errorf("prompt %d, completion %d: the end has %v, version 2 gives %v", i, n, seq.Logprobs[pipelineTokens:], want[pipelineTokens:])
			}
		}
	}
	if got := versions(c.sample(a, inFlight)); !slices.Equal(got, []wire.PolicySegment{{Version: 2}}) {
		t.Errorf("behind the weights-sync: got %+v", got)
	}
}

// scoresOf are the trainer's log-probabilities of a completion's tokens.
func (c *client) scoresOf(session, prompt string, seq wire.SampledSequence) []float64 {
	all := row(prompt + ".").Tokens // those of the prompt
	for _, id := range seq.Tokens {
		all = append(all, int32(id))
	}
	n := len(all) - 1
	lp := c.scores(session, wire.Sample{Tokens: all[:n], Targets: all[1:]})[0]
	return lp[n-len(seq.Tokens):]
}

// What ends a sample's flight is order, and nothing of the machine.
func TestWhatIsNotInFlightKeepsItsWeights(t *testing.T) {
	sync := func(mode wire.WeightSyncType) func(c *client, id, sample string) {
		return func(c *client, id, _ string) { c.sync(id, mode) }
	}
	for name, between := range map[string]func(c *client, id, sample string){
		"told of":                        func(c *client, id, sample string) { c.result(id, sample) },
		"behind a synchronous publish":   sync(wire.SyncSynchronous),
		"behind a publish in background": sync(wire.SyncBackgroundPublish),
		"behind a pipelined one":         sync(wire.SyncPipeline), // which has no other weights to offer
		"long ago": func(c *client, id, _ string) {
			for range flightOps {
				c.post(id, wire.KindSample, prompt(`,"sampling_params":{"max_tokens":1}`, "x"))
			}
		},
	} {
		_, c := open(t, Options{})
		id := c.tiny()
		op := c.post(id, wire.KindSample, inFlight)
		between(c, id, op.ID)
		c.learn(id, 2, row("hello there"))
		c.run(id, wire.KindWeightsSync, pipeline, nil)
		if got := versions(c.result(id, op.ID)); !slices.Equal(got, ofOne) {
			t.Errorf("%s: got %+v, want version 0 alone", name, got)
		}
	}
	_, c := open(t, Options{Faults: rules(t, "fail:on=weights-sync,at=1")})
	id := c.tiny()
	op := c.post(id, wire.KindSample, inFlight)
	c.learn(id, 2, row("hello there"))
	c.wait(id, wire.KindWeightsSync, c.post(id, wire.KindWeightsSync, pipeline).ID)
	if got := versions(c.result(id, op.ID)); !slices.Equal(got, ofOne) {
		t.Errorf("the publish failed: got %+v, want version 0 alone", got)
	}
}

// A first sync takes a sample over, a second one does not; and a stop leaves nothing open.
func TestASampleIsTakenOverOnce(t *testing.T) {
	s, c := open(t, Options{})
	id := c.tiny()
	op := c.post(id, wire.KindSample, inFlight)
	for range 2 {
		c.learn(id, 2, row("hello there"))
		c.run(id, wire.KindWeightsSync, pipeline, nil)
	}
	open := c.post(id, wire.KindSample, inFlight)
	for begun := false; !begun; time.Sleep(time.Millisecond) {
		s.mu.Lock()
		begun = s.state.operations[open.ID].begun // what has not is cancelled
		s.mu.Unlock()
	}
	c.ok("POST", wire.PathSessions+"/"+id+"/stop", "", nil)
	if got := versions(c.result(id, op.ID)); !slices.Equal(got, ofBoth) {
		t.Errorf("got %+v, want %+v", got, ofBoth)
	}
	if got := versions(c.result(id, open.ID)); !slices.Equal(got, []wire.PolicySegment{{Version: 4}}) {
		t.Errorf("the one at the stop: got %+v", got)
	}
	if st := c.getSession(id).Status; st != wire.SessionStopped {
		t.Errorf("the session is %s", st)
	}
}

// The same order gives the same answers on any number of cores, waiting for each trainer operation or for none.
func TestWhatGoesOverDoesNotDependOnTheMachine(t *testing.T) {
	run := func(cores int, wait bool) (outputs []string) {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cores))
		_, c := open(t, Options{})
		id := c.tiny()
		var ops []string
		post := func(kind wire.Kind, body string) {
			op := c.post(id, kind, body)
			if kind == wire.KindSample {
				ops = append(ops, op.ID)
			} else if wait {
				c.wait(id, kind, op.ID)
			}
		}
		for range 3 {
			post(wire.KindSample, inFlight)
			post(wire.KindForwardBackward, batch(t, "", row("hello there")))
			post(wire.KindSample, inFlight)
			post(wire.KindOptimStep, `{"adam_params":{"learning_rate":0.01}}`)
			post(wire.KindWeightsSync, pipeline)
		}
		for i, op := range ops {
			out := c.result(id, op)
			if got := versions(out); len(got) != 2 || got[0].Version != int64(i/2) || got[1].Version != int64(i/2)+1 {
				t.Errorf("sample %d: got %+v", i, got)
			}
			outputs = append(outputs, fmt.Sprint(out))
		}
		return outputs
	}
	want := run(1, false)
	if got := run(1, true); !slices.Equal(got, want) {
		t.Error("waiting for each operation changed a sample")
	}
	if got := run(max(2, runtime.NumCPU()), false); !slices.Equal(got, want) {
		t.Error("more cores changed a sample")
	}
}

func TestWhatGoesOverIsTheSameAfterARestart(t *testing.T) {
	start := func(c *client) (session, op string) {
		session = c.tiny()
		return session, c.post(session, wire.KindSample, inFlight).ID
	}
	finish := func(c *client, session string) {
		c.learn(session, 2, row("hello there"))
		c.run(session, wire.KindWeightsSync, pipeline, nil)
		c.learn(session, 1, row("hello there"))
	}
	_, c := open(t, Options{})
	session, op := start(c)
	finish(c, session)
	want := fmt.Sprint(c.result(session, op))
	for _, when := range []string{"before the sync", "behind it", "behind its telling"} {
		dir := t.TempDir()
		s, c := open(t, Options{Dir: dir})
		s.every = 1
		session, op := start(c)
		again := func() {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			keys := c.keys
			s, c = open(t, Options{Dir: dir})
			c.keys = keys
		}
		if when == "before the sync" {
			again()
		}
		finish(c, session)
		if when == "behind its telling" {
			c.result(session, op)
		}
		if when != "before the sync" {
			again()
		}
		if got := fmt.Sprint(c.result(session, op)); got != want {
			t.Errorf("restarted %s: got %s, want %s", when, got, want)
		}
	}
}

// An answer is told when the disk has it: no power cut can leave a later weights-sync to take over what was told.
func TestAToldSampleIsOnTheDisk(t *testing.T) {
	s, c := open(t, Options{Dir: t.TempDir()})
	id := c.tiny()
	op := c.post(id, wire.KindSample, inFlight).ID
	c.result(id, op)
	s.mu.Lock()
	mark := s.state.operations[op].mark
	s.mu.Unlock()
	if durable := s.store.(*disk).durable.Load(); mark == 0 || durable < mark {
		t.Errorf("the disk has %d bytes of the log, the answer's record ends at %d", durable, mark)
	}
}

// A sample with a time of its own ends when that is over, and goes over to what is published before.
func TestASampleGoesOverWithinItsTime(t *testing.T) {
	clock := &movedClock{}
	_, c := open(t, Options{Clock: clock, OpTime: OpTime{wire.KindSample: {Base: 100 * time.Second}, wire.KindWeightsSync: {Base: 30 * time.Second}}})
	await := func(id string, kind wire.Kind, op string, want wire.OperationStatus) {
		t.Helper()
		for {
			var got wire.Operation[json.RawMessage]
			c.ok("GET", opsPath(id, kind)+"/"+op, "", &got)
			if got.Status == want {
				return
			}
			if got.Status.Final() {
				t.Fatalf("%s is %s, want %s", kind, got.Status, want)
			}
			time.Sleep(time.Millisecond)
		}
	}
	id := c.tiny()
	early, late := c.post(id, wire.KindSample, inFlight).ID, ""
	clock.move(50 * time.Second)
	c.learn(id, 2, row("hello there"))
	sync := c.post(id, wire.KindWeightsSync, pipeline).ID // until 80 s
	await(id, wire.KindSample, early, wire.OperationRunning)
	clock.move(31 * time.Second)
	await(id, wire.KindWeightsSync, sync, wire.OperationCompleted)
	await(id, wire.KindSample, early, wire.OperationRunning)
	clock.move(20 * time.Second)
	await(id, wire.KindSample, early, wire.OperationCompleted)
	if got := versions(c.result(id, early)); !slices.Equal(got, ofBoth) {
		t.Errorf("published within its time: got %+v, want %+v", got, ofBoth)
	}

	late = c.post(id, wire.KindSample, inFlight).ID
	clock.move(90 * time.Second)
	c.learn(id, 1, row("hello there"))
	sync = c.post(id, wire.KindWeightsSync, pipeline).ID // ends 20 s behind the sample
	clock.move(15 * time.Second)
	await(id, wire.KindSample, late, wire.OperationCompleted)
	await(id, wire.KindWeightsSync, sync, wire.OperationRunning)
	if got := versions(c.result(id, late)); !slices.Equal(got, []wire.PolicySegment{{Version: 2}}) {
		t.Errorf("published behind its time: got %+v, want version 2 alone", got)
	}
	clock.move(time.Minute)
	await(id, wire.KindWeightsSync, sync, wire.OperationCompleted)
}

func TestASampleThatNobodyAsksForKeepsNothingAlive(t *testing.T) {
	clock := &movedClock{}
	s, c := open(t, Options{Clock: clock})
	r := c.resource(`{"base_model":"sandbox/bytes-tiny"}`)
	id := c.session(`{"model_resources_id":"` + r.ID + `"}`).ID
	op := c.post(id, wire.KindSample, inFlight).ID
	s.mu.Lock()
	sess := s.state.sessions.byID[id]
	s.mu.Unlock()
	for {
		s.mu.Lock()
		busy := sess.busy()
		s.mu.Unlock()
		if !busy {
			break
		}
		time.Sleep(time.Millisecond)
	}
	clock.move(2 * time.Hour)
	if st := c.getResource(r.ID).Status; st != wire.ResourceStopped {
		t.Errorf("the resource is %s", st)
	}
	c.result(id, op)
}
