package sandbox

import (
	"encoding/json"
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"trainer/internal/wire"
)

// capture is traffic of the official SDK with a server that answered by the book. The sandbox is sent the same requests:
// it must take them, and its answers must have every member of the recorded ones, with values of the same JSON type.
type capture struct {
	Exchanges []exchange `json:"exchanges"`
}

type exchange struct {
	Method  string            `json:"method"`
	Path    string            `json:"path"`
	Query   string            `json:"raw_query"`
	Headers map[string]string `json:"headers"`
	Body    json.RawMessage   `json:"request_body"`
	Status  int               `json:"response_status"`
	Answer  json.RawMessage   `json:"response_body"`
}

// The ids of the captures.
const (
	capturedResource   = "11111111-1111-4111-8111-111111111111"
	capturedSession    = "22222222-2222-4222-8222-222222222222"
	capturedTraining   = "33333333-3333-4333-8333-333333333333"
	capturedInference  = "44444444-4444-4444-8444-444444444444"
	capturedUpload     = "/blob/pl_0001?sig=PRESIGNED"
	capturedPayload    = "pl_0001"
	capturedModel      = "ml_Adapter01"
	capturedRevision   = "rv_Adapter01"
	capturedJob        = "shp-quant-0001"
	capturedOperations = `00000000-0000-4000-8000-00000000000\d`
)

// optional members depend on circumstances that the captures make up: a queue, a name that was cleared, a KL to a reference
// where there is none, a key of routed experts of a model that is dense.
var optional = map[string]bool{
	"status_details.queue_position": true, "display_name": true, "output.metrics.loss/kl_ref/mean": true,
	"output.results[0].sequences[0].routed_experts_key": true,
}

func TestTheOfficialSDKsRequestsAreServed(t *testing.T) {
	files, err := filepath.Glob("testdata/captures/*.json")
	if err != nil || len(files) < 60 {
		t.Fatalf("%d captures, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			t.Parallel()
			cap := readCapture(t, file)
			in := circumstances()[strings.TrimSuffix(filepath.Base(file), ".json")]
			r := newReplay(t, in)
			switch filepath.Base(file) {
			case "model_resources_stop.json":
				for _, id := range r.sessions {
					r.c.ok("POST", wire.PathSessions+"/"+id+"/stop", "", nil)
				}
			case "model_resources_stop_already_stopped.json":
				r.c.ok("POST", wire.PathResources+"/"+r.ids[capturedResource]+"/stop?force=true", "", nil)
			case "session_create_full.json": // which resumes from a checkpoint of its own shape
				var saved wire.TrainingCheckpointOutput
				id := r.c.session(`{"model_resources_id":"` + r.ids[capturedResource] +
					`","lora_config":{"rank":16,"alpha":32,"train_unembed":false}}`).ID
				r.c.run(id, wire.KindTrainingCheckpoint, "", &saved)
				r.ids[capturedTraining] = saved.Checkpoint.ID
			case "forward_backward_routed_experts.json": // its key is of a sampled sequence
				resource := r.c.resource(`{"base_model":"openai/gpt-oss-20b"}`).ID
				r.ids[capturedSession] = r.c.session(`{"model_resources_id":"` + resource + `"}`).ID
				out := r.c.sample(r.ids[capturedSession], prompt(`,"return_routed_experts":true,"sampling_params":{"max_tokens":2}`, "hello"))
				r.ids["rek_0"] = out.Results[0].Sequences[0].RoutedExpertsKey
			case "optim_step_muon.json":
				resource := r.c.resource(`{"base_model":"Qwen/Qwen3.5-4B","optimizer_config":{"muon":{}}}`).ID
				r.ids[capturedSession] = r.c.session(`{"model_resources_id":"` + resource + `"}`).ID
			}
			for i, x := range cap.Exchanges {
				r.send(i, x)
			}
		})
	}
}

// replay is a server with what the captures take for granted: a resource with a session, and older ones behind them for
// the lists; a checkpoint of each kind; a job.
type replay struct {
	t        *testing.T
	c        *client
	ids      map[string]string // of the captures → of this server
	sessions []string
	server   *Server
	clock    *handClock
	in       circumstance
}

func newReplay(t *testing.T, in circumstance) *replay {
	clock := newHandClock()
	s, c := open(t, Options{Clock: clock, Faults: rules(t, in.faults...), OpTime: in.op})
	r := &replay{t: t, c: c, ids: map[string]string{}, server: s, clock: clock, in: in}
	const create = `{"base_model":"Qwen/Qwen3.5-4B"}`
	c.resource(create)
	resource := c.resource(create).ID
	older := c.session(`{"model_resources_id":"` + resource + `"}`).ID
	session := c.session(`{"model_resources_id":"` + resource + `","display_name":"n","lora_config":{"seed":1}}`).ID
	var training wire.TrainingCheckpointOutput
	var inference wire.InferenceCheckpointOutput
	c.run(session, wire.KindTrainingCheckpoint, "", &training)
	c.run(session, wire.KindInferenceCheckpoint, "", &inference)
	r.sessions = []string{older, session}
	r.ids[capturedResource], r.ids[capturedSession] = resource, session
	r.ids[capturedTraining], r.ids[capturedInference] = training.Checkpoint.ID, inference.Checkpoint.ID
	adapter := inference.Checkpoint.Registration.Adapter
	r.ids[capturedModel], r.ids[capturedRevision] = adapter.ID, adapter.RevisionID
	var j wire.QuantizationJob
	c.ok("POST", wire.PathPrepareFP4, r.translate(`{"inputs":{"model_object_id":"`+capturedModel+`","model_revision_id":"`+capturedRevision+`"}}`), &j)
	r.ids[capturedJob] = j.ID
	if in.ready != nil {
		in.ready(r)
	}
	return r
}

func (r *replay) translate(s string) string {
	for from, to := range r.ids {
		s = strings.ReplaceAll(s, from, to)
	}
	return s
}

func (r *replay) send(i int, x exchange) {
	r.t.Helper()
	if before := r.in.before[i]; before != nil {
		before(r)
	}
	target := x.Path
	if x.Query != "" {
		target += "?" + x.Query
	}
	var header []string
	for name, value := range x.Headers {
		header = append(header, name, value)
	}
	body := ""
	if string(x.Body) != "null" {
		body = r.translate(string(x.Body))
	}
	target = r.translate(target)
	status, got := r.c.do(x.Method, target, []byte(body), header...)
	if polled := regexp.MustCompile(`operations/([a-z-]+)/([^/]+)$`).FindStringSubmatch(target); polled != nil && x.Method == "GET" {
		op := r.c.wait(r.ids[capturedSession], wire.Kind(polled[1]), polled[2])
		got, _ = json.Marshal(op)
	}
	if instead, ok := r.in.status[i]; ok && status == instead {
		return // an answer of another kind: nothing to compare
	} else if ok || status != x.Status {
		r.t.Fatalf("exchange %d, %s %s: got %d %s, want %d", i, x.Method, target, status, got, x.Status)
	}
	r.learn(x, got)
	r.sameState(i, x, got)
	if strings.HasPrefix(x.Path, "/file/") {
		if len(got) == 0 {
			r.t.Errorf("exchange %d: %s is empty", i, target)
		}
		return
	}
	var want, have any
	if json.Unmarshal(x.Answer, &want) != nil || json.Unmarshal(got, &have) != nil {
		r.t.Fatalf("exchange %d: %s is not JSON", i, got)
	}
	for _, missing := range lacks("", want, have) {
		if missing == r.in.lacks[i] {
			continue
		}
		r.t.Errorf("exchange %d, %s %s: the answer lacks %s: %s", i, x.Method, target, missing, got)
	}
}

// learn notes what the recorded ids are here.
func (r *replay) learn(x exchange, got []byte) {
	var was, is struct {
		ID        string `json:"id"`
		PayloadID string `json:"payload_id"`
		UploadURL string `json:"upload_url"`
		Download  string `json:"download_url"`
		Output    struct {
			PayloadID string `json:"payload_id"`
		} `json:"output"`
	}
	_, _ = json.Unmarshal(x.Answer, &was), json.Unmarshal(got, &is) // lists and empty answers name nothing
	var wasFiles, isFiles wire.CheckpointFiles
	if json.Unmarshal(x.Answer, &wasFiles) == nil && json.Unmarshal(got, &isFiles) == nil && len(isFiles.Data) >= len(wasFiles.Data) {
		for i, f := range wasFiles.Data {
			if is, err := url.Parse(isFiles.Data[i].URL); err == nil {
				r.ids[strings.TrimPrefix(f.URL, "{{base_url}}")] = is.RequestURI()
			}
		}
	}
	if was.ID != "" && (x.Method == "POST" || regexp.MustCompile(capturedOperations).MatchString(was.ID)) {
		r.ids[was.ID] = is.ID
	}
	if u, err := url.Parse(is.UploadURL); err == nil && is.UploadURL != "" {
		r.ids[capturedUpload] = u.RequestURI()
		r.ids[`"`+capturedPayload+`"`] = `"` + is.PayloadID + `"`
	}
	if u, err := url.Parse(is.Download); err == nil && is.Download != "" {
		r.ids[strings.TrimPrefix(was.Download, "{{base_url}}")] = u.RequestURI()
	}
	if was.Output.PayloadID != "" {
		r.ids["/payloads/"+was.Output.PayloadID+"/"] = "/payloads/" + is.Output.PayloadID + "/"
	}
}

// lacks lists the members of want that have is without, or has with a value of another type.
func lacks(place string, want, have any) []string {
	switch w := want.(type) {
	case map[string]any:
		h, ok := have.(map[string]any)
		if !ok {
			return []string{place}
		}
		var missing []string
		for name, v := range w {
			at := strings.TrimPrefix(place+"."+name, ".")
			if _, ok := h[name]; !ok {
				if !optional[at] {
					missing = append(missing, at)
				}
				continue
			}
			missing = append(missing, lacks(at, v, h[name])...)
		}
		return missing
	case []any:
		h, ok := have.([]any)
		if !ok || len(w) > 0 && len(h) == 0 {
			return []string{place}
		}
		if len(w) > 0 {
			return lacks(place+"[0]", w[0], h[0])
		}
	case nil:
	default:
		if fmt.Sprintf("%T", want) != fmt.Sprintf("%T", have) {
			return []string{fmt.Sprintf("%s as %T", place, want)}
		}
	}
	return nil
}
