package together

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"trainer/internal/wire"
)

func TestRawOperations(t *testing.T) {
	const running = `{"id":"o1","status":"TRAINING_OPERATION_STATUS_RUNNING"}`
	const lost = `{"id":"o1","status":"TRAINING_OPERATION_STATUS_FAILED","error":{"code":"TRAINING_OPERATION_ERROR_CODE_TIMEOUT","message":"of secret-key"}}`
	post := func(c *Client) (RawOperation, error) {
		return c.Post(context.Background(), "s1", wire.KindSample, aKey, []byte(`{"num_samples":1}`))
	}
	settle := func(c *Client) (RawOperation, error) {
		return c.Settled(context.Background(), "s1", wire.KindSample, "o1", time.Minute)
	}
	for _, x := range []struct {
		name   string
		call   func(*Client) (RawOperation, error)
		steps  []any
		sent   int    // requests; 0: any number
		kind   string // of the error
		output string // or its absence, and the error's text
		says   string
	}{
		{"an output comes as it is", post, []any{says(200, stepDone)}, 1, "none", `{"step":"7"}`, ""},
		{"a lost answer is asked for again", post, []any{error(errReset), says(503, ""), says(200, stepDone)}, 3, "none", `{"step":"7"}`, ""},
		{"a key that is in conflict stays so", post, []any{says(409, envelope)}, 3, "refused", "", "no such thing"},
		{"a refusal is final", post, []any{says(422, envelope)}, 1, "refused", "", "no such thing"},
		{"an answer without an id", post, []any{says(200, `{"status":"x"}`)}, 1, "local", "", "without an id"},
		{"looks until it is final", settle, []any{says(200, running), says(200, running), says(200, stepDone)}, 3, "none", `{"step":"7"}`, ""},
		{"a failure is an end, without our key", settle, []any{says(200, lost)}, 1, "none", "", "of [redacted]"},
		{"one that does not end", settle, []any{says(200, running)}, 0, "local", "", "sample o1: still running after 1m0s"},
		{"one that is gone", settle, []any{says(404, envelope)}, 1, "refused", "", "no such thing"},
	} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &script{steps: x.steps}
				op, err := x.call(New(Options{BaseURL: testBase, Key: "secret-key", Transport: s}))
				output, text := "", ""
				if op.Output != nil {
					output = string(*op.Output)
				}
				if err != nil {
					text = err.Error()
				} else if op.Error != nil {
					text = op.Error.Message
				}
				if kind(err) != x.kind || x.sent != 0 && len(s.reqs) != x.sent || output != x.output || !strings.Contains(text, x.says) {
					t.Errorf("%d requests, %s, %q, %q, want %d, %s, %q, %q", len(s.reqs), kind(err), output, text, x.sent, x.kind, x.output, x.says)
				}
				for i, r := range s.reqs {
					if r.Method == "POST" && (r.Header.Get(wire.KeyHeader) != aKey || s.body[i] != s.body[0]) {
						t.Errorf("request %d: another key or body than the first", i)
					}
				}
			})
		})
	}
}

func TestDescribe(t *testing.T) {
	s := &script{steps: []any{says(200, `{"id":"r1","status":"MODEL_RESOURCES_STATUS_READY","optimizer_config":{"muon":{}}}`)}}
	r, err := New(Options{BaseURL: testBase, Transport: s}).Describe(context.Background(), "r/1")
	if err != nil || r.Status != wire.ResourceReady || r.OptimizerConfig.Muon == nil || s.reqs[0].URL.EscapedPath() != "/v1/rl/model-resources/r%2F1" {
		t.Errorf("got %+v, %v at %s", r, err, s.reqs[0].URL)
	}
}
