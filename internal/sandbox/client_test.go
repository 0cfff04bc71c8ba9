package sandbox

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"trainer/internal/wire"
	"trainer/loss"
)

// client speaks to a server as a program would, over RoundTrip. It holds every answer to the document.
type client struct {
	t    testing.TB
	http http.RoundTripper
	keys int
}

const host = "http://sandbox.test"

// do sends a request and returns the status and the body.
func (c *client) do(method, path string, body []byte, header ...string) (int, []byte) {
	c.t.Helper()
	if !strings.HasPrefix(path, "http") {
		path = host + path
	}
	r, err := http.NewRequest(method, path, bytes.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := c.http.RoundTrip(r)
	if err != nil {
		c.t.Fatalf("%s %s: %v", method, path, err)
	}
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	if _, err := time.Parse(http.TimeFormat, resp.Header.Get("Date")); err != nil {
		c.t.Errorf("%s %s: Date: %v", method, path, err)
	}
	if err := book(c.t).check(method, r.URL.Path, resp.StatusCode, b); err != nil {
		c.t.Error(err)
	}
	return resp.StatusCode, b
}

// ok is do for what must be answered with 200; the answer is decoded into out.
func (c *client) ok(method, path string, body string, out any, header ...string) {
	c.t.Helper()
	status, b := c.do(method, path, []byte(body), header...)
	if status != http.StatusOK {
		c.t.Fatalf("%s %s %s: got %d %s, want 200", method, path, body, status, b)
	}
	if out != nil {
		if err := json.Unmarshal(b, out); err != nil {
			c.t.Fatalf("%s %s: %v in %s", method, path, err, b)
		}
	}
}

// refused is do for what must be refused.
func (c *client) refused(want int, method, path, body string, header ...string) wire.ErrorDetail {
	c.t.Helper()
	status, b := c.do(method, path, []byte(body), header...)
	var e wire.ErrorBody
	if err := json.Unmarshal(b, &e); err != nil {
		c.t.Fatalf("%s %s: %v in %s", method, path, err, b)
	}
	if status != want || e.Error.Type == "" || e.Error.Message == "" {
		c.t.Fatalf("%s %s %.200s: got %d %s, want an envelope with %d", method, path, body, status, b, want)
	}
	return e.Error
}

func (c *client) resource(body string) wire.Resource {
	c.t.Helper()
	var r wire.Resource
	c.ok("POST", wire.PathResources, body, &r)
	return r
}

func (c *client) session(body string) wire.Session {
	c.t.Helper()
	var s wire.Session
	c.ok("POST", wire.PathSessions, body, &s)
	return s
}

func (c *client) getSession(id string) wire.Session {
	c.t.Helper()
	var s wire.Session
	c.ok("GET", wire.PathSessions+"/"+id, "", &s)
	return s
}

func (c *client) getResource(id string) wire.Resource {
	c.t.Helper()
	var r wire.Resource
	c.ok("GET", wire.PathResources+"/"+id, "", &r)
	return r
}

// tiny opens a LoRA session on a new resource of the smallest body.
func (c *client) tiny() string {
	c.t.Helper()
	r := c.resource(`{"base_model":"sandbox/bytes-tiny"}`)
	return c.session(`{"model_resources_id":"` + r.ID + `","lora_config":{"rank":4,"alpha":8,"seed":7}}`).ID
}

// post submits an operation under a new key.
func (c *client) post(session string, kind wire.Kind, body string) wire.Operation[json.RawMessage] {
	c.t.Helper()
	c.keys++
	var op wire.Operation[json.RawMessage]
	c.ok("POST", opsPath(session, kind), body, &op, wire.KeyHeader, fmt.Sprintf("key-%d", c.keys))
	return op
}

func opsPath(session string, kind wire.Kind) string {
	return wire.PathSessions + "/" + session + "/operations/" + string(kind)
}

// wait polls until the operation is final.
func (c *client) wait(session string, kind wire.Kind, id string) wire.Operation[json.RawMessage] {
	c.t.Helper()
	for {
		var op wire.Operation[json.RawMessage]
		c.ok("GET", opsPath(session, kind)+"/"+id, "", &op)
		if op.Status.Final() {
			return op
		}
		time.Sleep(100 * time.Microsecond)
	}
}

// run is post and wait for what must complete; the output is decoded into out.
func (c *client) run(session string, kind wire.Kind, body string, out any) {
	c.t.Helper()
	op := c.wait(session, kind, c.post(session, kind, body).ID)
	if op.Status != wire.OperationCompleted || op.Output == nil {
		c.t.Fatalf("%s: got %+v, want COMPLETED with an output", kind, op)
	}
	if out != nil {
		if err := json.Unmarshal(*op.Output, out); err != nil {
			c.t.Fatal(err)
		}
	}
}

// loss is a forward-backward of rows; flags are further members of the body.
func (c *client) loss(session, flags string, rows ...wire.Sample) wire.ForwardBackwardOutput {
	c.t.Helper()
	var out wire.ForwardBackwardOutput
	c.run(session, wire.KindForwardBackward, batch(c.t, flags, rows...), &out)
	return out
}

// batch is the body of a forward-backward with cross-entropy.
func batch(t testing.TB, flags string, rows ...wire.Sample) string {
	t.Helper()
	return body(t, &loss.CrossEntropy{}, flags, rows...)
}

// body is that of a forward-backward.
func body(t testing.TB, l loss.Loss, flags string, rows ...wire.Sample) string {
	t.Helper()
	config, err := wire.FromLoss(l)
	if err != nil {
		t.Fatal(err)
	}
	b, err := wire.AppendForwardBackward(nil, &wire.ForwardBackward{Loss: config, Samples: rows})
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(string(b), "}") + flags + "}"
}

// custom is the body of a custom-forward-backward.
func custom(t testing.TB, more string, gradients [][]float64, rows ...wire.Sample) string {
	t.Helper()
	b, err := wire.AppendCustomForwardBackward(nil, &wire.CustomForwardBackward{Samples: rows, Gradients: gradients})
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(string(b), "}") + more + "}"
}

// policyRow has what the policy losses read: every third position is left out, the others were sampled by weights nearby.
func policyRow(text string) wire.Sample {
	s := row(text)
	for i := range s.Weights {
		s.Weights[i] = float64(min(i%3, 1))
		s.Logprobs = append(s.Logprobs, -5.5-float64(i%4)/8)
		s.Advantages = append(s.Advantages, 1-float64(i%5)/2)
		s.RefLogprobs = append(s.RefLogprobs, -5.75+float64(i%2)/4)
	}
	return s
}

// row trains every byte of text after the first, with fractions as weights.
func row(text string) wire.Sample {
	var s wire.Sample
	for i := range len(text) - 1 {
		s.Tokens = append(s.Tokens, int32(text[i]))
		s.Targets = append(s.Targets, int32(text[i+1]))
		s.Weights = append(s.Weights, float64(1+i%4)/4)
	}
	return s
}

// handClock is moved by the test alone.
type handClock struct{ at time.Time }

func (c *handClock) Now() time.Time { return c.at }

func newHandClock() *handClock { return &handClock{time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)} }

// open is Open with the test as its owner.
func open(t testing.TB, o Options) (*Server, *client) {
	t.Helper()
	if o.Log == nil {
		o.Log = t.Logf
	}
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, &client{t: t, http: s}
}
