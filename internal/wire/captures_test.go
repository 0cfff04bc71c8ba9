package wire

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"testing"
)

// capture is one recorded call of the official client, with an example server's answers.
type capture struct {
	Exchanges []struct {
		Method         string          `json:"method"`
		Path           string          `json:"path"`
		RequestBody    json.RawMessage `json:"request_body"`
		ResponseStatus int             `json:"response_status"`
		ResponseBody   json.RawMessage `json:"response_body"`
	} `json:"exchanges"`
}

func captures(t *testing.T) map[string]capture {
	t.Helper()
	files, err := filepath.Glob("testdata/captures/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no captures: %v", err)
	}
	all := map[string]capture{}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var c capture
		if err := json.Unmarshal(b, &c); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all[filepath.Base(file)] = c
	}
	return all
}

// through returns b decoded into T and encoded again.
func through[T any](b []byte) ([]byte, error) {
	var v T
	if err := json.Unmarshal(b, &v); err != nil {
		return nil, err
	}
	return json.Marshal(v)
}

func throughBody(b []byte) ([]byte, error) {
	f, err := DecodeForwardBackward(bytes.NewReader(b), 0)
	if err != nil {
		return nil, err
	}
	return AppendForwardBackward(nil, f)
}

func throughCustom(b []byte) ([]byte, error) {
	f, err := DecodeCustomForwardBackward(bytes.NewReader(b), 0)
	if err != nil {
		return nil, err
	}
	return AppendCustomForwardBackward(nil, f)
}

// throughUploaded reads what was uploaded as what it is the body of.
func throughUploaded(b []byte) ([]byte, error) {
	if bytes.Contains(b, []byte(`"model_inputs"`)) {
		return throughSample(b)
	}
	if bytes.Contains(b, []byte(`"gradients"`)) {
		return throughCustom(b)
	}
	return throughBody(b)
}

func throughOperation(b []byte) ([]byte, error) {
	op, err := DecodeForwardBackwardOperation(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	return json.Marshal(op)
}

// throughSample writes what was read in the words of the wire.
func throughSample(b []byte) ([]byte, error) {
	q, err := DecodeSample(bytes.NewReader(b), 0)
	if err != nil {
		return nil, err
	}
	body := map[string]any{}
	var inputs []any
	for _, tokens := range q.Inputs {
		inputs = append(inputs, map[string]any{"chunks": []any{map[string]any{"encoded_text": map[string]any{"tokens": tokens}}}})
	}
	body["model_inputs"] = inputs
	params := map[string]any{}
	set := func(m map[string]any, name string, there bool, v any) {
		if there {
			m[name] = v
		}
	}
	p := q.Params
	set(params, "max_tokens", p.MaxTokens != nil, p.MaxTokens)
	set(params, "temperature", p.Temperature != nil, p.Temperature)
	set(params, "top_p", p.TopP != nil, p.TopP)
	set(params, "top_k", p.TopK != nil, p.TopK)
	set(params, "stop", p.Stop != nil, p.Stop)
	if p.Seed != nil {
		params["seed"] = Int64(*p.Seed)
	}
	set(body, "sampling_params", len(params) > 0, params)
	set(body, "num_samples", q.NumSamples != nil, q.NumSamples)
	set(body, "prompt_logprobs", q.PromptLogprobs, true)
	set(body, "topk_prompt_logprobs", q.TopPromptLogprobs > 0, q.TopPromptLogprobs)
	set(body, "return_routed_experts", q.RoutedExperts, true)
	set(body, "payload_id", q.PayloadID != "", q.PayloadID)
	return json.Marshal(body)
}

type route struct {
	pattern         string // of method and path
	request, answer func([]byte) ([]byte, error)
}

func routes() []route {
	const id = `/[0-9a-f-]{36}`
	session := "POST " + PathSessions + id
	op := func(kind Kind, request, answer func([]byte) ([]byte, error)) route {
		return route{`(POST|GET) ` + PathSessions + id + `/operations/` + string(kind) + `(` + id + `)?`, request, answer}
	}
	return []route{
		{"GET " + PathModels, nil, through[SupportedModels]},
		{"POST " + PathResources, through[CreateResource], through[Resource]},
		{"POST " + PathResources + "/estimate-cost", through[CreateResource], through[CostEstimate]},
		{"GET " + PathResources, nil, through[Page[Resource]]},
		{"GET " + PathResources + id, nil, through[Resource]},
		{"POST " + PathResources + id + "/stop", nil, through[Resource]},
		{"POST " + PathResources + id + "/extend-expiry", through[ExtendExpiry], through[Resource]},
		{"POST " + PathSessions, through[CreateSession], through[Session]},
		{"GET " + PathSessions, nil, through[Page[Session]]},
		{"GET " + PathSessions + id, nil, through[Session]},
		{"PATCH " + PathSessions + id, through[UpdateSession], through[Session]},
		{session + "/stop", nil, through[Session]},
		{session + "/payloads/upload-url", nil, through[UploadURL]},
		{session + "/payloads/[a-z0-9_]+/download-url", nil, through[DownloadURL]},
		{"PUT /blob/.*", throughUploaded, nil},
		{"GET /blob/.*", nil, through[ForwardBackwardOutput]},
		{"GET " + PathCheckpoints, nil, through[Page[Checkpoint]]},
		{"GET " + PathCheckpoints + id, nil, through[Checkpoint]},
		{"GET " + PathCheckpoints + id + "/download", nil, through[CheckpointFiles]},
		op(KindForwardBackward, throughBody, throughOperation),
		op(KindCustomForwardBackward, throughCustom, through[Operation[struct{}]]),
		op(KindOptimStep, through[OptimStep], through[Operation[OptimStepOutput]]),
		op(KindWeightsSync, through[WeightsSync], through[Operation[WeightsSyncOutput]]),
		op(KindSample, throughSample, through[Operation[SampleOutput]]),
		op(KindTrainingCheckpoint, nil, through[Operation[TrainingCheckpointOutput]]),
		op(KindInferenceCheckpoint, nil, through[Operation[InferenceCheckpointOutput]]),
	}
}

// normal is b as values, without what our form of a body says otherwise: the chunks of an input are joined, shape and
// the empty parameters of a loss are left out, a session without a name has no member for it.
func normal(t *testing.T, b []byte) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatalf("%.200s: %v", b, err)
	}
	return prune(v)
}

func prune(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = prune(v[i])
		}
	case map[string]any:
		delete(v, "shape")
		delete(v, "cross_entropy_params")
		if _, answer := v["id"]; answer && v["display_name"] == "" {
			delete(v, "display_name")
		}
		if chunks, ok := v["chunks"].([]any); ok {
			tokens := []any{}
			for _, c := range chunks {
				tokens = append(tokens, c.(map[string]any)["encoded_text"].(map[string]any)["tokens"].([]any)...)
			}
			v["chunks"] = tokens
		}
		for k := range v {
			v[k] = prune(v[k])
		}
	}
	return v
}

func TestEveryCaptureSurvivesTheTypes(t *testing.T) {
	used := map[string]bool{}
	for name, c := range captures(t) {
		for i, e := range c.Exchanges {
			call := e.Method + " " + e.Path
			var r route
			for _, candidate := range routes() {
				if regexp.MustCompile("^" + candidate.pattern + "$").MatchString(call) {
					r = candidate
				}
			}
			if r.pattern == "" {
				t.Errorf("%s, exchange %d: nothing reads %s", name, i, call)
				continue
			}
			used[r.pattern] = true
			if e.ResponseStatus >= 400 {
				r.answer = through[ErrorBody]
			}
			same(t, name+" request of "+call, r.request, e.RequestBody)
			same(t, name+" answer to "+call, r.answer, e.ResponseBody)
		}
	}
	for _, r := range routes() {
		if !used[r.pattern] {
			t.Errorf("no capture uses %s", r.pattern)
		}
	}
}

func same(t *testing.T, what string, f func([]byte) ([]byte, error), body []byte) {
	t.Helper()
	if len(body) == 0 || string(body) == "null" {
		return
	}
	if f == nil {
		t.Errorf("%s: a body that no type is for: %s", what, body)
		return
	}
	got, err := f(body)
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return
	}
	if g, w := normal(t, got), normal(t, body); !reflect.DeepEqual(g, w) {
		t.Errorf("%s\ngot  %v\nwant %v", what, g, w)
	}
}

func TestShortenedCustomBodyIsTheOfficialOne(t *testing.T) {
	c := captures(t)["custom_forward_backward_large_payload.json"]
	full, err := DecodeCustomForwardBackward(bytes.NewReader(c.Exchanges[1].RequestBody), 0)
	if err != nil {
		t.Fatal(err)
	}
	got, err := AppendCustomForwardBackward(nil, full.Shortened("pl_0001"))
	if err != nil {
		t.Fatal(err)
	}
	if g, w := normal(t, got), normal(t, c.Exchanges[2].RequestBody); !reflect.DeepEqual(g, w) {
		t.Errorf("got  %v\nwant %v", g, w)
	}
	if len(full.Gradients[0]) != 11 {
		t.Errorf("shortening changed the full body: %v", full.Gradients[0])
	}
}

func TestShortenedBodyIsTheOfficialOne(t *testing.T) {
	c := captures(t)["forward_backward_large_payload.json"]
	full, err := DecodeForwardBackward(bytes.NewReader(c.Exchanges[1].RequestBody), 0)
	if err != nil {
		t.Fatal(err)
	}
	got, err := AppendForwardBackward(nil, full.Shortened("pl_0001"))
	if err != nil {
		t.Fatal(err)
	}
	if g, w := normal(t, got), normal(t, c.Exchanges[2].RequestBody); !reflect.DeepEqual(g, w) {
		t.Errorf("got  %v\nwant %v", g, w)
	}
	if len(full.Samples[0].Tokens) != 11 {
		t.Errorf("shortening changed the full body: %v", full.Samples[0].Tokens)
	}
}
