package together

import (
	"context"
	"encoding/json"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"trainer/loss"
	"trainer/recipe"
	"trainer/runner"
)

func bigForward(samples, tokens int) runner.Forward {
	f := runner.Forward{Loss: &loss.CrossEntropy{}}
	for range samples {
		d := loss.Datum{Input: make([]int32, tokens), Targets: make([]int32, tokens), Weights: make([]float64, tokens)}
		for t := range d.Input {
			d.Input[t], d.Targets[t], d.Weights[t] = 100000+int32(t), 100001+int32(t), 1
		}
		f.Data = append(f.Data, d)
	}
	return f
}

func TestPrepareRefusesWhatCannotBeTrainedOn(t *testing.T) {
	good := bigForward(1, 3)
	for _, x := range []struct {
		name   string
		change func(*loss.Datum)
		want   string
	}{
		{"no tokens", func(d *loss.Datum) { *d = loss.Datum{} }, "sequence 1: 0 input tokens, 0 targets and 0 weights"},
		{"fewer targets", func(d *loss.Datum) { d.Targets = d.Targets[:2] }, "3 input tokens, 2 targets and 3 weights"},
		{"no weights", func(d *loss.Datum) { d.Weights = nil }, "3 input tokens, 3 targets and 0 weights"},
		{"a negative token", func(d *loss.Datum) { d.Targets[1] = -1 }, "position 1: token 100001 before target -1"},
		{"a negative weight", func(d *loss.Datum) { d.Weights[2] = -0.5 }, "position 2: weight -0.5"},
		{"a weight that is NaN", func(d *loss.Datum) { d.Weights[2] = math.NaN() }, "samples[1].loss_fn_inputs.weights[2]: NaN"},
	} {
		bad := bigForward(1, 3).Data[0]
		x.change(&bad)
		f := good
		f.Data = []loss.Datum{good.Data[0], bad}
		_, err := New(Options{BaseURL: testBase}).Join(spec, "s1").Prepare(context.Background(), f)
		if err == nil || !strings.Contains(err.Error(), x.want) || !strings.HasPrefix(err.Error(), "preparing forward-backward: ") {
			t.Errorf("%s: got %v, want %q", x.name, err, x.want)
		}
	}
	for _, op := range []runner.Op{runner.Optim{Optimizer: adamW, Rate: math.Inf(1)}, runner.Forward{Loss: &loss.CrossEntropy{}}, runner.Forward{Data: good.Data}} {
		if p, err := New(Options{}).Join(spec, "s1").Prepare(context.Background(), op); err == nil {
			t.Errorf("%+v was encoded as %s", op, p.Body)
		}
	}
}

// Muon's own Adam follows the schedule: at half the peak it gets half its rate.
func TestAdamWithinMuonFollowsTheSchedule(t *testing.T) {
	o := recipe.Optimizer{Type: "muon", LearningRate: 0.02, Adam: &recipe.Adam{LearningRate: 1e-4}}
	p, err := New(Options{}).Join(spec, "s1").Prepare(context.Background(), runner.Optim{Optimizer: o, Rate: 0.01})
	if err != nil {
		t.Fatal(err)
	}
	var body struct {
		Muon struct {
			Rate float64 `json:"learning_rate"`
			Adam struct {
				Rate float64 `json:"learning_rate"`
			}
		} `json:"muon_params"`
	}
	if err := json.Unmarshal(p.Body, &body); err != nil {
		t.Fatal(err)
	}
	if body.Muon.Rate != 0.01 || body.Muon.Adam.Rate != 5e-5 {
		t.Errorf("got %s", p.Body)
	}
}

func TestClose(t *testing.T) {
	const stopped = `{"id":"s1","status":"TRAINING_SESSION_STATUS_STOPPED"}`
	const stopping = `{"id":"s1","status":"TRAINING_SESSION_STATUS_STOPPING"}`
	const running = `{"id":"s1","status":"TRAINING_SESSION_STATUS_RUNNING"}`
	for _, x := range []struct {
		name  string
		steps []any
		kind  string
		sent  int
	}{
		{"a session that stops at once", []any{says(200, stopped)}, "none", 1},
		{"a session that takes its time", []any{says(200, stopping), says(200, stopping), says(200, stopping), says(200, stopped)}, "none", 4},
		{"a session that is gone", []any{says(404, envelope), says(404, envelope)}, "none", 2},
		{"a session that goes meanwhile", []any{says(200, stopping), says(404, envelope)}, "none", 2},
		{"a session that had stopped refuses the stop", []any{says(400, envelope), says(200, stopped)}, "none", 2},
		{"a session that refuses and runs on", []any{says(400, envelope), says(200, running)}, "refused", 2},
		{"a stop that is unclear", []any{says(503, "", "x-should-retry", "false")}, "unclear", 1},
		{"a stop whose answer is lost is sent again", []any{error(errReset), says(200, stopped)}, "none", 2},
	} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &script{steps: x.steps}
				err := New(Options{BaseURL: testBase, Transport: s}).Join(spec, "s1").Close(context.Background())
				if kind(err) != x.kind || len(s.reqs) != x.sent {
					t.Errorf("%d requests and %s: %v, want %d and %s", len(s.reqs), kind(err), err, x.sent, x.kind)
				}
			})
		})
	}
}

func TestCloseDoesNotWaitForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{steps: []any{says(200, `{"id":"s1","status":"TRAINING_SESSION_STATUS_STOPPING"}`)}}
		err := New(Options{BaseURL: testBase, Transport: s}).Join(spec, "s1").Close(context.Background())
		if err == nil || !strings.Contains(err.Error(), "still STOPPING 5m0s after it was asked to stop") {
			t.Errorf("got %v", err)
		}
	})
}

func TestStopOfAResource(t *testing.T) {
	const ready = `{"id":"r1","status":"MODEL_RESOURCES_STATUS_READY"}`
	for _, x := range []struct {
		name  string
		steps []any
		kind  string
	}{
		{"refused with sessions active", []any{says(400, envelope), says(200, ready)}, "refused"},
		{"in conflict", []any{says(409, envelope), says(409, envelope), says(409, envelope), says(200, ready)}, "unclear"},
		{"unknown", []any{says(404, envelope)}, "refused"},
		{"in error", []any{says(400, envelope), says(200, `{"id":"r1","status":"MODEL_RESOURCES_STATUS_ERROR"}`)}, "none"},
	} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &script{steps: x.steps}
				if _, err := New(Options{BaseURL: testBase, Transport: s}).Stop(context.Background(), "r1", false); kind(err) != x.kind {
					t.Errorf("%s: %v, want %s", kind(err), err, x.kind)
				}
			})
		})
	}
}

func TestStateTellsTheServersClock(t *testing.T) {
	s := &script{steps: []any{says(200, `{"id":"s1","status":"TRAINING_SESSION_STATUS_ERROR","step":"12","policy_state":{"trainer_step":"9",`+
		`"target_weights_version":"8","applied_weights_version":7,"pending_publish":true},"error":{"code":"TRAINING_SESSION_ERROR_CODE_TIMED_OUT","message":"m",`+
		`"occurred_at":"2026-11-01T00:05:00Z"},"new_member":{}}`, "Date", "Sun, 01 Nov 2026 00:05:00 GMT")}}
	got, err := New(Options{BaseURL: testBase, Transport: s}).Join(spec, "s1").State(context.Background())
	want := runner.SessionState{ID: "s1", Status: runner.Errored, Step: 12, TrainerStep: 9, Target: 8, Applied: 7, PendingPublish: true,
		ErrorCode: "TIMED_OUT", ErrorMessage: "m", ServerTime: at(5)}
	if err != nil || got != want {
		t.Errorf("got  %+v, %v\nwant %+v", got, err, want)
	}
}

func TestAPriceInAnotherCurrencyIsNoPrice(t *testing.T) {
	s := &script{steps: []any{says(200, `{"currency":"EUR","price_per_hour":1}`)}}
	if p, err := New(Options{BaseURL: testBase, Transport: s}).Price(context.Background(), runner.ResourceSpec{}); err == nil {
		t.Errorf("the price is %v", p)
	}
}

// Over a real connection: an empty POST says its length, and connections are used again.
func TestOverTCP(t *testing.T) {
	var lengths []int64
	remotes := map[string]bool{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		lengths = append(lengths, r.ContentLength)
		remotes[r.RemoteAddr] = true
		w.Header().Set("Content-Type", "application/json")
		if r.Method == "POST" {
			_, _ = w.Write([]byte(`{"id":"o1","status":"TRAINING_OPERATION_STATUS_RUNNING"}`))
			return
		}
		_, _ = w.Write([]byte(`{"id":"o1","status":"TRAINING_OPERATION_STATUS_COMPLETED","output":{"checkpoint":{"id":"k1","step":"3","created_at":"2026-11-01T00:05:00Z"}}}`))
	}))
	defer server.Close()
	c := New(Options{BaseURL: server.URL})
	defer c.rt.(*http.Transport).CloseIdleConnections()
	for range 3 {
		got, err := operate(c, spec, runner.Save{})
		if err != nil || got.Checkpoint == nil || got.Checkpoint.ID != "k1" || got.Step != 3 {
			t.Errorf("got %+v, %v", got, err)
		}
	}
	for _, n := range lengths {
		if n != 0 {
			t.Errorf("the lengths of the bodies are %v, want 0", lengths)
		}
	}
	if len(remotes) >= len(lengths) {
		t.Errorf("%d connections for %d requests one after the other", len(remotes), len(lengths))
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	nobody := New(Options{BaseURL: "http://127.0.0.1:1", OnRetry: func(Retry) { cancel() }})
	if _, err := nobody.Open(ctx, runner.SessionSpec{}); kind(err) != "local" {
		t.Errorf("nobody listens, and the error is %s: %v", kind(err), err)
	}
}
