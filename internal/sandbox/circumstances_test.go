package sandbox

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"trainer/internal/wire"
)

// circumstance is what a capture was recorded under, beyond what every replay has.
type circumstance struct {
	faults []string
	op     OpTime
	ready  func(*replay)
	before map[int]func(*replay) // of an exchange
	states map[int]string        // the status that a resource, session or operation must be in, without prefix
	lacks  map[int]string        // a recorded member that has no place in that state
	status map[int]int           // what the sandbox answers where the recorded server, which was an example, did otherwise
}

func circumstances() map[string]circumstance {
	all := map[string]circumstance{
		"error_400": {ready: func(r *replay) {
			muon := r.c.resource(`{"base_model":"Qwen/Qwen3.5-4B","optimizer_config":{"muon":{}}}`).ID
			r.ids[capturedSession] = r.c.session(`{"model_resources_id":"` + muon + `"}`).ID
		}},
		"fp4_cancel": {op: OpTime{Preparing: {Base: time.Hour}}},
		"error_401":  {faults: []string{"unauthorized:on=optim-step"}},
		"error_404":  {ready: func(r *replay) { r.ids[capturedSession] = capturedSession }},
		"error_422": {ready: func(r *replay) {
			r.c.keyed(r.ids[capturedSession], wire.KindOptimStep, "<uuid4:1>", `{}`)
		}},
		"forward_offloaded_result": {ready: func(r *replay) { r.server.inline = 1 }},
		"model_resources_create_wait_error": {
			faults: []string{"queue:at=3,fixed=1h,position=2", "resource-error:at=3,after=1m"},
			before: map[int]func(*replay){2: anHour},
			states: map[int]string{0: "PENDING", 1: "PENDING", 2: "ERROR"},
			status: map[int]int{3: http.StatusBadRequest}, // what has failed is not stopped any more
		},
		"model_resources_create_wait_timeout": {
			faults: []string{"queue:at=3,fixed=1h,position=2"},
			states: map[int]string{0: "PENDING", 1: "PENDING", 2: "STOPPING"},
		},
		"session_create_wait_error": {
			faults: []string{"resource-error:at=2,after=1m"},
			before: map[int]func(*replay){2: anHour},
			states: map[int]string{1: "CREATING", 2: "ERROR", 3: "ERROR"},
			lacks:  map[int]string{1: "error"},
		},
		"session_attach_trainer_only": {ready: func(r *replay) {
			r.ids[capturedResource] = r.c.resource(`{"base_model":"Qwen/Qwen3.5-4B","compute_config":{"num_generator_replicas":0}}`).ID
			r.ids[capturedSession] = r.c.session(`{"model_resources_id":"` + r.ids[capturedResource] + `","display_name":"n","lora_config":{"seed":1}}`).ID
		}},
		"tinker_close_borrowed":      {states: map[int]string{0: "STOPPING", 1: "STOPPED"}},
		"retry_429":                  {faults: []string{"too-many-requests:on=optim-step,times=1"}},
		"retry_500":                  {faults: []string{"server-error:on=optim-step,times=1"}},
		"retry_503":                  {faults: []string{"server-error:on=optim-step,times=1,status=503"}},
		"retry_x_should_retry_false": {faults: []string{"server-error:on=optim-step,times=1,status=503"}},
		// No fault of the sandbox has these statuses: it accepts the first attempt, and the second one finds its operation.
		"retry_408": {status: map[int]int{0: http.StatusOK}},
		"retry_409": {status: map[int]int{0: http.StatusOK}},
	}
	for _, code := range []string{"INTERNAL_ERROR", "INVALID_INPUT", "NON_FINITE_LOSS", "RESOURCE_EXHAUSTED", "SESSION_NOT_ACTIVE", "TIMEOUT"} {
		all["operation_failed_"+strings.ToLower(code)] = circumstance{faults: []string{"fail:on=forward-backward,code=" + code}}
	}
	return all
}

func anHour(r *replay) { r.clock.at = r.clock.at.Add(time.Hour) }

// leftOut are the captures that are not replayed, and why.
func leftOut() map[string]string {
	return map[string]string{
		"error_402":                    "nobody pays for a training session here; FP4 preparation alone asks for money",
		"error_403":                    "who is let in may do everything; presigned addresses, which are none of the SDK's calls, give 403",
		"generator_absent":             "the client refuses by itself; testdata/sdk/surface.py shows it",
		"tinker_stale_sampling_client": "the client refuses by itself; testdata/sdk/tinker_loop.py shows it",
	}
}

func TestEveryCaptureIsReplayedOrLeftOutForAReason(t *testing.T) {
	files, err := filepath.Glob("testdata/captures/*.json")
	if err != nil {
		t.Fatal(err)
	}
	replayed := map[string]bool{}
	for _, f := range files {
		replayed[strings.TrimSuffix(filepath.Base(f), ".json")] = true
	}
	out := leftOut()
	for name := range out {
		if replayed[name] {
			t.Errorf("%s is replayed and left out", name)
		}
	}
	for name := range circumstances() {
		if !replayed[name] {
			t.Errorf("%s has circumstances and no capture", name)
		}
	}
	if got := len(replayed) + len(out); got != 118 {
		t.Errorf("%d captures are replayed and %d left out, want 118 together", len(replayed), len(out))
	}
	for i, o := range book(t).operations {
		if !slices.ContainsFunc(files, func(f string) bool { return asks(t, f, o.method, o.path) }) {
			t.Errorf("operation %d, %s %s, is in no capture", i, o.method, o.path)
		}
	}
}

// asks: a capture has a request of the operation.
func asks(t *testing.T, file, method, path string) bool {
	t.Helper()
	for _, x := range readCapture(t, file).Exchanges {
		if _, ok := match(path, x.Path); ok && x.Method == method {
			return true
		}
	}
	return false
}

func readCapture(t *testing.T, file string) (c capture) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(b, &c)
	}
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return c
}

// sameState: an operation ends as the recorded one did, with the same code, and what the circumstances say of others holds.
func (r *replay) sameState(i int, x exchange, got []byte) {
	r.t.Helper()
	var was, is wire.Operation[json.RawMessage]
	_ = json.Unmarshal(x.Answer, &was)
	if err := json.Unmarshal(got, &is); err != nil {
		return // a list, or bytes
	}
	if want, ok := r.in.states[i]; ok && !strings.HasSuffix(string(is.Status), "_STATUS_"+want) {
		r.t.Errorf("exchange %d: status %s, want %s", i, is.Status, want)
	}
	if !was.Status.Final() {
		return
	}
	if is.Status != was.Status || (is.Error == nil) != (was.Error == nil) || is.Error != nil && is.Error.Code != was.Error.Code {
		r.t.Errorf("exchange %d: got %s, want it to end as %s", i, got, x.Answer)
	}
}
