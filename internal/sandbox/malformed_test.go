package sandbox

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"trainer/internal/wire"
)

// lawful are bodies of the operations that take one, by the document's path: together they have every member that the
// document names. RESOURCE, SESSION, ADAPTER and PAYLOAD stand for what the test has made; MUON in the path's place, for a session
// of the other optimizer.
func lawful() map[string][]string {
	const resource = `{"base_model":"sandbox/bytes-tiny","base_weights_ref":"together://ml_a1@rv_b2","compute_config":{"gpu_type":"B200-SXM",` +
		`"num_generator_replicas":1},"lora_enabled":true,"optimizer_config":{"muon":{"scaling_strategy":"MUON_SCALING_STRATEGY_ORIGINAL"}},"inactive_timeout":600}`
	const adam = `{"base_model":"Qwen/Qwen3.5-4B","optimizer_config":{"adam":{}}}`
	const metadata = `"display_name":"n","metadata":{"wandb":{"entity":"e","project":"p","group":"g","run_id":"i","run_name":"n","url":"https://w"}}`
	const input = `{"chunks":[{"encoded_text":{"tokens":[104,"105"]}},{"encoded_text":{"tokens":[33]}}]}`
	tensor := func(name, values, dtype string) string {
		return fmt.Sprintf(`%q:{"data":[%s],"dtype":%q,"shape":[3]}`, name, values, dtype)
	}
	sample := func(more ...string) string {
		tensors := append([]string{tensor("target_tokens", "105,33,10", "int64")}, more...)
		return `{"model_input":` + input + `,"loss_fn_inputs":{` + strings.Join(tensors, ",") + `},"routed_experts_key":""}`
	}
	weighted := sample(tensor("weights", "0,0.5,1", "float32"))
	policy := sample(tensor("mask", "0,1,1", "int64"), tensor("logprobs", "-5,-5.5,-6", "float32"),
		tensor("advantages", "0.5,1,-1", "float32"), tensor("reference_logprobs", "-5,-5,-6", "float32"))
	brief := `{"model_input":{"chunks":[{"encoded_text":{"tokens":[104]}}]},"loss_fn_inputs":{"target_tokens":{"data":[105],"dtype":"int64"},` +
		`"logprobs":{"data":[-5],"dtype":"float32"},"advantages":{"data":[1],"dtype":"float32"}}}`
	forward := func(kind, params string, samples ...string) string {
		return `{"loss":{"type":"LOSS_TYPE_` + kind + `"` + params + `},"samples":[` + strings.Join(samples, ",") + `]`
	}
	const adams = `{"learning_rate":0.001,"beta1":0.9,"beta2":0.95,"eps":1e-8,"weight_decay":0.01,"grad_clip_norm":1}`
	return map[string][]string{
		"/v1/rl/model-resources":                         {resource, adam},
		"/v1/rl/model-resources/estimate-cost":           {resource, adam},
		"/v1/rl/model-resources/*/extend-expiry":         {`{"seconds":3600}`},
		"/v1/rl/training-sessions":                       {`{"model_resources_id":"RESOURCE",` + metadata + `,"lora_config":{"rank":2,"alpha":4,"dropout":0.1,"seed":"7","train_unembed":false},"load_optimizer":true}`, `{"model_resources_id":"RESOURCE","resume_from_checkpoint_id":"CHECKPOINT","load_optimizer":false}`},
		"/v1/rl/training-sessions/*":                     {`{` + metadata + `}`},
		operations + "optim-step":                        {`{"adam_params":` + adams + `}`, `MUON{"muon_params":{"learning_rate":0.01,"momentum":0.9,"newton_schulz_steps":5,"weight_decay":0,"grad_clip_norm":1,"adam":` + adams + `}}`},
		operations + "weights-sync":                      {`{"weight_sync_type":"WEIGHT_SYNC_TYPE_PIPELINE"}`},
		operations + "custom-forward-backward":           {`{"samples":[` + weighted + `,` + policy + `],"gradients":[{"data":[-1,0.5,0],"dtype":"D_TYPE_FLOAT32"},{"data":[1,0,0]}]}`, `{"samples":[],"gradients":[],"payload_id":"CUSTOM"}`},
		operations + "sample":                            {`{"model_inputs":[` + input + `,` + input + `],"num_samples":2,"sampling_params":{"max_tokens":3,"temperature":0.7,"top_p":0.9,"top_k":20,"stop":["!","\n"],"seed":"3"},"prompt_logprobs":true,"topk_prompt_logprobs":2,"return_routed_experts":false}`, `{"model_inputs":[],"payload_id":"PROMPTS"}`},
		"/v1/shaping/prepare-for-fp4-inference":          {`{"inputs":{"model_object_id":"ADAPTER","model_revision_id":"REVISION","calibration_file_id":"file-1"}}`, `{"inputs":{"adapter_object_id":"ADAPTER"}}`},
		"/v1/shaping/prepare-for-fp4-inference/estimate": {`{"inputs":{"model_object_id":"ADAPTER","model_revision_id":"REVISION","calibration_file_id":"file-1"}}`, `{"inputs":{"adapter_object_id":"ADAPTER"}}`},
		operations + "forward-backward": {
			forward("CROSS_ENTROPY", `,"cross_entropy_params":{}`, weighted, weighted) + `,"forward_only":false,"return_loss_fn_outputs":true}`,
			`{"loss":{"type":"LOSS_TYPE_CROSS_ENTROPY"},"samples":[],"payload_id":"PAYLOAD"}`,
			forward("GRPO", `,"grpo_params":{"clip_low_threshold":0.8,"clip_high_threshold":1.2,"beta":0.1,"agg_type":"GRPO_LOSS_AGGREGATION_TYPE_TOKEN_MEAN","ratio_type":"GRPO_LOSS_RATIO_TYPE_SEQUENCE"}`, policy) + `}`,
			forward("PPO", `,"ppo_params":{"clip_low_threshold":0.8,"clip_high_threshold":1.2}`, brief) + `}`,
			forward("CISPO", `,"cispo_params":{"clip_low_threshold":0,"clip_high_threshold":4}`, brief) + `}`,
			forward("DRO", `,"dro_params":{"beta":0.1}`, brief) + `}`,
			forward("DPPO", `,"dppo_params":{"delta_low":0.1,"delta_high":0.2}`, brief) + `}`,
		},
	}
}

// wrong are values to put in the place of others; right ones among them are told by the document.
func wrong() []string {
	return []string{
		`null`, `true`, `"text"`, `"NaN"`, `""`, `"-1"`, `-1`, `0`, `1.5`, `1e300`, `2147483648`, `99999999999999999999`, `"99999999999999999999"`,
		`[]`, `[null]`, `[{}]`, `["NaN"]`, `{}`, `{"data":{"data":[]}}`, `"` + strings.Repeat("x", 2000) + `"`,
	}
}

// spot is a value in a body, by its name in a param, and the ways to have it otherwise.
type spot struct {
	name string
	set  func(v any) any // the whole body with v in this place; absent leaves it out
}

type absent struct{}

// spots lists every value inside v.
func spots(name string, v any, whole func(any) any) (all []spot) {
	switch v := v.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			at := strings.TrimPrefix(name+"."+k, ".")
			set := func(with any) any {
				out := maps.Clone(v)
				if out[k] = with; with == any(absent{}) {
					delete(out, k)
				}
				return whole(out)
			}
			all = append(append(all, spot{at, set}), spots(at, v[k], set)...)
		}
	case []any:
		for i := range v {
			at := fmt.Sprintf("%s[%d]", name, i)
			set := func(with any) any {
				out := slices.Clone(v)
				if out[i] = with; with == any(absent{}) {
					out = slices.Delete(out, i, i+1)
				}
				return whole(out)
			}
			all = append(append(all, spot{at, set}), spots(at, v[i], set)...)
		}
	}
	return all
}

// withoutNulls is what a body with nulls means: absent and null are the same.
func withoutNulls(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, v := range v {
			if v != nil {
				out[k] = withoutNulls(v)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = withoutNulls(v[i])
		}
		return out
	}
	return v
}

// mutant is a body with one value put wrong.
type mutant struct {
	name, put string
	body      any
}

// mutants are those of the places that were not had before, for which indices do not count.
func mutants(t *testing.T, lawful string, had map[string]bool) (all []mutant) {
	t.Helper()
	body := parsed(t, lawful)
	for _, p := range spots("", body, func(v any) any { return v }) {
		if name := unindexed(p.name); had[name] {
			continue
		} else {
			had[name] = true
		}
		all = append(all, mutant{p.name, "absent", p.set(absent{})})
		for _, w := range wrong() {
			all = append(all, mutant{p.name, w, p.set(parsed(t, w))})
		}
	}
	return all
}

// unindexed names a place whichever of a list it is in; the lists themselves, and their entries, are two.
func unindexed(name string) string {
	return regexp.MustCompile(`\[\d+\]`).ReplaceAllString(name, "[]")
}

func parsed(t *testing.T, text string) (v any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return v
}

// workshop is a server with one of everything that a lawful body names.
type workshop struct {
	*client
	names         *strings.Replacer
	session, muon string
	resource      string
}

func newWorkshop(t *testing.T) *workshop {
	_, c := open(t, Options{})
	w := &workshop{client: c}
	w.resource = c.resource(`{"base_model":"sandbox/bytes-tiny"}`).ID
	w.session = c.session(`{"model_resources_id":"` + w.resource + `","lora_config":{"rank":2}}`).ID
	muon := c.resource(`{"base_model":"sandbox/bytes-tiny","optimizer_config":{"muon":{}}}`)
	w.muon = c.session(`{"model_resources_id":"` + muon.ID + `","lora_config":{"rank":2}}`).ID
	var saved wire.TrainingCheckpointOutput
	c.run(w.session, wire.KindTrainingCheckpoint, "", &saved)
	registered := c.registered(`{"base_model":"sandbox/bytes-tiny"}`, "").Adapter
	upload := func(body string) string {
		var up wire.UploadURL
		c.ok("POST", wire.PathSessions+"/"+w.session+"/payloads/upload-url", "", &up)
		c.ok("PUT", up.UploadURL, body, nil)
		return up.PayloadID
	}
	w.names = strings.NewReplacer("RESOURCE", w.resource, "CHECKPOINT", saved.Checkpoint.ID,
		"ADAPTER", registered.ID, "REVISION", registered.RevisionID,
		"PAYLOAD", upload(batch(t, "", row("stored"))), "CUSTOM", upload(custom(t, "", [][]float64{{1, 0}}, row("abc"))),
		"PROMPTS", upload(prompt("", "stored")))
	return w
}

// send asks for an operation of the document, and waits for what it has set going.
func (w *workshop) send(o described, session string, body []byte, key string) (int, []byte) {
	w.t.Helper()
	path := strings.Replace(o.path, "*", session, 1)
	if strings.HasPrefix(o.path, "/v1/rl/model-resources/") {
		path = strings.Replace(o.path, "*", w.resource, 1)
	}
	status, answer := w.do(o.method, path, body, wire.KeyHeader, key)
	if status != http.StatusOK {
		return status, answer
	}
	var made struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal(answer, &made); err != nil {
		w.t.Fatal(err)
	}
	switch kind, ok := strings.CutPrefix(o.path, operations); {
	case ok:
		w.wait(session, wire.Kind(kind), made.ID)
	case o.path == wire.PathSessions: // its slot is for the next one
		w.ok("POST", wire.PathSessions+"/"+made.ID+"/stop", "", nil)
	}
	return status, answer
}

// near: param is about the place, inside of it or around it.
func near(param, place string) bool {
	return param != "" && (strings.HasPrefix(param, place) || strings.HasPrefix(place, param))
}

// together are places that are checked against one another, so that the other one may be named.
func together(param, place string) bool {
	group := func(name string) string {
		switch {
		case strings.HasPrefix(name, "samples["): // its tokens and tensors have one length
			return name[:strings.Index(name, "]")+1]
		case slices.Contains([]string{"payload_id", "samples", "gradients", "model_inputs"}, name): // an upload stands for the others
			return "payload_id"
		case strings.HasPrefix(name, "inputs."): // the ids of one model
			return "inputs"
		case name == "resume_from_checkpoint_id" || name == "load_optimizer":
			return "resume_from_checkpoint_id"
		}
		return name
	}
	if param == "gradients" && strings.HasPrefix(place, "samples[") { // one a sample
		return true
	}
	return group(param) == group(place)
}

// Every body of the document with one value wrong is refused, with an envelope that names the value, or is lawful.
func TestAnyOneWrongValueIsRefusedByName(t *testing.T) {
	covered := 0
	for _, o := range book(t).operations {
		if o.request == nil {
			continue
		}
		bodies := lawful()[o.path]
		if len(bodies) == 0 {
			t.Errorf("%s %s has no lawful body", o.method, o.path)
		}
		if rt, _, err := find(routes(), o.method, strings.ReplaceAll(o.path, "*", "x")); err != nil || rt.serve == nil {
			continue // TestWhatIsNotBuiltSaysSo
		}
		covered++
		t.Run(o.method+" "+strings.ReplaceAll(o.path, "/", ","), func(t *testing.T) {
			t.Parallel()
			w := newWorkshop(t)
			seen, had := 0, map[string]bool{}
			for i, lawful := range bodies {
				session := w.session
				if rest, ok := strings.CutPrefix(lawful, "MUON"); ok {
					lawful, session = rest, w.muon
				}
				lawful = w.names.Replace(lawful)
				if status, answer := w.send(o, session, []byte(lawful), fmt.Sprint("lawful", i)); status != http.StatusOK {
					t.Fatalf("%s: got %d %s, want 200", lawful, status, answer)
				}
				if err := o.request.Validate(parsed(t, lawful)); err != nil {
					t.Fatalf("%s is not lawful: %v", lawful, err)
				}
				for j, m := range mutants(t, lawful, had) {
					seen++
					b, err := json.Marshal(m.body)
					if err != nil {
						t.Fatal(err)
					}
					w.judge(o, session, m, b, fmt.Sprintf("%d.%d", i, j))
				}
			}
			t.Logf("%d bodies", seen)
		})
	}
	if covered < 10 {
		t.Errorf("%d operations were asked, want all that take a body", covered)
	}
}

func (w *workshop) judge(o described, session string, m mutant, body []byte, key string) {
	w.t.Helper()
	status, answer := w.send(o, session, body, key)
	unlawful := o.request.Validate(withoutNulls(m.body))
	var e wire.ErrorBody
	switch {
	case status == http.StatusOK:
		if unlawful != nil {
			w.t.Errorf("%s as %.60s was taken; the document: %v", m.name, m.put, unlawful)
		}
		return
	case status < 400 || status > 499:
		w.t.Errorf("%s as %.60s: got %d %s", m.name, m.put, status, answer)
	}
	if err := json.Unmarshal(answer, &e); err != nil || e.Error.Param == nil {
		w.t.Errorf("%s as %.60s: got %s, want a param", m.name, m.put, answer)
		return
	}
	if p := *e.Error.Param; !near(p, m.name) && !together(p, m.name) {
		w.t.Errorf("%s as %.60s: param %q: %s", m.name, m.put, p, e.Error.Message)
	}
	if p := *e.Error.Param; !strings.Contains(e.Error.Message, lastPart(p)) && status != http.StatusNotFound {
		w.t.Errorf("%s as %.60s: %q does not name %s", m.name, m.put, e.Error.Message, p)
	}
}

// unsupported are members that no lawful body of this test has: the document says that no operation takes them.
var unsupported = []string{"sparse_crow_indices", "sparse_col_indices"}

// The bodies above would prove little if they left members out.
func TestLawfulBodiesHaveEveryMemberOfTheDocument(t *testing.T) {
	root, err := parseDocument()
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range book(t).operations {
		if o.request == nil {
			continue
		}
		had := map[string]bool{}
		for _, text := range lawful()[o.path] {
			text = strings.TrimPrefix(text, "MUON")
			for _, p := range spots("", parsed(t, text), func(v any) any { return v }) {
				had[strings.ReplaceAll(unindexed(p.name), "[]", "")] = true
			}
		}
		for _, want := range members(root, "", o.body) {
			if !had[want] && !slices.Contains(unsupported, want[strings.LastIndex(want, ".")+1:]) {
				t.Errorf("%s %s: no lawful body has %s", o.method, o.path, want)
			}
		}
	}
}

// members lists the names that a schema has for what is inside of it.
func members(root map[string]any, name string, schema map[string]any) (all []string) {
	if ref, ok := schema["$ref"].(string); ok {
		schema = root["components"].(map[string]any)["schemas"].(map[string]any)[ref[strings.LastIndex(ref, "/")+1:]].(map[string]any)
	}
	if items, ok := schema["items"].(map[string]any); ok {
		return members(root, name, items)
	}
	properties, _ := schema["properties"].(map[string]any)
	for member, inner := range properties {
		at := strings.TrimPrefix(name+"."+member, ".")
		all = append(append(all, at), members(root, at, inner.(map[string]any))...)
	}
	if open, ok := schema["additionalProperties"].(map[string]any); ok { // the tensors of a sample
		for _, tensor := range []string{"target_tokens", "weights", "mask", "logprobs", "advantages", "reference_logprobs"} {
			all = append(all, members(root, name+"."+tensor, open)...)
		}
	}
	return all
}
