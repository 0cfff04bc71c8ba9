package together

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"trainer/internal/download"
	"trainer/internal/rollout"
	"trainer/internal/wire"
	"trainer/loss"
	"trainer/recipe"
	"trainer/runner"
)

// capture is one recorded call of the official client; the files are those of internal/wire.
type capture struct {
	Exchanges []exchange `json:"exchanges"`
}

type exchange struct {
	Method          string            `json:"method"`
	Path            string            `json:"path"`
	Query           [][2]string       `json:"query"`
	Headers         map[string]string `json:"headers"`
	RequestBody     json.RawMessage   `json:"request_body"`
	ResponseStatus  int               `json:"response_status"`
	ResponseHeaders map[string]string `json:"response_headers"`
	ResponseBody    json.RawMessage   `json:"response_body"`
}

const testBase = "http://replay.test"

func read(t *testing.T, name string) []exchange {
	t.Helper()
	b, err := os.ReadFile("../wire/testdata/captures/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	var c capture
	if err := json.Unmarshal(bytes.ReplaceAll(b, []byte("{{base_url}}"), []byte(testBase)), &c); err != nil {
		t.Fatal(err)
	}
	return c.Exchanges
}

// replay answers as the recording server did, in order, and holds every request to the recorded one. The last GET may
// be asked again: how often an operation is looked at is ours.
type replay struct {
	t         *testing.T
	exchanges []exchange
	next      int
	keys      map[string]string // the recording's name of a key: ours
}

var uuid4 = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)

func (r *replay) RoundTrip(req *http.Request) (*http.Response, error) {
	if last := len(r.exchanges) - 1; r.next > last && r.exchanges[last].Method == "GET" && req.URL.Path == r.exchanges[last].Path {
		r.next = last
	}
	if r.next >= len(r.exchanges) {
		r.t.Errorf("one request too many: %s %s", req.Method, req.URL)
		return nil, errors.New("one request too many")
	}
	e := r.exchanges[r.next]
	r.next++
	what := fmt.Sprintf("request %d, %s %s", r.next, req.Method, req.URL.Path)
	if got, want := req.Method+" "+req.URL.Path, e.Method+" "+e.Path; got != want {
		r.t.Errorf("request %d: got %s, want %s", r.next, got, want)
	}
	for _, pair := range e.Query {
		if got := req.URL.Query().Get(pair[0]); got != pair[1] {
			r.t.Errorf("%s: query %s=%q, want %q", what, pair[0], got, pair[1])
		}
	}
	r.headers(what, req, e)
	r.body(what, req, e)
	res := &http.Response{StatusCode: e.ResponseStatus, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(e.ResponseBody)), Request: req}
	for k, v := range e.ResponseHeaders {
		res.Header.Set(k, v)
	}
	return res, nil
}

func (r *replay) headers(what string, req *http.Request, e exchange) {
	_, auth := e.Headers["authorization"]
	if got := req.Header.Get("Authorization"); auth && got != "Bearer key-123" || !auth && got != "" {
		r.t.Errorf("%s: Authorization is %q, and a key is wanted: %v", what, got, auth)
	}
	if got, want := req.Header.Get("Content-Type"), e.Headers["content-type"]; got != want {
		r.t.Errorf("%s: content-type %q, want %q", what, got, want)
	}
	key, placeholder := req.Header.Get(wire.KeyHeader), e.Headers["idempotency-key"]
	switch bound, known := r.keys[placeholder]; {
	case placeholder == "":
		if key != "" {
			r.t.Errorf("%s: has a key", what)
		}
	case !uuid4.MatchString(key):
		r.t.Errorf("%s: the key %q is not of the recorded form", what, key)
	case known && key != bound:
		r.t.Errorf("%s: the key changed from %q to %q", what, bound, key)
	default:
		r.keys[placeholder] = key
	}
}

func (r *replay) body(what string, req *http.Request, e exchange) {
	var got []byte
	if req.Body != nil {
		var err error
		if got, err = io.ReadAll(req.Body); err != nil {
			r.t.Errorf("%s: %v", what, err)
		}
		if int64(len(got)) != req.ContentLength {
			r.t.Errorf("%s: ContentLength %d for %d bytes", what, req.ContentLength, len(got))
		}
	}
	if bytes.Equal(e.RequestBody, []byte("null")) {
		if len(got) > 0 {
			r.t.Errorf("%s: has a body: %s", what, got)
		}
		return
	}
	if diff := covers("body", value(r.t, got), value(r.t, e.RequestBody)); diff != "" {
		r.t.Errorf("%s: %s\ngot  %s\nwant %s", what, diff, got, e.RequestBody)
	}
}

func value(t *testing.T, b []byte) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatalf("%q: %v", b, err)
	}
	return v
}

// explicit are the members that our bodies have where the official client's leave the default to the service.
var explicit = []string{
	"compute_config", "gpu_type", "num_generator_replicas", "lora_enabled", "optimizer_config", "inactive_timeout",
	"lora_config", "rank", "alpha", "dropout", "train_unembed", "seed",
	"top_p", "top_k", "num_samples", "temperature", "sampling_params", "max_tokens",
	"adam_params", "beta1", "beta2", "eps", "weight_decay", "grad_clip_norm",
}

// never are the members that our bodies have not: the metadata of a session, and the redundant shape of a tensor.
var never = []string{"metadata", "shape"}

// covers is the rule for our bodies: every member of the recorded body is in ours with an equal value, and beyond them
// ours has explicit defaults alone. Members of never are not compared, and the chunks of an input are compared joined:
// we send one. It returns what differs, "" when nothing does.
func covers(place string, got, want any) string {
	switch want := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			return place + " is not an object"
		}
		for name := range g {
			if _, recorded := want[name]; !recorded && !slices.Contains(explicit, name) {
				return place + "." + name + " is not in the recorded body"
			}
		}
		for name, w := range want {
			if slices.Contains(never, name) {
				continue
			}
			if name == "chunks" {
				g, w = map[string]any{name: joined(g[name])}, joined(w)
			}
			if diff := covers(place+"."+name, g[name], w); diff != "" {
				return diff
			}
		}
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(want) {
			return place + " has another length"
		}
		for i := range want {
			if diff := covers(fmt.Sprintf("%s[%d]", place, i), g[i], want[i]); diff != "" {
				return diff
			}
		}
	default:
		if !reflect.DeepEqual(got, want) {
			return fmt.Sprintf("%s is %v, want %v", place, got, want)
		}
	}
	return ""
}

func joined(chunks any) any {
	list, _ := chunks.([]any)
	tokens := []any{}
	for _, c := range list {
		tokens = append(tokens, c.(map[string]any)["encoded_text"].(map[string]any)["tokens"].([]any)...)
	}
	return tokens
}

// data reads the samples of a recorded body.
func data(t *testing.T, e exchange) []loss.Datum {
	t.Helper()
	f, err := wire.DecodeForwardBackward(bytes.NewReader(e.RequestBody), 0)
	if err != nil {
		t.Fatal(err)
	}
	var out []loss.Datum
	for _, s := range f.Samples {
		out = append(out, loss.Datum{Input: s.Tokens, Targets: s.Targets, Weights: s.Weights})
	}
	return out
}

const (
	resourceID = "11111111-1111-4111-8111-111111111111"
	sessionID  = "22222222-2222-4222-8222-222222222222"
	trainingID = "33333333-3333-4333-8333-333333333333"
	servingID  = "44444444-4444-4444-8444-444444444444"
	firstOp    = "00000000-0000-4000-8000-000000000001"
	aKey       = "e6ad3c7e-9dfc-4437-8f83-fec1c2b36807"
)

var adamW = recipe.Optimizer{Type: "adam", LearningRate: 1e-4, Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, WeightDecay: 0.1, GradClipNorm: 1}

// operate prepares, submits and waits for one operation.
func operate(c *Client, spec runner.SessionSpec, op runner.Op) (runner.Result, error) {
	s, ctx := c.Join(spec, sessionID), context.Background()
	p, err := s.Prepare(ctx, op)
	if err != nil {
		return runner.Result{}, err
	}
	id, err := s.Submit(ctx, aKey, p)
	if err != nil {
		return runner.Result{}, err
	}
	return s.Wait(ctx, op.Name(), id)
}

var spec = runner.SessionSpec{Patience: time.Minute, OperationTimeout: time.Hour}

func TestCaptures(t *testing.T) {
	ctx := context.Background()
	forward := func(backward, logprobs bool) func(*testing.T, *Client, []exchange) (any, error) {
		return func(t *testing.T, c *Client, es []exchange) (any, error) {
			i := slices.IndexFunc(es, func(e exchange) bool { return len(e.RequestBody) > 4 })
			return operate(c, spec, runner.Forward{Loss: &loss.CrossEntropy{}, Data: data(t, es[i]), Backward: backward, Logprobs: logprobs})
		}
	}
	op := func(op runner.Op) func(*testing.T, *Client, []exchange) (any, error) {
		return func(_ *testing.T, c *Client, _ []exchange) (any, error) { return operate(c, spec, op) }
	}
	step := op(runner.Optim{Optimizer: adamW, Rate: 1e-4})
	small := runner.ResourceSpec{BaseModel: "Qwen/Qwen3.5-4B", GPUType: "B200-SXM", Generators: 1, LoRA: true, InactiveTimeout: 15 * time.Minute}
	trainerOnly := small
	trainerOnly.Generators = 0
	full := runner.ResourceSpec{BaseModel: "Qwen/Qwen3.5-4B", BaseWeightsRef: "together://ml_A1b2C3d4E5f6G7h8I9j0K@rv_1", GPUType: "B200-SXM",
		Generators: 2, Muon: "match_adam", InactiveTimeout: 2 * time.Hour}
	pending := runner.Resource{ID: resourceID, Status: runner.Pending, BaseModel: "Qwen/Qwen3.5-4B", GPUType: "B200-SXM", CreatedBy: "user_0001",
		Generators: 1, LoRA: true, QueuePosition: 2, InactiveTimeout: time.Hour, CreatedAt: at(0), UpdatedAt: at(5)}
	ready := pending
	ready.Status, ready.QueuePosition, ready.ExpiresAt = runner.Ready, 0, at(65)
	with := func(r runner.Resource, f func(*runner.Resource)) runner.Resource { f(&r); return r }
	running := runner.SessionState{ID: sessionID, Status: runner.Running, Resource: resourceID}
	open := func(spec runner.SessionSpec, resource bool) func(*testing.T, *Client, []exchange) (any, error) {
		return func(_ *testing.T, c *Client, es []exchange) (any, error) {
			if resource {
				if _, err := c.Resource(ctx, resourceID); err != nil {
					return nil, err
				}
			}
			s, err := c.Open(ctx, spec)
			if err != nil {
				return nil, err
			}
			st := runner.SessionState{ID: s.ID()}
			for range es[1:] {
				if st.Status == runner.Running || !resource {
					break
				}
				if st, err = s.State(ctx); err != nil {
					return nil, err
				}
			}
			return st, nil
		}
	}
	custom := func(t *testing.T, c *Client, es []exchange) (any, error) {
		f, err := wire.DecodeCustomForwardBackward(bytes.NewReader(es[0].RequestBody), 0)
		if err != nil {
			t.Fatal(err)
		}
		x := f.Samples[0] // what its weights are does not count
		d := loss.Datum{Input: x.Tokens, Targets: x.Targets, Weights: []float64{0, 0, 0, 0, 1, 0.5}}
		return operate(c, spec, runner.Custom{Data: []loss.Datum{d}, Grads: f.Gradients})
	}
	logprobs := [][]float64{{f32(-0.1), f32(-0.2), f32(-0.3), f32(-0.4), f32(-0.5), f32(-0.6)}}
	scored := runner.Result{Loss: 2.345, Metrics: map[string]float64{}}
	scoredAll := scored
	scoredAll.Logprobs = logprobs
	for _, x := range []struct {
		name string
		call func(*testing.T, *Client, []exchange) (any, error)
		want any // a value, or an error to match by its text
	}{
		{"supported_models_get", func(_ *testing.T, c *Client, _ []exchange) (any, error) { return c.Models(ctx) },
			[]runner.Model{{Name: "Qwen/Qwen3.5-4B", DefaultGPU: "B200-SXM", Configs: []runner.ModelConfig{{
				GPUType: "B200-SXM", LoRA: &runner.TrainLimits{MaxBatchSize: 128, MaxSeqLength: 32768, MaxRank: 64},
				Full:      &runner.TrainLimits{MaxBatchSize: 128, MaxSeqLength: 16384},
				Generator: &runner.GeneratorLimits{ContextLength: 32768, MaxTokens: 512, Temperature: 1},
			}}}}},
		{"custom_forward_backward", custom, runner.Result{}},
		{"model_resources_create_full", func(_ *testing.T, c *Client, _ []exchange) (any, error) { return c.Create(ctx, full) },
			with(pending, func(r *runner.Resource) {
				r.Generators, r.LoRA, r.InactiveTimeout, r.BaseWeightsRef = 2, false, 2*time.Hour, full.BaseWeightsRef
			})},
		{"model_resources_create_minimal", func(_ *testing.T, c *Client, _ []exchange) (any, error) { return c.Create(ctx, small) }, pending},
		{"model_resources_create_wait", func(_ *testing.T, c *Client, es []exchange) (any, error) {
			r, err := c.Create(ctx, trainerOnly)
			for range es[1:] {
				if err == nil {
					r, err = c.Resource(ctx, r.ID)
				}
			}
			return r, err
		}, with(ready, func(r *runner.Resource) { r.Generators = 0 })},
		{"model_resources_create_wait_error", func(_ *testing.T, c *Client, _ []exchange) (any, error) {
			_, err := c.Create(ctx, small)
			_, err2 := c.Resource(ctx, resourceID)
			r, err3 := c.Resource(ctx, resourceID)
			_, err4 := c.Stop(ctx, resourceID, false)
			return r, errors.Join(err, err2, err3, err4)
		}, with(pending, func(r *runner.Resource) {
			r.Status, r.QueuePosition, r.ErrorCode, r.ErrorMessage = runner.Errored, 0, "PROVISIONING_FAILED", "provisioning failed"
		})},
		{"model_resources_create_wait_timeout", func(_ *testing.T, c *Client, _ []exchange) (any, error) {
			_, err := c.Create(ctx, small)
			_, err2 := c.Resource(ctx, resourceID)
			r, err3 := c.Stop(ctx, resourceID, false)
			return r, errors.Join(err, err2, err3)
		}, with(pending, func(r *runner.Resource) { r.Status, r.QueuePosition = runner.Stopping, 0 })},
		{"model_resources_estimate_cost", func(_ *testing.T, c *Client, _ []exchange) (any, error) { return c.Price(ctx, small) }, 24.5},
		{"model_resources_extend_expiry", func(_ *testing.T, c *Client, _ []exchange) (any, error) {
			return nil, c.Extend(ctx, resourceID, 2*time.Hour-time.Millisecond)
		}, nil},
		{"model_resources_list", func(_ *testing.T, c *Client, _ []exchange) (any, error) {
			rs, _, err := c.Mine(ctx, true)
			return rs, err
		}, []runner.Resource{ready}},
		{"model_resources_retrieve", func(_ *testing.T, c *Client, _ []exchange) (any, error) { return c.Resource(ctx, resourceID) }, ready},
		{"model_resources_attach", func(_ *testing.T, c *Client, _ []exchange) (any, error) { return c.Resource(ctx, resourceID) }, ready},
		{"model_resources_stop", func(_ *testing.T, c *Client, _ []exchange) (any, error) { return c.Stop(ctx, resourceID, false) },
			with(pending, func(r *runner.Resource) { r.Status, r.QueuePosition = runner.Stopping, 0 })},
		{"model_resources_stop_force", func(_ *testing.T, c *Client, _ []exchange) (any, error) { return c.Stop(ctx, resourceID, true) },
			with(pending, func(r *runner.Resource) { r.Status, r.QueuePosition = runner.Stopping, 0 })},
		{"model_resources_stop_already_stopped", func(_ *testing.T, c *Client, _ []exchange) (any, error) { return c.Stop(ctx, resourceID, false) },
			with(pending, func(r *runner.Resource) { r.Status, r.QueuePosition = runner.Stopped, 0 })},
		{"session_create_full", open(runner.SessionSpec{Resource: resourceID, DisplayName: "gsm8k-experiment-2", From: trainingID, LoadOptimizer: true,
			LoRA: &recipe.LoRA{Rank: 16, Alpha: 32, Dropout: 0.05}, LoRASeed: 59}, false), runner.SessionState{ID: sessionID}},
		{"session_create_minimal", open(runner.SessionSpec{Resource: resourceID}, false), runner.SessionState{ID: sessionID}},
		{"session_create_wait", open(runner.SessionSpec{Resource: resourceID, DisplayName: "run-1", LoRA: &recipe.LoRA{Rank: 16, Alpha: 32, TrainUnembed: true}}, true),
			runner.SessionState{ID: sessionID, Status: runner.Running, Resource: resourceID, DisplayName: "run-1"}},
		{"session_create_resume_weights_only", open(runner.SessionSpec{Resource: resourceID, From: trainingID}, true), running},
		{"session_retrieve", func(_ *testing.T, c *Client, _ []exchange) (any, error) { return c.Join(spec, sessionID).State(ctx) }, running},
		{"session_attach", func(_ *testing.T, c *Client, _ []exchange) (any, error) {
			st, err := c.Join(spec, sessionID).State(ctx)
			_, err2 := c.Resource(ctx, st.Resource)
			return st, errors.Join(err, err2)
		}, running},
		{"session_attach_trainer_only", func(_ *testing.T, c *Client, _ []exchange) (any, error) {
			st, err := c.Join(spec, sessionID).State(ctx)
			r, err2 := c.Resource(ctx, st.Resource)
			return r, errors.Join(err, err2)
		}, with(ready, func(r *runner.Resource) { r.Generators = 0 })},
		{"session_stop", func(_ *testing.T, c *Client, _ []exchange) (any, error) {
			return nil, c.Join(spec, sessionID).Close(ctx)
		}, nil},
		{"forward_backward_cross_entropy", forward(true, false), scored},
		{"forward_backward_return_outputs", forward(true, true), scoredAll},
		{"forward", forward(false, true), scoredAll},
		{"forward_offloaded_result", forward(false, true), scoredAll},
		{"forward_backward_large_payload", func(t *testing.T, c *Client, es []exchange) (any, error) {
			c.inline = 200
			return forward(true, false)(t, c, es)
		}, scored},
		{"optim_step_adam", step, runner.Result{Step: 1}},
		{"optim_step_defaults", op(runner.Optim{Optimizer: adamW, Rate: 1e-4}), runner.Result{Step: 1}},
		{"optim_step_muon", op(runner.Optim{Rate: 0.02, Optimizer: recipe.Optimizer{Type: "muon", LearningRate: 0.02, Momentum: 0.95, NewtonSchulzSteps: 5,
			GradClipNorm: 1, Adam: &recipe.Adam{LearningRate: 1e-4, Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, GradClipNorm: 1}}}), runner.Result{Step: 1}},
		{"weights_sync_default", op(runner.Sync{Mode: "synchronous"}), runner.Result{Version: 1}},
		{"weights_sync_synchronous", op(runner.Sync{Mode: "synchronous"}), runner.Result{Version: 1}},
		{"weights_sync_pipeline", op(runner.Sync{Mode: "pipeline"}), runner.Result{Version: 1}},
		{"weights_sync_background_publish", op(runner.Sync{Mode: "background_publish"}), runner.Result{Version: 1}},
		{"sample_minimal", op(runner.Sample{Prompts: [][]int32{{760, 6511, 314}}, N: 1, Params: recipe.Sampling{MaxTokens: 16, Temperature: 1, TopP: 1, TopK: -1}}),
			runner.Result{Samples: []rollout.Samples{{Sequences: drawn(rollout.Cut, 1000), Segments: []rollout.Segment{{Version: 1}}}}}},
		{"sample_batch", op(runner.Sample{Prompts: [][]int32{{760, 6511, 314}, {9338, 369}}, N: 2, Params: recipe.Sampling{MaxTokens: 8, Temperature: 1, TopP: 1, TopK: -1}}),
			runner.Result{Samples: []rollout.Samples{
				{Sequences: drawn(rollout.Stopped, 1000, 1010), Segments: []rollout.Segment{{Version: 1}}},
				{Sequences: drawn(rollout.Stopped, 1000, 1010), Segments: []rollout.Segment{{Version: 1}}}}}},
		{"sample_large_payload", func(_ *testing.T, c *Client, _ []exchange) (any, error) {
			c.inline = 200
			long := []int32{100, 101, 102, 103, 104, 105, 106, 107, 108, 109, 110, 111}
			return operate(c, spec, runner.Sample{Prompts: [][]int32{long, long}, N: 1, Params: recipe.Sampling{MaxTokens: 3, Temperature: 1, TopP: 1, TopK: -1}})
		}, runner.Result{Samples: []rollout.Samples{
			{Sequences: drawn(rollout.Cut, 1000), Segments: []rollout.Segment{{Version: 1}}},
			{Sequences: drawn(rollout.Cut, 1000), Segments: []rollout.Segment{{Version: 1}}}}}},
		{"training_checkpoint", op(runner.Save{}), runner.Result{Step: 10, Checkpoint: &runner.SavedCheckpoint{
			ID: trainingID, Step: 10, CreatedAt: at(5), Registered: "ml_Train0001", Revision: "rv_Train0001"}}},
		{"inference_checkpoint", op(runner.Save{Inference: true}), runner.Result{Step: 10, Checkpoint: &runner.SavedCheckpoint{
			ID: servingID, Step: 10, CreatedAt: at(5), Registered: "ml_Adapter01", Revision: "rv_Adapter01", Adapter: true}}},
		{"checkpoints_list", func(_ *testing.T, c *Client, _ []exchange) (any, error) { return c.Checkpoints(ctx, "") },
			[]Checkpoint{serving, training}},
		{"checkpoints_retrieve_training", func(_ *testing.T, c *Client, _ []exchange) (any, error) { return c.Checkpoint(ctx, trainingID) }, training},
		{"checkpoints_retrieve_inference", func(_ *testing.T, c *Client, _ []exchange) (any, error) { return c.Checkpoint(ctx, servingID) }, serving},
		{"checkpoints_download_merged", func(_ *testing.T, c *Client, _ []exchange) (any, error) { return c.Files(ctx, servingID, false) },
			[]download.File{{Name: "model.safetensors", Size: 1024, URL: testBase + "/file/model.safetensors?sig=PRESIGNED"}, {Name: "config.json", Size: 2048, URL: testBase + "/file/config.json?sig=PRESIGNED"}}},
		{"operation_poll_pending_running_completed", step, runner.Result{Step: 1}},
		{"operation_completed_without_output", step, errors.New("optim-step " + firstOp + ": COMPLETED, but without output")},
		{"operation_failed_internal_error", forward(true, false), &runner.Failed{Op: runner.OpForwardBackward, ID: firstOp, Code: "INTERNAL_ERROR", Message: "example failure"}},
		{"operation_failed_invalid_input", forward(true, false), &runner.Failed{Op: runner.OpForwardBackward, ID: firstOp, Code: "INVALID_INPUT", Message: "example failure"}},
		{"operation_failed_non_finite_loss", forward(true, false), &runner.Failed{Op: runner.OpForwardBackward, ID: firstOp, Code: "NON_FINITE_LOSS", Message: "example failure"}},
		{"operation_failed_resource_exhausted", forward(true, false), &runner.Failed{Op: runner.OpForwardBackward, ID: firstOp, Code: "RESOURCE_EXHAUSTED", Message: "example failure"}},
		{"operation_failed_session_not_active", forward(true, false), &runner.Failed{Op: runner.OpForwardBackward, ID: firstOp, Code: "SESSION_NOT_ACTIVE", Message: "example failure"}},
		{"operation_failed_timeout", forward(true, false), &runner.Failed{Op: runner.OpForwardBackward, ID: firstOp, Code: "TIMEOUT", Message: "example failure"}},
		{"operation_timeout_client_side", func(_ *testing.T, c *Client, _ []exchange) (any, error) {
			return operate(c, runner.SessionSpec{OperationTimeout: 50 * time.Millisecond}, runner.Optim{Optimizer: adamW, Rate: 1e-4})
		}, &runner.TimedOut{Op: runner.OpOptimStep, ID: firstOp, After: 50 * time.Millisecond}},
		{"idempotent_replay", func(_ *testing.T, c *Client, _ []exchange) (any, error) {
			s := c.Join(spec, sessionID)
			p, err := s.Prepare(ctx, runner.Optim{Optimizer: adamW, Rate: 1e-4})
			a, err2 := s.Submit(ctx, aKey, p)
			b, err3 := s.Submit(ctx, aKey, p)
			return a == b && a == firstOp, errors.Join(err, err2, err3)
		}, true},
		{"error_400", step, refusedWith(400)},
		{"error_401", step, refusedWith(401)},
		{"error_402", step, refusedWith(402)},
		{"error_403", step, refusedWith(403)},
		{"error_404", step, refusedWith(404)},
		{"error_422", step, refusedWith(422)},
		{"retry_408", step, runner.Result{Step: 1}},
		{"retry_409", step, runner.Result{Step: 1}},
		{"retry_429", step, runner.Result{Step: 1}},
		{"retry_500", step, runner.Result{Step: 1}},
		{"retry_503", step, runner.Result{Step: 1}},
		{"retry_x_should_retry_false", step, errors.New("POST /v1/rl/training-sessions/" + sessionID +
			"/operations/optim-step: no clear answer: 503 Service Unavailable: no")},
	} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &replay{t: t, exchanges: read(t, x.name), keys: map[string]string{}}
				got, err := x.call(t, New(Options{BaseURL: testBase, Key: "key-123", Transport: r}), r.exchanges)
				if want, fails := x.want.(error); fails {
					if err == nil || err.Error() != want.Error() {
						t.Errorf("got error %v, want %v", err, want)
					}
				} else if err != nil || !reflect.DeepEqual(got, x.want) {
					t.Errorf("got  %+v, %v\nwant %+v", got, err, x.want)
				}
				if r.next < len(r.exchanges) {
					t.Errorf("%d of %d requests were sent", r.next, len(r.exchanges))
				}
			})
		})
	}
}

var (
	training = Checkpoint{SavedCheckpoint: runner.SavedCheckpoint{ID: trainingID, Step: 10, CreatedAt: at(5), Registered: "ml_Train0001", Revision: "rv_Train0001"},
		BaseModel: "Qwen/Qwen3.5-4B", Session: sessionID, LoRARank: 32}
	serving = Checkpoint{SavedCheckpoint: runner.SavedCheckpoint{ID: servingID, Step: 10, CreatedAt: at(5), Registered: "ml_Adapter01", Revision: "rv_Adapter01", Adapter: true},
		Inference: true, BaseModel: "Qwen/Qwen3.5-4B", Session: sessionID, LoRARank: 32}
)

// drawn are the sequences that the recording server made up, by their first tokens.
func drawn(stop rollout.Stop, firsts ...int32) []rollout.Sequence {
	var out []rollout.Sequence
	for _, n := range firsts {
		out = append(out, rollout.Sequence{Tokens: []int32{n, n + 1, n + 2}, Logprobs: []float64{-0.1, -0.2, -0.3}, Stop: stop})
	}
	return out
}

func at(minute int) time.Time {
	return time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(minute) * time.Minute)
}

func f32(v float64) float64 { return float64(float32(v)) }

func refusedWith(status int) error {
	return &runner.Refused{Request: "POST /v1/rl/training-sessions/" + sessionID + "/operations/optim-step", Status: status, Message: "example failure"}
}

// A list is read to its end, page after page, with the filters that name what is ours.
func TestListsReadEveryPage(t *testing.T) {
	sessions, resources := read(t, "session_list_filtered")[0], read(t, "model_resources_list_filtered")[0]
	var asked []url.Values
	rt := roundTrip(func(req *http.Request) (*http.Response, error) {
		asked = append(asked, req.URL.Query())
		body := string(sessions.ResponseBody)
		if req.URL.Path == wire.PathResources {
			body = string(resources.ResponseBody)
		}
		if req.URL.Query().Get("after") != "" {
			body = strings.Replace(body, `"has_more":true`, `"has_more":false`, 1)
			body = strings.Replace(body, `"has_more": true`, `"has_more": false`, 1)
		}
		return answer(200, body), nil
	})
	c := New(Options{BaseURL: testBase, Transport: rt})
	list, err := c.Sessions(context.Background(), resourceID)
	if err != nil || len(list) != 2 {
		t.Errorf("got %d sessions, %v, want 2", len(list), err)
	}
	if _, _, err := c.Mine(context.Background(), false); err != nil {
		t.Error(err)
	}
	want := []url.Values{
		{"limit": {"100"}, "model_resources_id": {resourceID}},
		{"limit": {"100"}, "model_resources_id": {resourceID}, "after": {sessionID}},
		{"created_by": {"me"}, "limit": {"100"}, "status": {"MODEL_RESOURCES_STATUS_PENDING,MODEL_RESOURCES_STATUS_CREATING,MODEL_RESOURCES_STATUS_READY"}},
	}
	if !reflect.DeepEqual(asked, want) {
		t.Errorf("got  %v\nwant %v", asked, want)
	}
}

func TestCheckpointsOfASession(t *testing.T) {
	e := read(t, "checkpoints_list_filtered")[0]
	rt := roundTrip(func(req *http.Request) (*http.Response, error) {
		if got := req.URL.Query().Get("session_id"); got != sessionID {
			t.Errorf("session_id is %q", got)
		}
		return answer(200, string(e.ResponseBody)), nil
	})
	got, err := New(Options{BaseURL: testBase, Transport: rt}).Checkpoints(context.Background(), sessionID)
	if err != nil || !reflect.DeepEqual(got, []Checkpoint{training}) {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestAListThatGoesRoundIsAnError(t *testing.T) {
	rt := roundTrip(func(*http.Request) (*http.Response, error) {
		return answer(200, `{"data":[{"id":"x"}],"meta":{"has_more":true,"next_cursor":"x"}}`), nil
	})
	_, _, err := New(Options{BaseURL: testBase, Transport: rt}).Mine(context.Background(), true)
	if err == nil || !strings.Contains(err.Error(), `its cursor "x" leads nowhere new`) {
		t.Errorf("got %v", err)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func answer(status int, body string, headers ...string) *http.Response {
	h := http.Header{}
	for i := 0; i+1 < len(headers); i += 2 {
		h.Set(headers[i], headers[i+1])
	}
	return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(body))}
}
