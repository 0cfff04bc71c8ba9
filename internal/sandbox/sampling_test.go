package sandbox

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"trainer/internal/wire"
)

// prompt is the body of a sample of texts in bytes; more are further members.
func prompt(more string, texts ...string) string {
	var inputs []string
	for _, text := range texts {
		var ids []string
		for _, b := range []byte(text) {
			ids = append(ids, fmt.Sprint(b))
		}
		inputs = append(inputs, `{"chunks":[{"encoded_text":{"tokens":[`+strings.Join(ids, ",")+`]}}]}`)
	}
	return `{"model_inputs":[` + strings.Join(inputs, ",") + `]` + more + `}`
}

func (c *client) sample(session, body string) wire.SampleOutput {
	c.t.Helper()
	var out wire.SampleOutput
	c.run(session, wire.KindSample, body, &out)
	return out
}

func (c *client) sync(session string, mode wire.WeightSyncType) {
	c.t.Helper()
	c.run(session, wire.KindWeightsSync, `{"weight_sync_type":"`+string(mode)+`"}`, nil)
}

func (c *client) learn(session string, steps int, rows ...wire.Sample) {
	c.t.Helper()
	for range steps {
		c.loss(session, "", rows...)
		c.run(session, wire.KindOptimStep, `{"adam_params":{"learning_rate":0.01}}`, nil)
	}
}

func textOf(s wire.SampledSequence) string {
	var b []byte
	for _, id := range s.Tokens {
		b = append(b, byte(id))
	}
	return string(b)
}

const greedyOf = `,"sampling_params":{"temperature":0,"max_tokens":%d}`

func TestAfterTrainingGreedyGivesTheTrainedContinuation(t *testing.T) {
	_, c := open(t, Options{})
	id := c.tiny()
	c.learn(id, 60, row("the capital of france is paris"))
	ask := prompt(fmt.Sprintf(greedyOf, 5), "the capital of france is ")
	before := c.sample(id, ask)
	c.sync(id, wire.SyncSynchronous)
	after := c.sample(id, ask)
	if got := textOf(after.Results[0].Sequences[0]); got != "paris" {
		t.Errorf("got %q, want paris", got)
	}
	if got := before.Results[0].PolicySegments; !slices.Equal(got, []wire.PolicySegment{{}}) {
		t.Errorf("before the sync: got versions %+v, want 0 alone", got)
	}
	if got := after.Results[0].PolicySegments; !slices.Equal(got, []wire.PolicySegment{{Version: 60}}) {
		t.Errorf("after the sync: got versions %+v, want 60 alone", got)
	}
	if fmt.Sprint(before.Results[0].Sequences) == fmt.Sprint(after.Results[0].Sequences) {
		t.Error("the sync changed nothing")
	}
}

func TestSampledLogprobsAreTheTrainersOwn(t *testing.T) {
	for _, base := range []string{"sandbox/bytes-tiny", "Qwen/Qwen3-8B"} {
		_, c := open(t, Options{})
		r := c.resource(`{"base_model":"` + base + `"}`)
		id := c.session(`{"model_resources_id":"` + r.ID + `","lora_config":{"rank":4}}`).ID
		c.learn(id, 2, row("some text"))
		c.sync(id, wire.SyncSynchronous)
		out := c.sample(id, prompt(`,"num_samples":2,"prompt_logprobs":true,"topk_prompt_logprobs":3,"sampling_params":{"max_tokens":12}`, "some", "te"))
		for i, text := range []string{"some", "te"} {
			for k, s := range out.Results[i].Sequences {
				all := []int32{}
				for _, b := range []byte(text) {
					all = append(all, int32(b))
				}
				for _, id := range s.Tokens {
					all = append(all, int32(id))
				}
				x := wire.Sample{Tokens: all[:len(all)-1], Targets: all[1:]}
				for range x.Tokens {
					x.Weights = append(x.Weights, 1)
				}
				want := c.loss(id, `,"forward_only":true,"return_loss_fn_outputs":true`, x).Logprobs[0]
				if got := slices.Concat(out.Results[i].PromptLogprobs[1:], s.Logprobs); !slices.Equal(narrow([][]float64{got})[0], narrow([][]float64{want})[0]) {
					t.Errorf("%s, prompt %d, sequence %d: got %v, want %v", base, i, k, got, want)
				}
				if hit := s.PromptCacheHitTokens; hit != k*len(text) {
					t.Errorf("sequence %d: %d tokens from the cache", k, hit)
				}
			}
			top := out.Results[i].TopLogprobs
			if len(top) != len(text) || len(top[0].TokenIDs) != 0 || len(top[1].TokenIDs) != 3 || top[1].Logprobs[0] < top[1].Logprobs[2] {
				t.Errorf("alternatives: got %+v", top)
			}
		}
	}
}

func TestTheSameSampleIsTheSameWhoeverAsks(t *testing.T) {
	s, c := open(t, Options{})
	a, b := c.tiny(), c.tiny()
	ask := prompt(`,"num_samples":3,"sampling_params":{"max_tokens":10}`, "one", "two", "one")
	first := c.sample(a, ask)
	if got := c.sample(b, ask); fmt.Sprint(got) != fmt.Sprint(first) {
		t.Error("another session with the same weights got other tokens")
	}
	s.inline = 100
	large := c.sample(a, ask)
	if large.PayloadID == "" || large.Results != nil {
		t.Fatalf("got %+v, want it stored outside", large)
	}
	var down wire.DownloadURL
	c.ok("POST", wire.PathSessions+"/"+a+"/payloads/"+large.PayloadID+"/download-url", "", &down)
	_, bytes := c.do("GET", down.DownloadURL, nil)
	var outside wire.SampleOutput
	if err := json.Unmarshal(bytes, &outside); err != nil || fmt.Sprint(outside) != fmt.Sprint(first) {
		t.Errorf("what is stored outside differs (%v)", err)
	}
	if fmt.Sprint(first.Results[0]) == fmt.Sprint(first.Results[2]) {
		t.Error("equal prompts of a call have the same completions")
	}
}

func TestAnUploadedSampleIsTheInlineOne(t *testing.T) {
	_, c := open(t, Options{})
	id := c.tiny()
	whole := prompt(`,"num_samples":2,"sampling_params":{"max_tokens":4}`, "a prompt that is longer than eight tokens")
	var up wire.UploadURL
	c.ok("POST", wire.PathSessions+"/"+id+"/payloads/upload-url", "", &up)
	c.ok("PUT", up.UploadURL, whole, nil)
	got := c.sample(id, prompt(`,"num_samples":2,"payload_id":"`+up.PayloadID+`"`, "a prompt"))
	if want := c.sample(id, whole); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestStops(t *testing.T) {
	_, c := open(t, Options{})
	id := c.tiny()
	const end = 257
	taught := row("say abcdef")
	taught.Tokens, taught.Targets, taught.Weights = append(taught.Tokens, 'f'), append(taught.Targets, end), append(taught.Weights, 1)
	c.learn(id, 60, taught)
	c.sync(id, wire.SyncSynchronous)
	ask := func(c *client, stop string) wire.SampledSequence {
		return c.sample(id, prompt(`,"sampling_params":{"temperature":0,"max_tokens":20`+stop+`}`, "say ")).Results[0].Sequences[0]
	}
	if got := ask(c, ""); len(got.Tokens) != 7 || got.Tokens[6] != end || got.StopReason != wire.StopStop {
		t.Errorf("the end token: got %+v, want abcdef and the end", got)
	}
	if got := ask(c, `,"stop":["x","cd"]`); textOf(got) != "abcd" || got.StopReason != wire.StopStop {
		t.Errorf("a stop text: got %q, %s", textOf(got), got.StopReason)
	}
	if got := ask(c, `,"stop":["xyz"],"top_k":-1,"top_p":1`); len(got.Tokens) != 7 {
		t.Errorf("a stop text that never comes: got %+v", got)
	}
	cut := c.sample(id, prompt(`,"sampling_params":{"temperature":0,"max_tokens":3}`, "say ")).Results[0].Sequences[0]
	if textOf(cut) != "abc" || cut.StopReason != wire.StopLength {
		t.Errorf("three tokens: got %q, %s", textOf(cut), cut.StopReason)
	}
}

func TestChoicesOfSampling(t *testing.T) {
	_, c := open(t, Options{Choices: Choices{StopToken: stopDropped, SampledLogprobs: afterTemperature}})
	id := c.tiny()
	c.learn(id, 60, row("say abcdef"))
	c.sync(id, wire.SyncSynchronous)
	got := c.sample(id, prompt(`,"sampling_params":{"temperature":0,"max_tokens":20,"stop":["cd"]}`, "say ")).Results[0].Sequences[0]
	if textOf(got) != "ab" || len(got.Logprobs) != 2 || got.StopReason != wire.StopStop {
		t.Errorf("got %q with %v, %s: want ab without its stop", textOf(got), got.Logprobs, got.StopReason)
	}
	if got.Logprobs[0] != 0 {
		t.Errorf("greedy tokens have the log-probability %v, want 0", got.Logprobs[0])
	}
}

// What is accepted behind a weights-sync is of its weights, however it publishes, and whether the generators serve them yet.
func TestTheThreeWaysOfPublishing(t *testing.T) {
	ask := prompt(fmt.Sprintf(greedyOf, 12), "hello")
	for _, mode := range []wire.WeightSyncType{wire.SyncSynchronous, wire.SyncBackgroundPublish, wire.SyncPipeline} {
		clock := newHandClock()
		_, c := open(t, Options{Clock: clock})
		id := c.tiny()
		c.learn(id, 2, row("hello there"))
		if got := c.sample(id, ask).Results[0].PolicySegments; !slices.Equal(got, []wire.PolicySegment{{}}) {
			t.Errorf("%s, before: got %+v", mode, got)
		}
		c.sync(id, mode)
		for range 2 {
			if got := c.sample(id, ask).Results[0].PolicySegments; !slices.Equal(got, []wire.PolicySegment{{Version: 2}}) {
				t.Errorf("%s, behind: got %+v", mode, got)
			}
			clock.at = clock.at.Add(2 * publishLag)
		}
	}
}

func TestSamplesRunBesideTrainingUnderTheWeightsOfTheirPlace(t *testing.T) {
	s, c := open(t, Options{})
	ask := prompt(`,"num_samples":8,"sampling_params":{"max_tokens":60}`, "hello", "there")
	run := func(id string, wait bool) (outputs []string) {
		var ops []wire.Operation[json.RawMessage]
		post := func(kind wire.Kind, body string) {
			op := c.post(id, kind, body)
			if kind == wire.KindSample {
				ops = append(ops, op)
			}
			if wait {
				c.wait(id, kind, op.ID)
			}
		}
		for range 4 {
			post(wire.KindSample, ask)
			post(wire.KindForwardBackward, batch(t, "", row("hello there")))
			post(wire.KindOptimStep, `{"adam_params":{"learning_rate":0.01}}`)
			post(wire.KindSample, ask)
			post(wire.KindWeightsSync, `{"weight_sync_type":"WEIGHT_SYNC_TYPE_SYNCHRONOUS"}`)
		}
		for _, op := range ops {
			outputs = append(outputs, string(*c.wait(id, wire.KindSample, op.ID).Output))
		}
		return outputs
	}
	a, b := c.tiny(), c.tiny()
	if got, want := run(a, false), run(b, true); !slices.Equal(got, want) {
		t.Error("samples in flight differ from those that were waited for")
	}
	got, want := hashes(t, s, []string{a}), hashes(t, s, []string{b})
	if !slices.Equal(got, want) {
		t.Error("sampling changed the training")
	}
}

func TestAnIncompatibleSampleIsRefusedOrFails(t *testing.T) {
	_, c := open(t, Options{})
	none := c.resource(`{"base_model":"sandbox/bytes-tiny","compute_config":{"num_generator_replicas":0}}`)
	id := c.session(`{"model_resources_id":"` + none.ID + `"}`).ID
	if e := c.refused(400, "POST", opsPath(id, wire.KindSample), prompt("", "x"), wire.KeyHeader, "k"); e.Code == nil || *e.Code != "no_generators" {
		t.Errorf("without generators: got %+v", e)
	}
	c.loss(id, "", row("hello"))
	c.run(id, wire.KindOptimStep, `{}`, nil)
	two := c.resource(`{"base_model":"sandbox/bytes-tiny","compute_config":{"num_generator_replicas":2}}`)
	id = c.session(`{"model_resources_id":"` + two.ID + `"}`).ID
	op := c.wait(id, wire.KindSample, c.post(id, wire.KindSample, prompt(`,"sampling_params":{"seed":"3"}`, "x")).ID)
	if op.Error == nil || op.Error.Code != wire.CodeInternalError {
		t.Errorf("a seed with two replicas: got %+v, want INTERNAL_ERROR", op)
	}
	one := c.tiny()
	seeded := func(seed string) string {
		return fmt.Sprint(c.sample(one, prompt(`,"sampling_params":{"max_tokens":9,"seed":`+seed+`}`, "x")))
	}
	if seeded(`"3"`) != seeded(`3`) || seeded(`3`) == seeded(`4`) {
		t.Error("a seed does not decide the draws")
	}
}

func TestASampleUnderWeightsThatAreNotFiniteFails(t *testing.T) {
	var said []string
	_, c := open(t, Options{Log: func(format string, a ...any) { said = append(said, fmt.Sprintf(format, a...)) }})
	id := c.tiny()
	c.loss(id, "", row("hello"))
	c.run(id, wire.KindOptimStep, `{"adam_params":{"learning_rate":1e308,"grad_clip_norm":0}}`, nil)
	c.sync(id, wire.SyncSynchronous)
	op := c.wait(id, wire.KindSample, c.post(id, wire.KindSample, prompt(`,"prompt_logprobs":true`, "hello")).ID)
	if op.Status != wire.OperationFailed || op.Error.Code != wire.CodeInternalError || op.Error.Message != notFinite {
		t.Errorf("got %+v", op)
	}
	if len(said) > 0 {
		t.Errorf("it is no fault of the server: %q", said)
	}
}

func TestMalformedSamplesAreRefusedByName(t *testing.T) {
	_, c := open(t, Options{})
	id := c.tiny()
	params := func(p string) string { return prompt(`,"sampling_params":{`+p+`}`, "x") }
	for i, tt := range []struct{ name, body, param string }{
		{"no body", ``, ""},
		{"no prompts", `{}`, "model_inputs"},
		{"an empty list of prompts", `{"model_inputs":[]}`, "model_inputs"},
		{"an empty prompt", prompt("", "x", ""), "model_inputs[1]"},
		{"a prompt as long as the context", prompt("", strings.Repeat("x", 2048)), "model_inputs[0]"},
		{"a token outside of the vocabulary", `{"model_inputs":[{"chunks":[{"encoded_text":{"tokens":[272]}}]}]}`, "model_inputs[0]"},
		{"a token that is a fraction", `{"model_inputs":[{"chunks":[{"encoded_text":{"tokens":[1.5]}}]}]}`, "model_inputs[0].chunks[0].encoded_text.tokens[0]"},
		{"too many prompts", prompt("", slices.Repeat([]string{"x"}, maxPrompts+1)...), "model_inputs[512]"},
		{"no samples", prompt(`,"num_samples":0`, "x"), "num_samples"},
		{"half a sample", prompt(`,"num_samples":0.5`, "x"), "num_samples"},
		{"too many samples", prompt(`,"num_samples":1025`, "x"), "num_samples"},
		{"too many sequences", prompt(`,"num_samples":1024`, "a", "b", "c", "d", "e"), "num_samples"},
		{"a flag that is a number", prompt(`,"prompt_logprobs":1`, "x"), "prompt_logprobs"},
		{"too many alternatives", prompt(`,"topk_prompt_logprobs":21`, "x"), "topk_prompt_logprobs"},
		{"parameters that are text", prompt(`,"sampling_params":"hot"`, "x"), "sampling_params"},
		{"no tokens", params(`"max_tokens":0`), "sampling_params.max_tokens"},
		{"more tokens than the context has", params(`"max_tokens":2048`), "sampling_params.max_tokens"},
		{"a negative temperature", params(`"temperature":-1`), "sampling_params.temperature"},
		{"a temperature that is text", params(`"temperature":"hot"`), "sampling_params.temperature"},
		{"a top_p of 0", params(`"top_p":0`), "sampling_params.top_p"},
		{"a top_p above 1", params(`"top_p":1.1`), "sampling_params.top_p"},
		{"a top_k of -2", params(`"top_k":-2`), "sampling_params.top_k"},
		{"a stop that is text", params(`"stop":"x"`), "sampling_params.stop"},
		{"a stop that is empty", params(`"stop":[""]`), "sampling_params.stop[0]"},
		{"a stop that is a token", params(`"stop":[5]`), "sampling_params.stop[0]"},
		{"a seed that is text", params(`"seed":"x"`), "sampling_params.seed"},
		{"a payload that does not exist", prompt(`,"payload_id":"x"`, "x"), "payload_id"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := &client{t: t, http: c.http}
			want := 400
			if tt.param == "payload_id" {
				want = 404
			}
			e := c.refused(want, "POST", opsPath(id, wire.KindSample), tt.body, wire.KeyHeader, fmt.Sprint("malformed ", i))
			param := ""
			if e.Param != nil {
				param = *e.Param
			}
			if param != tt.param || want == 400 && !strings.Contains(e.Message, lastPart(tt.param)) {
				t.Errorf("got %q (%s), want %q", param, e.Message, tt.param)
			}
		})
	}
	if got := c.sample(id, prompt(`,"new":1,"num_samples":null,"sampling_params":{"max_tokens":2,"new":[1],"stop":null}`, "x")); len(got.Results) != 1 {
		t.Errorf("unknown members: got %+v", got)
	}
}

func TestMuonAndDropoutTrainTheSameAfterARestart(t *testing.T) {
	for _, strategy := range []wire.MuonScalingStrategy{wire.MuonMatchAdam, wire.MuonOriginal} {
		train := func(c *client, id string, from, to int) {
			for i := from; i < to; i++ {
				c.loss(id, "", row("the first half"))
				c.loss(id, "", row("the second half"))
				c.run(id, wire.KindOptimStep, `{"muon_params":{"learning_rate":0.01,"adam":{"learning_rate":0.003}}}`, nil)
			}
			c.loss(id, "", row("and a gradient in between"))
		}
		session := func(c *client) string {
			r := c.resource(`{"base_model":"sandbox/bytes-tiny","optimizer_config":{"muon":{"scaling_strategy":"` + string(strategy) + `"}}}`)
			if got := r.OptimizerConfig; got.Adam != nil || got.Muon == nil || got.Muon.ScalingStrategy != strategy {
				t.Errorf("optimizer_config: got %+v, want %s", got, strategy)
			}
			s := c.session(`{"model_resources_id":"` + r.ID + `","lora_config":{"rank":4,"dropout":0.2,"seed":3}}`)
			if s.LoRAConfig.Dropout != 0.2 {
				t.Errorf("dropout: got %v", s.LoRAConfig.Dropout)
			}
			return s.ID
		}
		s, c := open(t, Options{})
		unbroken := session(c)
		train(c, unbroken, 0, 3)
		train(c, unbroken, 3, 6)
		want := hashes(t, s, []string{unbroken})
		dir := t.TempDir()
		s, c = open(t, Options{Dir: dir})
		s.every = 5
		id := session(c)
		train(c, id, 0, 3)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s, c = open(t, Options{Dir: dir})
		c.keys = 100
		train(c, id, 3, 6)
		if got := hashes(t, s, []string{id}); !slices.Equal(got, want) {
			t.Errorf("%s: other weights after a restart", strategy)
		}
		c.refused(400, "POST", opsPath(id, wire.KindOptimStep), `{"adam_params":{}}`, wire.KeyHeader, "adam")
		var saved wire.TrainingCheckpointOutput
		c.run(id, wire.KindTrainingCheckpoint, "", &saved)
		adam := c.resource(`{"base_model":"sandbox/bytes-tiny"}`).ID
		resume := `{"model_resources_id":"` + adam + `","resume_from_checkpoint_id":"` + saved.Checkpoint.ID + `"`
		c.refused(400, "POST", wire.PathSessions, resume+`}`)
		if got := c.session(resume + `,"load_optimizer":false}`).LoRAConfig.Dropout; got != 0.2 {
			t.Errorf("a session that resumes has the dropout %v, want that of the checkpoint", got)
		}
	}
}

func TestScoringDropsNothing(t *testing.T) {
	_, c := open(t, Options{})
	r := c.resource(`{"base_model":"sandbox/bytes-tiny"}`)
	session := func(dropout string) string {
		return c.session(`{"model_resources_id":"` + r.ID + `","lora_config":{"rank":4,"seed":3` + dropout + `}}`).ID
	}
	dropping, plain := session(`,"dropout":0.5`), session(``)
	x := row("something to score")
	c.learn(dropping, 2, x)
	if a, b := c.loss(dropping, `,"forward_only":true`, x), c.loss(dropping, `,"forward_only":true`, x); *a.Loss != *b.Loss {
		t.Errorf("scoring twice gives %v and %v", *a.Loss, *b.Loss)
	}
	a, b := c.loss(dropping, "", x), c.loss(dropping, "", x)
	if *a.Loss == *b.Loss {
		t.Error("two gradients of a step drop the same")
	}
	c.learn(plain, 2, x)
	if a, b := c.loss(dropping, `,"forward_only":true`, x), c.loss(plain, `,"forward_only":true`, x); *a.Loss == *b.Loss {
		t.Error("dropout changed nothing")
	}
}

func TestASampleInFlightAtTheEndIsSampledAgain(t *testing.T) {
	dir := t.TempDir()
	s, c := open(t, Options{Dir: dir, OpTime: OpTime{wire.KindSample: {Base: time.Hour}}})
	s.every = 1
	id := c.tiny()
	ask := prompt(`,"num_samples":2,"sampling_params":{"max_tokens":9}`, "hello")
	early := c.post(id, wire.KindSample, ask) // ends in an hour
	c.learn(id, 2, row("hello there"))
	c.run(id, wire.KindWeightsSync, `{"weight_sync_type":"WEIGHT_SYNC_TYPE_BACKGROUND_PUBLISH"}`, nil)
	c.learn(id, 1, row("hello there"))
	late := c.post(id, wire.KindSample, ask)
	want := hashes(t, s, []string{id})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s, c = open(t, Options{Dir: dir})
	var a, b wire.SampleOutput
	for out, op := range map[*wire.SampleOutput]string{&a: early.ID, &b: late.ID} {
		if err := json.Unmarshal(*c.wait(id, wire.KindSample, op).Output, out); err != nil {
			t.Fatal(err)
		}
	}
	if a.Results[0].PolicySegments[0].Version != 0 || b.Results[0].PolicySegments[0].Version != 2 {
		t.Errorf("got versions %+v and %+v, want 0 and 2", a.Results[0].PolicySegments, b.Results[0].PolicySegments)
	}
	other := c.tiny()
	c.keys = 100
	if got := c.sample(other, ask); fmt.Sprint(got) != fmt.Sprint(a) {
		t.Error("the early sample is not one of the first weights")
	}
	if got := hashes(t, s, []string{id}); !slices.Equal(got, want) {
		t.Error("other weights after the restart")
	}
}

func TestASampleIsNeverPartOfWhatReplays(t *testing.T) {
	dir := t.TempDir()
	s, c := open(t, Options{Dir: dir})
	id := c.tiny()
	c.learn(id, 2, row("hello there"))
	c.sync(id, wire.SyncSynchronous)
	ask := prompt(`,"num_samples":2,"sampling_params":{"max_tokens":9}`, "hello")
	want := c.sample(id, ask)
	c.learn(id, 2, row("hello there"))
	if err := s.Close(); err != nil { // writes a snapshot, with the weights that are served
		t.Fatal(err)
	}
	_, c = open(t, Options{Dir: dir})
	c.keys = 100
	if got := c.sample(id, ask); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("after a restart: got %v, want %v", got, want)
	}
	if got := c.getSession(id).PolicyState; got.AppliedWeightsVersion != 2 || got.TrainerStep != 4 {
		t.Errorf("policy_state: got %+v", got)
	}
}

func TestSampleBodiesInPartsAreRead(t *testing.T) {
	q, err := wire.DecodeSample(bytes.NewReader([]byte(`{"model_inputs":[{"chunks":[{"encoded_text":{"tokens":[1,"2"]}},{"encoded_text":{"tokens":[3]}}]}]}`)), 0)
	if err != nil || !slices.Equal(q.Inputs[0], []int32{1, 2, 3}) {
		t.Errorf("got %+v, %v", q, err)
	}
}
