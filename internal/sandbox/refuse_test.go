package sandbox

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"trainer/internal/wire"
)

func TestMalformedRequestsAreRefusedByName(t *testing.T) {
	_, c := open(t, Options{})
	r := c.resource(`{"base_model":"sandbox/bytes-tiny"}`)
	full := c.resource(`{"base_model":"sandbox/bytes-tiny","lora_enabled":false}`)
	id := c.session(`{"model_resources_id":"` + r.ID + `"}`).ID
	forward, optim, sync := opsPath(id, wire.KindForwardBackward), opsPath(id, wire.KindOptimStep), opsPath(id, wire.KindWeightsSync)
	session := func(more string) string { return `{"model_resources_id":"` + r.ID + `"` + more + `}` }
	sample := func(tokens, targets, weights string) string {
		return `{"loss":{"type":"LOSS_TYPE_CROSS_ENTROPY"},"samples":[{"model_input":{"chunks":[{"encoded_text":{"tokens":` + tokens +
			`}}]},"loss_fn_inputs":{"target_tokens":` + targets + `,"weights":` + weights + `}}]}`
	}
	ints, floats := `{"data":[1,2],"dtype":"int64"}`, `{"data":[1,1],"dtype":"float32"}`
	long := row(strings.Repeat("x", 2050))
	for _, tt := range []struct {
		name, method, path, body string
		status                   int
		param                    string
	}{
		{"a resource that is no JSON", "POST", wire.PathResources, `{`, 400, ""},
		{"a resource that is a list", "POST", wire.PathResources, `[]`, 400, ""},
		{"a resource that is null", "POST", wire.PathResources, `null`, 400, ""},
		{"a resource without a body", "POST", wire.PathResources, ``, 400, ""},
		{"a resource without a model", "POST", wire.PathResources, `{}`, 400, "base_model"},
		{"a model that is a number", "POST", wire.PathResources, `{"base_model":1}`, 400, "base_model"},
		{"a model that the sandbox does not have", "POST", wire.PathResources, `{"base_model":"sandbox/nothing"}`, 400, "base_model"},
		{"a ref that is none", "POST", wire.PathResources, `{"base_model":"m","base_weights_ref":"x"}`, 400, "base_weights_ref"},
		{"a GPU that is not offered", "POST", wire.PathResources, `{"base_model":"m","compute_config":{"gpu_type":"H100-80GB"}}`, 400, "compute_config.gpu_type"},
		{"replicas below 0", "POST", wire.PathResources, `{"base_model":"m","compute_config":{"num_generator_replicas":-1}}`, 400, "compute_config.num_generator_replicas"},
		{"replicas that are text", "POST", wire.PathResources, `{"base_model":"m","compute_config":{"num_generator_replicas":"1"}}`, 400, "compute_config.num_generator_replicas"},
		{"muon of no strategy", "POST", wire.PathResources, `{"base_model":"m","optimizer_config":{"muon":{"scaling_strategy":"BIG"}}}`, 400, "optimizer_config.muon.scaling_strategy"},
		{"two optimizers", "POST", wire.PathResources, `{"base_model":"m","optimizer_config":{"muon":{},"adam":{}}}`, 400, "optimizer_config.muon"},
		{"a timeout that is too short", "POST", wire.PathResources, `{"base_model":"m","inactive_timeout":299}`, 400, "inactive_timeout"},
		{"a timeout that is too long", "POST", wire.PathResources, `{"base_model":"m","inactive_timeout":86401}`, 400, "inactive_timeout"},
		{"a price of nothing", "POST", wire.PathResources + "/estimate-cost", `{}`, 400, "base_model"},
		{"an extension without seconds", "POST", wire.PathResources + "/" + r.ID + "/extend-expiry", `{}`, 400, "seconds"},
		{"an extension that is too short", "POST", wire.PathResources + "/" + r.ID + "/extend-expiry", `{"seconds":59}`, 400, "seconds"},
		{"a force that is no boolean", "POST", wire.PathResources + "/" + r.ID + "/stop?force=1", ``, 400, "force"},
		{"a resource that does not exist", "GET", wire.PathResources + "/nothing", ``, 404, "model_resources_id"},
		{"a session on no resource", "POST", wire.PathSessions, `{}`, 400, "model_resources_id"},
		{"a session on a resource that does not exist", "POST", wire.PathSessions, `{"model_resources_id":"nothing"}`, 404, "model_resources_id"},
		{"a rank of 0", "POST", wire.PathSessions, session(`,"lora_config":{"rank":0}`), 400, "lora_config.rank"},
		{"a rank above the limit", "POST", wire.PathSessions, session(`,"lora_config":{"rank":65}`), 400, "lora_config.rank"},
		{"a rank that is a fraction", "POST", wire.PathSessions, session(`,"lora_config":{"rank":1.5}`), 400, "lora_config.rank"},
		{"a name that is a number", "POST", wire.PathSessions, session(`,"display_name":1`), 400, "display_name"},
		{"an alpha of 0", "POST", wire.PathSessions, session(`,"lora_config":{"alpha":0}`), 400, "lora_config.alpha"},
		{"a negative dropout", "POST", wire.PathSessions, session(`,"lora_config":{"dropout":-0.05}`), 400, "lora_config.dropout"},
		{"a dropout of 1", "POST", wire.PathSessions, session(`,"lora_config":{"dropout":1}`), 400, "lora_config.dropout"},
		{"a seed that is text", "POST", wire.PathSessions, session(`,"lora_config":{"seed":"x"}`), 400, "lora_config.seed"},
		{"lora on full weights", "POST", wire.PathSessions, `{"model_resources_id":"` + full.ID + `","lora_config":{}}`, 400, "lora_config"},
		{"a checkpoint that does not exist", "POST", wire.PathSessions, session(`,"resume_from_checkpoint_id":"nothing"`), 404, "resume_from_checkpoint_id"},
		{"a name that is too long", "POST", wire.PathSessions, session(`,"display_name":"` + strings.Repeat("x", 129) + `"`), 400, "display_name"},
		{"a session that does not exist", "GET", wire.PathSessions + "/nothing", ``, 404, "session_id"},
		{"an operation that does not exist", "GET", forward + "/nothing", ``, 404, "operation_id"},
		{"work for a session that does not exist", "POST", opsPath("nothing", wire.KindOptimStep), `{}`, 404, "session_id"},
		{"a checkpoint to read that does not exist", "GET", wire.PathCheckpoints + "/nothing", ``, 404, "id"},
		{"a checkpoint of no type", "GET", wire.PathCheckpoints + "?type=TRAINING", ``, 400, "type"},
		{"a payload that does not exist", "POST", wire.PathSessions + "/" + id + "/payloads/nothing/download-url", ``, 404, "payload_id"},

		{"samples without a loss", "POST", forward, `{"samples":[]}`, 400, "loss.type"},
		{"a loss of no type", "POST", forward, `{"loss":{},"samples":[]}`, 400, "loss.type"},
		{"a loss that is none", "POST", forward, strings.Replace(sample(`[1,2]`, ints, floats), "CROSS_ENTROPY", "UNSPECIFIED", 1), 400, "loss.type"},
		{"a loss that is text", "POST", forward, `{"loss":"x","samples":[]}`, 400, "loss"},
		{"no samples", "POST", forward, `{"loss":{"type":"LOSS_TYPE_CROSS_ENTROPY"}}`, 400, "samples"},
		{"an empty batch", "POST", forward, `{"loss":{"type":"LOSS_TYPE_CROSS_ENTROPY"},"samples":[]}`, 400, "samples"},
		{"samples that are an object", "POST", forward, `{"loss":{"type":"LOSS_TYPE_CROSS_ENTROPY"},"samples":{}}`, 400, "samples"},
		{"a sample of nothing", "POST", forward, `{"loss":{"type":"LOSS_TYPE_CROSS_ENTROPY"},"samples":[{}]}`, 400, "samples[0].model_input"},
		{"no tokens", "POST", forward, sample(`[]`, `{"data":[],"dtype":"int64"}`, `{"data":[],"dtype":"float32"}`), 400, "samples[0].model_input"},
		{"no targets", "POST", forward, sample(`[1,2]`, `null`, floats), 400, "samples[0].loss_fn_inputs.target_tokens"},
		{"no weights", "POST", forward, sample(`[1,2]`, ints, `null`), 400, "samples[0].loss_fn_inputs.weights"},
		{"fewer targets than tokens", "POST", forward, sample(`[1,2,3]`, ints, `{"data":[1,1,1],"dtype":"float32"}`), 400, "samples[0].loss_fn_inputs.target_tokens"},
		{"fewer weights than tokens", "POST", forward, sample(`[1,2]`, ints, `{"data":[1],"dtype":"float32"}`), 400, "samples[0].loss_fn_inputs.weights"},
		{"a negative weight", "POST", forward, sample(`[1,2]`, ints, `{"data":[1,-1],"dtype":"float32"}`), 400, "samples[0].loss_fn_inputs.weights"},
		{"a weight beyond float32", "POST", forward, sample(`[1,2]`, ints, `{"data":[1,1e300],"dtype":"float32"}`), 400, "samples[0].loss_fn_inputs.weights.data[1]"},
		{"a token outside of the vocabulary", "POST", forward, sample(`[1,272]`, ints, floats), 400, "samples[0].model_input"},
		{"a target outside of the vocabulary", "POST", forward, sample(`[1,2]`, `{"data":[1,-1],"dtype":"int64"}`, floats), 400, "samples[0].loss_fn_inputs.target_tokens"},
		{"a token that is a fraction", "POST", forward, sample(`[1,2.5]`, ints, floats), 400, "samples[0].model_input.chunks[0].encoded_text.tokens[1]"},
		{"targets of another dtype", "POST", forward, sample(`[1,2]`, `{"data":[1,2],"dtype":"float32"}`, floats), 400, "samples[0].loss_fn_inputs.target_tokens"},
		{"more tokens than the model takes", "POST", forward, batch(t, "", long), 400, "samples[0].model_input"},
		{"more samples than the model takes", "POST", forward, batch(t, "", make129()...), 400, "samples[128]"},
		{"a payload that was never uploaded", "POST", forward, strings.TrimSuffix(sample(`[1,2]`, ints, floats), "}") + `,"payload_id":"x"}`, 404, "payload_id"},
		{"a shape of more than there is", "POST", forward, sample(`[1,2]`, `{"data":[1,2],"dtype":"int64","shape":[3]}`, floats), 400, "samples[0].loss_fn_inputs.target_tokens.shape"},
		{"a shape of two dimensions", "POST", forward, sample(`[1,2]`, `{"shape":[1,2],"data":[1,2],"dtype":"int64"}`, floats), 400, "samples[0].loss_fn_inputs.target_tokens.shape"},
		{"a sparse tensor", "POST", forward, sample(`[1,2]`, ints, `{"data":[1,1],"dtype":"float32","sparse_col_indices":[0,5],"sparse_crow_indices":[0,2]}`), 400, "samples[0].loss_fn_inputs.weights.sparse_col_indices"},
		{"a chunk that is not text", "POST", forward, strings.Replace(sample(`[1,2]`, ints, floats), `"chunks":[`, `"chunks":[{"image":{}},`, 1), 400, "samples[0].model_input.chunks[0].encoded_text"},
		{"nothing beside an upload", "POST", forward, `{"payload_id":"x"}`, 400, "loss.type"},
		{"no samples beside an upload", "POST", forward, `{"payload_id":"x","loss":{"type":"LOSS_TYPE_CROSS_ENTROPY"}}`, 400, "samples"},
		{"an empty sample beside an upload", "POST", forward, `{"payload_id":"x","loss":{"type":"LOSS_TYPE_CROSS_ENTROPY"},"samples":[{}]}`, 400, "samples[0].model_input"},
		{"no gradients beside an upload", "POST", opsPath(id, wire.KindCustomForwardBackward), `{"payload_id":"x","samples":[]}`, 400, "gradients"},
		{"no prompts beside an upload", "POST", opsPath(id, wire.KindSample), `{"payload_id":"x"}`, 400, "model_inputs"},
		{"a flag that is a number", "POST", forward, `{"forward_only":1}`, 400, "forward_only"},

		{"muon for Adam", "POST", optim, `{"muon_params":{"learning_rate":0.1}}`, 400, "muon_params"},
		{"a rate that is text", "POST", optim, `{"adam_params":{"learning_rate":"0.1"}}`, 400, "adam_params.learning_rate"},
		{"a negative rate", "POST", optim, `{"adam_params":{"learning_rate":-1}}`, 400, "adam_params.learning_rate"},
		{"a beta of 1", "POST", optim, `{"adam_params":{"beta2":1}}`, 400, "adam_params.beta2"},
		{"an eps of 0", "POST", optim, `{"adam_params":{"eps":0}}`, 400, "adam_params.eps"},
		{"a negative clip", "POST", optim, `{"adam_params":{"grad_clip_norm":-0.5}}`, 400, "adam_params.grad_clip_norm"},
		{"a sync of no type", "POST", sync, `{}`, 400, "weight_sync_type"},
		{"a sync of an unknown type", "POST", sync, `{"weight_sync_type":"NOW"}`, 400, "weight_sync_type"},
		{"a checkpoint with a body of no JSON", "POST", opsPath(id, wire.KindTrainingCheckpoint), `x`, 400, ""},
		{"a path that does not exist", "GET", "/v1/rl/nothing", ``, 404, ""},
		{"a method that does not exist", "DELETE", wire.PathSessions + "/" + id, ``, 405, ""},
		{"an address that was not handed out", "GET", "/payloads/x?sig=y", ``, 403, "sig"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := &client{t: t, http: c.http}
			e := c.refused(tt.status, tt.method, tt.path, tt.body, wire.KeyHeader, "key of "+tt.name)
			param := ""
			if e.Param != nil {
				param = *e.Param
			}
			if param != tt.param {
				t.Errorf("param: got %q, want %q (%s)", param, tt.param, e.Message)
			}
			if tt.param != "" && tt.status == 400 && !strings.Contains(e.Message, lastPart(tt.param)) {
				t.Errorf("message: %q does not name %s", e.Message, tt.param)
			}
		})
	}
	if got := c.getSession(id); got.Step != 0 || len(got.TrainingCheckpoints) != 0 {
		t.Errorf("session after all refusals: got %+v", got)
	}
}

func lastPart(param string) string { return param[strings.LastIndex(param, ".")+1:] }

func make129() (rows []wire.Sample) {
	for range 129 {
		rows = append(rows, row("ab"))
	}
	return rows
}

func TestUnknownMembersAreIgnored(t *testing.T) {
	_, c := open(t, Options{})
	r := c.resource(`{"base_model":"sandbox/bytes-tiny","new":{"deep":[1]},"compute_config":null}`)
	id := c.session(`{"model_resources_id":"` + r.ID + `","new":1,"lora_config":{"rank":2,"new":1}}`).ID
	c.loss(id, `,"new":[{}]`, row("hello"))
	c.run(id, wire.KindOptimStep, `{"new":1,"adam_params":{"new":2}}`, nil)
}

func TestTheKeyIsAsked(t *testing.T) {
	_, c := open(t, Options{Key: "secret"})
	for _, header := range []string{"", "secret", "Bearer ", "Bearer wrong", "bearer secret"} {
		e := c.refused(http.StatusUnauthorized, "GET", wire.PathModels, "", "Authorization", header)
		if strings.Contains(e.Message, "secret") {
			t.Errorf("the answer tells the key: %s", e.Message)
		}
	}
	c.ok("GET", wire.PathModels, "", nil, "Authorization", "Bearer secret")
}

func TestAnIdempotencyKeyIsForOneRequest(t *testing.T) {
	_, c := open(t, Options{})
	a, b := c.tiny(), c.tiny()
	post := func(session string, kind wire.Kind, body string) string {
		var op wire.Operation[json.RawMessage]
		c.ok("POST", opsPath(session, kind), body, &op, wire.KeyHeader, "one")
		return op.ID
	}
	first := post(a, wire.KindOptimStep, `{"adam_params":{}}`)
	c.wait(a, wire.KindOptimStep, first)
	if got := post(a, wire.KindOptimStep, `{"adam_params":{}}`); got != first {
		t.Errorf("the same request again: got operation %s, want %s", got, first)
	}
	if got := c.getSession(a).Step; got != 1 {
		t.Errorf("step: got %d, want 1", got)
	}
	for _, other := range []struct {
		session string
		kind    wire.Kind
		body    string
	}{
		{a, wire.KindOptimStep, `{"adam_params": {}}`},
		{b, wire.KindOptimStep, `{"adam_params":{}}`},
		{a, wire.KindTrainingCheckpoint, `{"adam_params":{}}`},
	} {
		c.refused(http.StatusUnprocessableEntity, "POST", opsPath(other.session, other.kind), other.body, wire.KeyHeader, "one")
	}
	c.refused(http.StatusBadRequest, "POST", opsPath(a, wire.KindOptimStep), `{}`)
	c.ok("POST", wire.PathSessions+"/"+a+"/stop", "", nil)
	if got := post(a, wire.KindOptimStep, `{"adam_params":{}}`); got != first {
		t.Errorf("the same request to a stopped session: got operation %s, want %s", got, first)
	}
}

func TestBodiesAreBounded(t *testing.T) {
	_, c := open(t, Options{})
	id := c.tiny()
	c.refused(http.StatusRequestEntityTooLarge, "POST", wire.PathResources, strings.Repeat(" ", smallBody+1))
	large := bytes.Repeat([]byte(" "), maxInline+1)
	status, _ := c.do("POST", opsPath(id, wire.KindForwardBackward), large, wire.KeyHeader, "k")
	if status != http.StatusRequestEntityTooLarge {
		t.Errorf("got %d, want 413", status)
	}
}

func TestPayloads(t *testing.T) {
	s, c := open(t, Options{Dir: t.TempDir(), Key: "secret"})
	plain := c
	c = &client{t: t, http: withKey{s}}
	a, b := c.tiny(), c.tiny()
	upload := func(session string) (up wire.UploadURL) {
		c.ok("POST", wire.PathSessions+"/"+session+"/payloads/upload-url", "", &up)
		return up
	}
	up := upload(a)
	named := func(id string) string { return batch(t, `,"payload_id":"`+id+`"`, row("short")) }
	c.refused(400, "POST", opsPath(a, wire.KindForwardBackward), named(up.PayloadID), wire.KeyHeader, "early")
	plain.refused(http.StatusForbidden, "PUT", up.UploadURL[:len(up.UploadURL)-1], "{}")
	plain.refused(http.StatusForbidden, "GET", up.UploadURL, "")
	plain.ok("PUT", up.UploadURL, batch(t, "", row("something else first")), nil)
	whole := batch(t, "", row("the whole body, which is longer than the short one"))
	plain.ok("PUT", up.UploadURL, whole, nil)
	c.refused(400, "POST", opsPath(b, wire.KindForwardBackward), named(up.PayloadID), wire.KeyHeader, "of another session")
	var got, want wire.ForwardBackwardOutput
	c.run(a, wire.KindForwardBackward, named(up.PayloadID), &got)
	c.run(b, wire.KindForwardBackward, whole, &want)
	if *got.Loss != *want.Loss {
		t.Errorf("loss of the upload: got %v, want %v as inline", *got.Loss, *want.Loss)
	}
	plain.ok("PUT", up.UploadURL, whole, nil) // the same again, as a retry sends it
	plain.refused(400, "PUT", up.UploadURL, batch(t, "", row("other")))
	broken := upload(a)
	plain.ok("PUT", broken.UploadURL, `{"loss":{"type":"LOSS_TYPE_CROSS_ENTROPY"},"samples":[{"model_input":{"chunks":[]}}]}`, nil)
	e := c.refused(400, "POST", opsPath(a, wire.KindForwardBackward), named(broken.PayloadID), wire.KeyHeader, "broken")
	if e.Param == nil || *e.Param != "samples[0].model_input" {
		t.Errorf("a payload with a fault: got %+v, want its place", e)
	}
	var down wire.DownloadURL
	c.ok("POST", wire.PathSessions+"/"+a+"/payloads/"+up.PayloadID+"/download-url", "", &down)
	if _, bytes := plain.do("GET", down.DownloadURL, nil); string(bytes) != whole {
		t.Errorf("download: got %.100s", bytes)
	}
	c.refused(404, "POST", wire.PathSessions+"/"+b+"/payloads/"+up.PayloadID+"/download-url", "")
}

// withKey adds the key where the address does not carry a signature.
type withKey struct{ s *Server }

func (w withKey) RoundTrip(r *http.Request) (*http.Response, error) {
	r.Header.Set("Authorization", "Bearer "+w.s.options.Key)
	return w.s.RoundTrip(r)
}

func TestALargeAnswerIsStoredOutside(t *testing.T) {
	s, c := open(t, Options{})
	s.inline = 1000
	id := c.tiny()
	var rows []wire.Sample
	for range 8 {
		rows = append(rows, row(strings.Repeat("0123456789", 20)))
	}
	got := c.loss(id, `,"return_loss_fn_outputs":true,"forward_only":true`, rows...)
	if got.PayloadID == "" || got.Logprobs != nil || got.Loss == nil {
		t.Fatalf("got %v logprobs and payload %q, want a payload", len(got.Logprobs), got.PayloadID)
	}
	var down wire.DownloadURL
	c.ok("POST", wire.PathSessions+"/"+id+"/payloads/"+got.PayloadID+"/download-url", "", &down)
	_, b := c.do("GET", down.DownloadURL, nil)
	if err := got.Merge(bytes.NewReader(b)); err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for i, l := range got.Logprobs {
		for t, w := range rows[i].Weights {
			sum -= w * l[t]
		}
	}
	if diff := sum/(*got.Loss) - 1; len(got.Logprobs) != 8 || diff > 1e-9 || diff < -1e-9 {
		t.Errorf("%d rows add up to %v, want the loss, %v", len(got.Logprobs), sum, *got.Loss)
	}
}

func TestTheHandlerServesRealConnections(t *testing.T) {
	s, _ := open(t, Options{})
	web := httptest.NewServer(s)
	defer web.Close()
	c := &client{t: t, http: through{web}}
	id := c.tiny()
	c.loss(id, "", row("over a socket"))
	var up wire.UploadURL
	c.ok("POST", wire.PathSessions+"/"+id+"/payloads/upload-url", "", &up)
	if !strings.HasPrefix(up.UploadURL, web.URL+"/") {
		t.Errorf("upload_url: got %s, want it at %s", up.UploadURL, web.URL)
	}
	c.ok("PUT", up.UploadURL, batch(t, "", row("large")), nil)
}

// through sends to the test's server what is addressed to host.
type through struct{ web *httptest.Server }

func (h through) RoundTrip(r *http.Request) (*http.Response, error) {
	r.Host, r.URL.Host = "", strings.TrimPrefix(h.web.URL, "http://")
	return h.web.Client().Transport.RoundTrip(r)
}

func TestSupportedModelsAndPrices(t *testing.T) {
	_, c := open(t, Options{})
	var models wire.SupportedModels
	c.ok("GET", wire.PathModels, "", &models)
	seen := map[string]wire.SupportedModel{}
	for _, m := range models.Data {
		seen[m.BaseModel] = m
		limits := m.ComputeConfigs[0].TrainerConfig
		if limits.LoRA.MaxRank != 64 || limits.Full.MaxBatchSize < 1 || limits.LoRA.MaxSeqLength < 512 {
			t.Errorf("%s: got %+v", m.BaseModel, limits)
		}
	}
	if seen["sandbox/bytes-tiny"].StandIn || !seen["Qwen/Qwen3.5-4B"].StandIn {
		t.Errorf("stand_in: got %v", seen)
	}
	var price wire.CostEstimate
	c.ok("POST", wire.PathResources+"/estimate-cost", `{"base_model":"sandbox/bytes-tiny"}`, &price)
	if price.PricePerHour != 0 || price.Currency != "USD" {
		t.Errorf("the sandbox: got %+v, want nothing", price)
	}
	one := price
	c.ok("POST", wire.PathResources+"/estimate-cost", `{"base_model":"openai/gpt-oss-20b"}`, &one)
	c.ok("POST", wire.PathResources+"/estimate-cost", `{"base_model":"openai/gpt-oss-20b","compute_config":{"num_generator_replicas":0}}`, &price)
	if one.PricePerHour <= price.PricePerHour || price.PricePerHour <= 0 {
		t.Errorf("with a generator %v, without %v; want the first above the second above 0", one.PricePerHour, price.PricePerHour)
	}
	var marked struct {
		StandIn bool `json:"stand_in"`
	}
	r := c.resource(`{"base_model":"some-lab/unheard-of"}`)
	c.ok("GET", wire.PathResources+"/"+r.ID, "", &marked)
	if !marked.StandIn {
		t.Error("a resource of a real name is not marked as a stand-in")
	}
}
