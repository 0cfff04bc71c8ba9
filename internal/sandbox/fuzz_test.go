package sandbox

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"trainer/internal/wire"
	"trainer/loss"
)

// Whatever comes, the server answers as the document says, and what is not 200 is an envelope; nothing panics and no 500 is
// given.
func FuzzHandler(f *testing.F) {
	plain := batch(f, "", row("seed"))
	for _, seed := range [][2]string{
		{"POST /v1/rl/model-resources", `{"base_model":"sandbox/bytes-tiny","compute_config":{"num_generator_replicas":0}}`},
		{"POST /v1/rl/model-resources", `{"base_model":"x","inactive_timeout":1e9}`},
		{"GET /v1/rl/model-resources?limit=2&status=MODEL_RESOURCES_STATUS_READY", ``},
		{"POST /v1/rl/training-sessions", `{"model_resources_id":"RESOURCE","lora_config":{"rank":2,"alpha":4,"seed":"1"}}`},
		{"PATCH /v1/rl/training-sessions/SESSION", `{"display_name":null,"metadata":{"wandb":{"url":"x"}}}`},
		{"POST /v1/rl/training-sessions/SESSION/operations/forward-backward", plain},
		{"POST /v1/rl/training-sessions/SESSION/operations/forward-backward", strings.Replace(plain, `"samples":[`, `"samples":[{},`, 1)},
		{"POST /v1/rl/training-sessions/SESSION/operations/forward-backward", body(f, &loss.GRPO{ClipLowThreshold: 0.8, ClipHighThreshold: 1.2, Beta: 0.1, AggType: "token_mean", RatioType: "sequence"}, "", policyRow("seed"))},
		{"POST /v1/rl/training-sessions/SESSION/operations/forward-backward", shaped(f, wire.April2026, &loss.PPO{ClipLowThreshold: 0.8, ClipHighThreshold: 1.2}, "", policyRow("seed"))},
		{"POST /v1/rl/training-sessions/SESSION/operations/forward-backward", strings.Replace(shaped(f, wire.April2026, &loss.CrossEntropy{}, "", row("seed")), `"loss_inputs"`, `"routed_experts":{"data":"AQACAAMA","shape":["3",1,1]},"loss_inputs"`, 1)},
		{"POST /v1/rl/training-sessions/SESSION/operations/custom-forward-backward", custom(f, "", [][]float64{{1, -0.5, 0}}, row("seed"))},
		{"POST /v1/rl/training-sessions/SESSION/operations/optim-step", `{"adam_params":{"learning_rate":1e-3,"eps":1e-320}}`},
		{"POST /v1/rl/training-sessions/SESSION/operations/weights-sync", `{"weight_sync_type":"WEIGHT_SYNC_TYPE_PIPELINE"}`},
		{"POST /v1/rl/training-sessions/SESSION/operations/sample", prompt(`,"num_samples":2,"sampling_params":{"max_tokens":3,"stop":["x"]}`, "y")},
		{"POST /v1/rl/training-sessions/SESSION/operations/sample", prompt(`,"topk_prompt_logprobs":20,"sampling_params":{"top_p":1e-300,"temperature":1e-300}`, "yes")},
		{"GET /v1/rl/checkpoints/x/download?variant=CHECKPOINT_VARIANT_MERGED", ``},
		{"POST /v1/rl/training-sessions/SESSION/operations/training-checkpoint", ``},
		{"GET /v1/rl/training-sessions/SESSION/operations/optim-step/x", ``},
		{"POST /v1/rl/training-sessions/SESSION/payloads/upload-url", ``},
		{"PUT /payloads/x?sig=%zz", `{}`},
		{"GET /v1/rl/checkpoints?after=x&type=", ``},
		{"POST /v1/shaping/prepare-for-fp4-inference", `{"inputs":{"model_object_id":"MODEL","calibration_file_id":"x"}}`},
		{"POST /v1/shaping/prepare-for-fp4-inference", `{"inputs":{"adapter_object_id":"MODEL","model_revision_id":null}}`},
		{"POST /v1/shaping/prepare-for-fp4-inference/estimate", `{"inputs":{"model_object_id":"MODEL"}}`},
		{"POST /v1/shaping/JOB/cancel", ``},
		{"GET /v1/shaping", ``},
		{"GET /v1/shaping/JOB", ``},
		{"GET /v1/shaping/JOB/events", ``},
		{"BREW /%00//../v1", "\x00"},
	} {
		f.Add(seed[0], []byte(seed[1]))
	}
	s, c := open(f, Options{Log: func(string, ...any) {}}) // f.Logf must not be called within a target
	r := c.resource(`{"base_model":"sandbox/bytes-tiny"}`)
	id := c.session(`{"model_resources_id":"` + r.ID + `","lora_config":{"rank":2}}`).ID
	model := c.registered(`{"base_model":"sandbox/bytes-tiny"}`, "").Adapter.ID
	names := strings.NewReplacer("RESOURCE", r.ID, "SESSION", id, "MODEL", model, "JOB", c.job(model).ID)
	f.Fuzz(func(t *testing.T, line string, body []byte) {
		method, target, _ := strings.Cut(names.Replace(line), " ")
		in, err := http.NewRequest(method, host+target, bytes.NewReader([]byte(names.Replace(string(body)))))
		if err != nil {
			t.Skip() // the client's own library refuses it
		}
		in.Header.Set(wire.KeyHeader, line+string(body))
		if len(line)+len(body) > maxKey {
			in.Header.Set(wire.KeyHeader, "long")
		}
		resp, err := s.RoundTrip(in)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		if err := book(t).check(method, in.URL.Path, resp.StatusCode, answer); err != nil {
			t.Error(err)
		}
		var e wire.ErrorBody
		if err := json.Unmarshal(answer, &e); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if resp.StatusCode == http.StatusInternalServerError || resp.StatusCode != http.StatusOK && e.Error.Message == "" {
			t.Errorf("%s %s: got %d %+v", line, body, resp.StatusCode, e)
		}
	})
}
