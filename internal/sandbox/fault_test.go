package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"trainer/internal/sandbox/fault"
	"trainer/internal/wire"
)

// rules are Options.Faults.
func rules(t testing.TB, texts ...string) (out []fault.Rule) {
	t.Helper()
	for _, text := range texts {
		r, err := ParseFault(text)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, r)
	}
	return out
}

// opener makes a server and a client of it.
type opener func(t *testing.T, o Options, faults ...string) (*Server, *client)

// bothWays runs a test in the caller's goroutine, and over a socket.
func bothWays(t *testing.T, f func(t *testing.T, open opener)) {
	t.Run("as a transport", func(t *testing.T) {
		f(t, func(t *testing.T, o Options, faults ...string) (*Server, *client) {
			o.Faults = rules(t, faults...)
			return open(t, o)
		})
	})
	t.Run("over a socket", func(t *testing.T) {
		f(t, func(t *testing.T, o Options, faults ...string) (*Server, *client) {
			o.Faults = rules(t, faults...)
			s, c := open(t, o)
			web := httptest.NewServer(s)
			t.Cleanup(web.Close)
			dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, "tcp", web.Listener.Addr().String())
			}
			line := &http.Transport{DialContext: dial, DisableKeepAlives: true}
			t.Cleanup(line.CloseIdleConnections)
			c.http = line
			return s, c
		})
	})
}

// heard is what came of a request.
type heard struct {
	status int
	header http.Header
	body   []byte
	err    error // of the connection, or of reading the body
	took   time.Duration
}

func (c *client) try(method, path, body string, header ...string) (h heard) {
	c.t.Helper()
	r, err := http.NewRequest(method, host+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	start := time.Now()
	defer func() { h.took = time.Since(start) }()
	resp, err := c.http.RoundTrip(r)
	if err != nil {
		return heard{err: err}
	}
	defer func() { _ = resp.Body.Close() }()
	h.status, h.header = resp.StatusCode, resp.Header
	h.body, h.err = io.ReadAll(resp.Body)
	return h
}

// sessions counts what there is, asked directly.
func sessionsOf(s *Server) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.state.sessions.order)
}

func TestFaultsOfTheWay(t *testing.T) {
	const models = wire.PathModels
	bothWays(t, func(t *testing.T, open opener) {
		_, c := open(t, Options{},
			"too-many-requests:at=1,on=list-models,retry_after=1500ms", "server-error:at=2,on=list-models,status=503",
			"unauthorized:at=3,on=list-models", "drop:at=4,on=list-models", "truncate:at=5,on=list-models",
			"truncate:at=6,on=list-models,bytes=7", "slow-body:at=7,on=list-models,fixed=50ms", "latency:at=8,on=list-models,fixed=50ms")
		for i, want := range []struct {
			status int
			code   string
			after  string
		}{{429, "rate_limit", "1.5"}, {503, "fault", ""}, {401, "invalid_api_key", ""}} {
			h := c.try("GET", models, "")
			var e wire.ErrorBody
			if err := json.Unmarshal(h.body, &e); err != nil || e.Error.Code == nil {
				t.Fatalf("request %d: %v in %s", i+1, err, h.body)
			}
			if h.status != want.status || *e.Error.Code != want.code || h.header.Get("Retry-After") != want.after {
				t.Errorf("request %d: got %d %s, Retry-After %q; want %+v", i+1, h.status, h.body, h.header.Get("Retry-After"), want)
			}
		}
		if h := c.try("GET", models, ""); h.err == nil || h.status != 0 {
			t.Errorf("dropped: got %+v, want an error and no answer", h)
		}
		half, few := c.try("GET", models, ""), c.try("GET", models, "")
		slow, late, whole := c.try("GET", models, ""), c.try("GET", models, ""), c.try("GET", models, "")
		if whole.err != nil || whole.status != 200 {
			t.Fatalf("after all of them: got %+v", whole)
		}
		if !errors.Is(half.err, io.ErrUnexpectedEOF) || half.status != 200 || !bytes.Equal(half.body, whole.body[:len(whole.body)/2]) {
			t.Errorf("truncated: got %d bytes of %d, %v", len(half.body), len(whole.body), half.err)
		}
		if !errors.Is(few.err, io.ErrUnexpectedEOF) || string(few.body) != string(whole.body[:7]) {
			t.Errorf("truncated after 7 bytes: got %q, %v", few.body, few.err)
		}
		for name, h := range map[string]heard{"slow": slow, "late": late} {
			if h.err != nil || !bytes.Equal(h.body, whole.body) || h.took < 50*time.Millisecond {
				t.Errorf("%s: got %d bytes of %d after %v, %v; want all of them after 50ms", name, len(h.body), len(whole.body), h.took, h.err)
			}
		}
	})
}

func TestFaultsBeforeTheWorkLeaveItUndoneAndAfterItDone(t *testing.T) {
	for _, tt := range []struct {
		fault  string
		status int
		done   int
	}{
		{"drop:on=create-session,at=1", 0, 0},
		{"drop:on=create-session,at=1,when=after", 0, 1},
		{"server-error:on=create-session,at=1", 500, 0},
		{"server-error:on=create-session,at=1,when=after", 500, 1},
		{"unauthorized:on=create-session,at=1", 401, 0},
		{"too-many-requests:on=create-session,at=1", 429, 0},
		{"truncate:on=create-session,at=1", 200, 1},
		{"latency:on=create-session,at=1,fixed=1ms,when=after", 200, 1},
	} {
		t.Run(tt.fault, func(t *testing.T) {
			bothWays(t, func(t *testing.T, open opener) {
				s, c := open(t, Options{}, tt.fault)
				r := c.resource(`{"base_model":"sandbox/bytes-tiny"}`)
				h := c.try("POST", wire.PathSessions, `{"model_resources_id":"`+r.ID+`"}`)
				if n := sessionsOf(s); h.status != tt.status || n != tt.done {
					t.Errorf("got %d %s %v and %d sessions; want %d and %d", h.status, h.body, h.err, n, tt.status, tt.done)
				}
			})
		})
	}
}

func TestARequestAsksForItsOwnFaultsWhereItMay(t *testing.T) {
	bothWays(t, func(t *testing.T, open opener) {
		_, c := open(t, Options{})
		if h := c.try("GET", wire.PathModels, "", FaultHeader, "server-error"); h.status != 200 {
			t.Errorf("not allowed: got %d, want the header to be of no account", h.status)
		}
		_, c = open(t, Options{FaultHeaders: true})
		if h := c.try("GET", wire.PathModels, "", FaultHeader, "server-error:status=502"); h.status != 502 {
			t.Errorf("allowed: got %d %s, want 502", h.status, h.body)
		}
		if h := c.try("GET", wire.PathModels, "", FaultHeader, "drop;latency:fixed=1ms"); h.err == nil {
			t.Errorf("two of them: got %+v, want no answer", h)
		}
		if h := c.try("GET", wire.PathModels, ""); h.status != 200 {
			t.Errorf("the next request: got %d, want 200", h.status)
		}
		if e := c.refused(400, "GET", wire.PathModels, "", FaultHeader, "dorp"); *e.Param != FaultHeader || !strings.Contains(e.Message, `did you mean "drop"`) {
			t.Errorf("no fault: got %+v", e)
		}
		id := c.tiny()
		var op wire.Operation[json.RawMessage]
		c.ok("POST", opsPath(id, wire.KindOptimStep), `{}`, &op, wire.KeyHeader, "k", FaultHeader, "fail:code=TIMEOUT")
		if op = c.wait(id, wire.KindOptimStep, op.ID); op.Error == nil || op.Error.Code != wire.CodeTimeout {
			t.Errorf("a failure: got %+v, want TIMEOUT", op)
		}
	})
}

func TestEveryCodeOfAFailedOperation(t *testing.T) {
	for _, code := range []wire.OperationErrorCode{
		wire.CodeResourceExhausted, wire.CodeTimeout, wire.CodeInternalError, wire.CodeSessionNotActive, wire.CodeInvalidInput, wire.CodeNonFiniteLoss,
	} {
		for _, kind := range []wire.Kind{wire.KindForwardBackward, wire.KindOptimStep, wire.KindWeightsSync, wire.KindTrainingCheckpoint} {
			t.Run(code.Name()+" "+string(kind), func(t *testing.T) {
				_, c := open(t, Options{Faults: rules(t, fmt.Sprintf("fail:code=%s,on=%s,at=1", code.Name(), kind))})
				id := c.tiny()
				body := map[wire.Kind]string{
					wire.KindForwardBackward: batch(t, "", row("hello")), wire.KindOptimStep: `{}`,
					wire.KindWeightsSync: `{"weight_sync_type":"WEIGHT_SYNC_TYPE_SYNCHRONOUS"}`,
				}[kind]
				op := c.wait(id, kind, c.post(id, kind, body).ID)
				if op.Status != wire.OperationFailed || op.Error == nil || op.Error.Code != code || op.Output != nil {
					t.Errorf("got %+v, want FAILED with %s and no output", op, code)
				}
				got := c.getSession(id)
				if got.Status != wire.SessionRunning || got.Step != 0 || len(got.TrainingCheckpoints) != 0 {
					t.Errorf("the session: got %+v, want RUNNING with nothing done", got)
				}
				c.run(id, kind, body, nil) // the next one is well
			})
		}
	}
}

// trainedBy tells what a history of operations makes of a new session's weights.
func trainedBy(t *testing.T, o Options, do func(c *client, id string)) [32]byte {
	t.Helper()
	s, c := open(t, o)
	id := c.tiny()
	do(c, id)
	h, err := s.WeightsHash(id)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestWhatAFailedOperationLeavesBehind(t *testing.T) {
	first, second, third := row("the first of three rows"), row("the second"), row("a third row, which is longer")
	whole := batch(t, "", first, second, third)
	failed := func(kind wire.Kind, body string) func(*client, string) {
		return func(c *client, id string) {
			if op := c.wait(id, kind, c.post(id, kind, body).ID); op.Status != wire.OperationFailed {
				t.Errorf("got %+v, want FAILED", op)
			}
			c.run(id, wire.KindOptimStep, `{"adam_params":{"learning_rate":0.01}}`, nil)
		}
	}
	step := func(c *client, id string) {
		c.run(id, wire.KindOptimStep, `{"adam_params":{"learning_rate":0.01}}`, nil)
	}
	none := trainedBy(t, Options{}, step)
	half := trainedBy(t, Options{}, func(c *client, id string) {
		c.loss(id, "", first, second)
		step(c, id)
	})
	all := trainedBy(t, Options{}, func(c *client, id string) {
		c.loss(id, "", first, second, third)
		step(c, id)
	})
	if none == half || half == all {
		t.Fatal("the histories to compare with have equal weights")
	}
	for _, tt := range []struct {
		name    string
		faults  string
		choices Choices
		do      func(*client, string)
		want    [32]byte
	}{
		{"a forward-backward leaves nothing", "fail:at=1", nil, failed(wire.KindForwardBackward, whole), none},
		{"or the gradient of its first half", "fail:at=1,leaves=gradient", nil, failed(wire.KindForwardBackward, whole), half},
		{"as the choice says", "fail:at=1", Choices{FailedLeaves: "gradient"}, failed(wire.KindForwardBackward, whole), half},
		{"unless the fault says another thing", "fail:at=1,leaves=nothing", Choices{FailedLeaves: "gradient"}, failed(wire.KindForwardBackward, whole), none},
		{"a scoring one never leaves a gradient", "fail:at=1,leaves=gradient", nil, failed(wire.KindForwardBackward, batch(t, `,"forward_only":true`, first, second, third)), none},
		{"an optim-step leaves the gradient for the next one", "fail:on=optim-step,at=1", nil, func(c *client, id string) {
			c.loss(id, "", first, second, third)
			failed(wire.KindOptimStep, `{}`)(c, id)
		}, all},
		{"or has stepped", "fail:on=optim-step,at=1,leaves=step", nil, func(c *client, id string) {
			c.loss(id, "", first, second, third)
			if op := c.wait(id, wire.KindOptimStep, c.post(id, wire.KindOptimStep, `{"adam_params":{"learning_rate":0.01}}`).ID); op.Status != wire.OperationFailed {
				t.Errorf("got %+v, want FAILED", op)
			}
			if got := c.getSession(id); got.Step != 1 || got.PolicyState.TrainerStep != 1 {
				t.Errorf("the counters: got %d and %d, want 1", got.Step, got.PolicyState.TrainerStep)
			}
		}, all},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := trainedBy(t, Options{Faults: rules(t, tt.faults), Choices: tt.choices}, tt.do); got != tt.want {
				t.Error("the weights are not those of the history that it stands for")
			}
		})
	}
}
