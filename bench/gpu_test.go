package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// gpu is a server of the API whose operations take as long as it is told, one after another in the order of their
// acceptance, and compute nothing. It is a process of its own, so that its work is not counted as the client's.
type gpu struct {
	mu    sync.Mutex
	dur   map[string]time.Duration // by operation, as its path spells it
	rtt   time.Duration
	until time.Time // when the last accepted operation will have ended
	ops   map[string]*work
	tally tally
}

// work is one operation.
type work struct {
	kind       string
	begin, end time.Time
	step       int
	noticed    bool
}

// tally is what came in since the last reset. Busy and Span are of the operations that train: how long the GPU worked, and
// from its first start to its last end.
type tally struct {
	Requests, Polls, Operations int
	PostBytes, PutBytes         int64
	Steps                       int
	Busy, Span                  time.Duration
	LateMean, LateMax           time.Duration // from an operation's end to the answer that says so

	first, last time.Time
	late        time.Duration
	noticed     int
}

// train counts an operation that trains, scheduled from begin to end.
func (t *tally) train(begin, end time.Time) {
	if t.first.IsZero() {
		t.first = begin
	}
	t.Busy += end.Sub(begin)
	t.last = end
	t.Span = t.last.Sub(t.first)
}

func (t *tally) notice(late time.Duration) {
	t.noticed++
	t.late += late
	t.LateMean, t.LateMax = t.late/time.Duration(t.noticed), max(t.LateMax, late)
}

// share is the part of the time in which the GPU worked, from 0 to 1.
func (t *tally) share() float64 { return t.Busy.Seconds() / t.Span.Seconds() }

// settings is the body of POST /control, which answers the tally so far and begins a new one.
type settings struct{ Forward, Optim, RTT time.Duration }

const serveVariable = "BENCH_SERVE_GPU"

// TestMain is the server where it is asked to be.
func TestMain(m *testing.M) {
	if os.Getenv(serveVariable) == "" {
		os.Exit(m.Run())
	}
	s := httptest.NewServer(&gpu{ops: map[string]*work{}, dur: map[string]time.Duration{}})
	fmt.Println(s.URL)
	_, _ = io.Copy(io.Discard, os.Stdin) // until the parent ends
}

// serve starts a server and returns its address.
func serve(b *testing.B) string {
	b.Helper()
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	child := exec.Command(self)
	child.Env = append(os.Environ(), serveVariable+"=1")
	child.Stderr = os.Stderr
	in, err := child.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := child.StdoutPipe()
	if err == nil {
		err = child.Start()
	}
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = in.Close(); _ = child.Wait() })
	var url string
	if _, err := fmt.Fscanln(out, &url); err != nil {
		b.Fatal(err)
	}
	return url
}

// control resets the server's counts, sets durations, and returns what was counted before.
func control(b *testing.B, url string, s settings) tally {
	b.Helper()
	body, err := json.Marshal(s)
	if err != nil {
		b.Fatal(err)
	}
	res, err := http.Post(url+"/control", "application/json", strings.NewReader(string(body)))
	if err != nil {
		b.Fatal(err)
	}
	defer res.Body.Close()
	var t tally
	if err := json.NewDecoder(res.Body).Decode(&t); err != nil {
		b.Fatal(err)
	}
	return t
}

const (
	model    = "sandbox/bytes-tiny" // whose tokenizer is at hand
	resource = `{"id":"mr","base_model":"` + model + `","compute_config":{"gpu_type":"G","num_generator_replicas":0},"lora_enabled":true,
"optimizer_config":{"adam":{}},"inactive_timeout":900,"created_at":"2026-01-01T00:00:00Z","updated_at":"2026-01-01T00:00:00Z",
"created_by":"me","status":"MODEL_RESOURCES_STATUS_%s","status_details":{}}`
	session = `{"id":"ts","base_model":"` + model + `","model_resources_id":"mr","step":"%[2]d","policy_state":{"applied_weights_version":"0",
"target_weights_version":"0","trainer_step":"%[2]d","pending_publish":false},"metadata":{},"inference_checkpoints":[],"training_checkpoints":[],
"created_at":"2026-01-01T00:00:00Z","updated_at":"2026-01-01T00:00:00Z","created_by":"me","status":"TRAINING_SESSION_STATUS_%[1]s"}`
	models = `{"data":[{"base_model":"` + model + `","default_gpu_type":"G","compute_configs":[{"gpu_type":"G","trainer_config":
{"lora":{"max_batch_size":1024,"max_seq_length":65536,"max_rank":64}}}]}]}`
	saved = `{"checkpoint":{"id":"%s","step":"%d","created_at":"2026-01-01T00:00:00Z"}}`
)

func (g *gpu) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body := []byte(nil)
	n := int64(0)
	if r.Method == http.MethodPut {
		n, _ = io.Copy(io.Discard, r.Body)
	} else {
		body, _ = io.ReadAll(r.Body)
		n = int64(len(body))
	}
	if r.URL.Path == "/control" {
		g.control(w, body)
		return
	}
	g.mu.Lock()
	trip := g.rtt
	g.tally.Requests++
	switch r.Method {
	case http.MethodPost:
		g.tally.PostBytes += n
	case http.MethodPut:
		g.tally.PutBytes += n
	}
	g.mu.Unlock()
	time.Sleep(trip / 2)
	answer := g.answer(r, body)
	time.Sleep(trip / 2)
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, answer)
}

func (g *gpu) control(w io.Writer, body []byte) {
	var s settings
	_ = json.Unmarshal(body, &s) // the zero settings otherwise: an instant GPU
	g.mu.Lock()
	defer g.mu.Unlock()
	_ = json.NewEncoder(w).Encode(g.tally)
	g.tally, g.rtt = tally{}, s.RTT
	g.dur = map[string]time.Duration{"forward-backward": s.Forward, "optim-step": s.Optim}
}

// answer is what the route answers.
func (g *gpu) answer(r *http.Request, body []byte) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	last := parts[len(parts)-1]
	switch {
	case r.Method == http.MethodPut:
		return `{}`
	case last == "supported-models":
		return models
	case last == "estimate-cost":
		return `{"price_per_hour":0,"currency":"USD"}`
	case last == "upload-url":
		return fmt.Sprintf(`{"payload_id":"p","upload_url":"http://%s/blob"}`, r.Host)
	case len(parts) > 4 && parts[4] == "operations" && r.Method == http.MethodPost:
		return g.accept(last, r.Header.Get("Idempotency-Key"), body)
	case len(parts) > 4 && parts[4] == "operations":
		return g.look(last)
	case parts[2] == "model-resources" && r.Method == http.MethodGet && len(parts) == 3:
		return `{"data":[],"meta":{}}`
	case parts[2] == "model-resources":
		return fmt.Sprintf(resource, map[bool]string{true: "STOPPED", false: "READY"}[last == "stop"])
	}
	return fmt.Sprintf(session, map[bool]string{true: "STOPPED", false: "RUNNING"}[last == "stop"], g.tally.Steps)
}

// accept puts an operation behind those that were accepted before; the same key is the same operation.
func (g *gpu) accept(kind, key string, body []byte) string {
	id := kind + "." + key
	if _, again := g.ops[id]; again {
		return fmt.Sprintf(`{"id":%q,"status":"TRAINING_OPERATION_STATUS_PENDING"}`, id)
	}
	now := time.Now()
	begin := now
	if g.until.After(now) {
		begin = g.until
	}
	trains := kind == "optim-step" || kind == "forward-backward" && !strings.Contains(string(body), `"forward_only":true`)
	end := begin
	if trains {
		end = begin.Add(g.dur[kind])
		g.tally.train(begin, end)
	}
	if kind == "optim-step" {
		g.tally.Steps++
	}
	g.tally.Operations++
	g.until = end
	g.ops[id] = &work{kind: kind, begin: begin, end: end, step: g.tally.Steps}
	return fmt.Sprintf(`{"id":%q,"status":"TRAINING_OPERATION_STATUS_PENDING"}`, id)
}

// look answers a poll.
func (g *gpu) look(id string) string {
	g.tally.Polls++
	op, now := g.ops[id], time.Now()
	if op == nil {
		return `{}`
	}
	if now.Before(op.end) {
		return fmt.Sprintf(`{"id":%q,"status":"TRAINING_OPERATION_STATUS_RUNNING"}`, id)
	}
	if !op.noticed {
		op.noticed = true
		g.tally.notice(now.Sub(op.end))
	}
	output := `{"loss":1,"metrics":{}}`
	switch op.kind {
	case "optim-step":
		output = fmt.Sprintf(`{"step":"%d"}`, op.step)
	case "training-checkpoint", "inference-checkpoint":
		output = fmt.Sprintf(saved, id, op.step)
	}
	return fmt.Sprintf(`{"id":%q,"status":"TRAINING_OPERATION_STATUS_COMPLETED","output":%s}`, id, output)
}
