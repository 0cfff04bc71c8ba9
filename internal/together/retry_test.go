package together

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"trainer/internal/wire"
	"trainer/runner"
)

const (
	sessionBodyText = `{"id":"s1","status":"TRAINING_SESSION_STATUS_CREATING"}`
	stepDone        = `{"id":"o1","status":"TRAINING_OPERATION_STATUS_COMPLETED","output":{"step":"7"}}`
	envelope        = `{"error":{"type":"invalid_request_error","code":"bad","message":"no such thing","param":"samples[3]"}}`
)

var (
	errReset = errors.New("connection reset by peer")
	noDial   = &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
	stepOp   = runner.Prepared{Op: runner.OpOptimStep, Body: []byte(`{"adam_params":{}}`)}
)

// script answers one request after the other; the last entry again and again.
type script struct {
	mu    sync.Mutex
	steps []any // *http.Response as made by a func, or an error
	at    []time.Duration
	reqs  []*http.Request
	body  []string
	start time.Time
}

func (s *script) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.start.IsZero() {
		s.start = time.Now()
	}
	body := ""
	if r.Body != nil {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		body = string(b)
	}
	s.at, s.reqs, s.body = append(s.at, time.Since(s.start)), append(s.reqs, r), append(s.body, body)
	switch x := s.steps[min(len(s.reqs), len(s.steps))-1].(type) {
	case func() *http.Response:
		return x(), nil
	case func(*http.Request) (*http.Response, error):
		return x(r)
	case error:
		return nil, x
	}
	panic("unknown step")
}

func says(status int, body string, headers ...string) func() *http.Response {
	return func() *http.Response { return answer(status, body, headers...) }
}

func TestFates(t *testing.T) {
	submit := func(once bool, patience time.Duration) func(*Client) error {
		return func(c *Client) error {
			p := stepOp
			p.Once = once
			_, err := c.Join(runner.SessionSpec{Patience: patience}, "s1").Submit(context.Background(), aKey, p)
			return err
		}
	}
	op := submit(false, 18*time.Second) // four retries: waits of 11.25 to 15 s, and of 18.75 s at least with a fifth
	create := func(c *Client) error {
		_, err := c.Open(context.Background(), runner.SessionSpec{Resource: "r1"})
		return err
	}
	get := func(c *Client) error {
		_, err := c.Join(runner.SessionSpec{}, "s1").State(context.Background())
		return err
	}
	busy := says(503, "down")
	for _, x := range []struct {
		name  string
		call  func(*Client) error
		steps []any
		sent  int    // requests
		kind  string // of the error: none, refused, unclear, local
		says  string // in its text
	}{
		{"an operation is sent again after 5xx, 408, 409, 429 and a reset", submit(false, time.Minute),
			[]any{busy, says(408, ""), says(409, ""), says(429, ""), error(errReset), says(200, stepDone)}, 6, "none", ""},
		{"an operation that is refused at once", op, []any{says(422, envelope)}, 1, "refused", "no such thing [samples[3]]"},
		{"a refusal after an unclear attempt leaves it unclear", op, []any{error(errReset), says(404, envelope)}, 2, "unclear", "refused (404) after an attempt without a clear answer"},
		{"a refusal after a 429 is clear", op, []any{says(429, ""), says(404, envelope)}, 2, "refused", "no such thing"},
		{"patience that runs out on 5xx", op, []any{busy}, 5, "unclear", `503 Service Unavailable: "down"`},
		{"patience that runs out on 429", op, []any{says(429, envelope)}, 5, "refused", "(429): no such thing"},
		{"patience that runs out on 409", op, []any{says(409, envelope)}, 5, "unclear", "409 Conflict: no such thing"},
		{"without patience a few retries", submit(false, 0), []any{busy}, 8, "unclear", "503"},
		{"once: an unclear attempt is the last", submit(true, time.Minute), []any{error(errReset), says(200, stepDone)}, 1, "unclear", "reset by peer"},
		{"once: a clear refusal is repeated", submit(true, time.Minute), []any{says(429, ""), says(200, stepDone)}, 2, "none", ""},
		{"once: nothing was sent where nobody listened", submit(true, time.Minute), []any{error(noDial), says(200, stepDone)}, 2, "none", ""},
		{"an answer that breaks off is asked for again", op, []any{says(200, `{"id":"o1","status":`), says(200, stepDone)}, 2, "none", ""},
		{"an answer that means nothing is unclear at once", op, []any{says(200, `<html>`)}, 1, "unclear", "cannot be read"},
		{"an answer without an id is unclear at once", op, []any{says(200, `{}`)}, 1, "unclear", "without an id or a status"},
		{"a server without room has done nothing, and has none a second later", op, []any{says(507, envelope)}, 1, "refused", "no such thing"},
		{"the server's word against a retry", op, []any{says(503, envelope, "x-should-retry", "false")}, 1, "unclear", "no such thing"},
		{"the server's word for a retry", op, []any{says(400, envelope, "x-should-retry", "true"), says(200, stepDone)}, 2, "none", ""},

		{"a create is not sent again after 5xx", create, []any{busy, says(200, sessionBodyText)}, 1, "unclear", "POST /v1/rl/training-sessions: no clear answer"},
		{"a create is not sent again after a reset", create, []any{error(errReset), says(200, sessionBodyText)}, 1, "unclear", "reset by peer"},
		{"a create is not sent again after 409", create, []any{says(409, envelope), says(200, sessionBodyText)}, 1, "unclear", "409"},
		{"a create is not sent again after an answer that cannot be read", create, []any{says(200, `{"id":`), says(200, sessionBodyText)}, 1, "unclear", "cannot be read"},
		{"a create is sent again where nobody listened", create, []any{error(noDial), error(noDial), says(200, sessionBodyText)}, 3, "none", ""},
		{"a create is sent again after 429, twice", create, []any{says(429, envelope)}, 3, "refused", "(429)"},
		{"a create where nobody ever listens has no effect", create, []any{error(noDial)}, 8, "local", "connection refused"},
		{"a create that is refused", create, []any{says(402, envelope)}, 1, "refused", "(402)"},
		{"a create that is sent elsewhere", create, []any{says(302, "", "Location", "https://example.com/x?token=1")}, 1, "refused", "redirected to https://example.com/x, which"},

		{"reading is repeated", get, []any{error(errReset), busy, says(200, sessionBodyText)}, 3, "none", ""},
		{"reading gives up with the last error", get, []any{busy}, 8, "local", `GET /v1/rl/training-sessions/s1: 503 Service Unavailable: "down"`},
		{"reading in conflict is a refusal in the end", get, []any{says(409, envelope)}, 8, "refused", "(409)"},
		{"reading what is not there", get, []any{says(404, envelope)}, 1, "refused", "(404): no such thing"},
		{"reading what is no envelope", get, []any{says(404, "<h1>nothing</h1>")}, 1, "refused", `(404): "<h1>nothing</h1>"`},
	} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &script{steps: x.steps}
				told := 0
				err := x.call(New(Options{BaseURL: testBase, Key: "key-123", Transport: s, OnRetry: func(r Retry) {
					if told++; r.Attempt != told || r.Err == nil || r.Wait <= 0 || r.Request == "" {
						t.Errorf("told of %+v as retry %d", r, told)
					}
				}}))
				if len(s.reqs) != x.sent || told != x.sent-1 {
					t.Errorf("%d requests, told of %d retries, want %d requests", len(s.reqs), told, x.sent)
				}
				if got := kind(err); got != x.kind || err != nil && !strings.Contains(err.Error(), x.says) {
					t.Errorf("the error is %s: %v, want %s with %q", got, err, x.kind, x.says)
				}
				for i, r := range s.reqs {
					if r.Header.Get(wire.KeyHeader) != s.reqs[0].Header.Get(wire.KeyHeader) || s.body[i] != s.body[0] {
						t.Errorf("request %d has another key or body", i+1)
					}
					if r.GetBody != nil {
						t.Errorf("request %d can be sent again behind our back", i+1)
					}
				}
			})
		})
	}
}

func kind(err error) string {
	var r *runner.Refused
	var u *runner.Unclear
	switch {
	case err == nil:
		return "none"
	case errors.As(err, &u) && errors.As(err, &r):
		return "both refused and unclear"
	case errors.As(err, &u):
		return "unclear"
	case errors.As(err, &r):
		return "refused"
	}
	return "local"
}

func TestBackoffFollowsTheContract(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{steps: []any{says(500, "")}}
		_, err := New(Options{BaseURL: testBase, Transport: s}).Models(context.Background())
		if err == nil {
			t.Fatal("no error")
		}
		for n, most := range []time.Duration{1, 2, 4, 8, 10, 10, 10} {
			most *= time.Second
			if got := s.at[n+1] - s.at[n]; got > most || got < most*3/4 {
				t.Errorf("wait %d is %v, want %v to %v", n, got, most*3/4, most)
			}
		}
	})
}

func TestRetryAfter(t *testing.T) {
	for _, x := range []struct {
		name    string
		headers []string
		want    time.Duration // 0: the normal wait, 0.75 to 1 s
	}{
		{"milliseconds", []string{"retry-after-ms", "1500.5"}, 1500500 * time.Microsecond},
		{"milliseconds before seconds", []string{"retry-after-ms", "3000", "Retry-After", "9"}, 3 * time.Second},
		{"seconds with a fraction", []string{"Retry-After", "2.25"}, 2250 * time.Millisecond},
		{"a date", []string{"Retry-After", "Sat, 01 Jan 2000 00:00:30 GMT"}, 30 * time.Second},
		{"a minute is the most", []string{"Retry-After", "60"}, time.Minute},
		{"above a minute is ignored", []string{"Retry-After", "61"}, 0},
		{"zero is ignored", []string{"Retry-After", "0"}, 0},
		{"a negative one is ignored", []string{"retry-after-ms", "-5"}, 0},
		{"a past date is ignored", []string{"Retry-After", "Fri, 31 Dec 1999 23:59:00 GMT"}, 0},
		{"not a number is ignored", []string{"Retry-After", "NaN", "retry-after-ms", "Inf"}, 0},
		{"words are ignored", []string{"Retry-After", "soon"}, 0},
	} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // a bubble starts at 2000-01-01
				s := &script{steps: []any{says(503, "", x.headers...), says(200, `{"data":[]}`)}}
				if _, err := New(Options{BaseURL: testBase, Transport: s}).Models(context.Background()); err != nil {
					t.Fatal(err)
				}
				low, high := x.want, x.want
				if x.want == 0 {
					low, high = 750*time.Millisecond, time.Second
				}
				if got := s.at[1]; got < low || got > high {
					t.Errorf("waited %v, want %v to %v", got, low, high)
				}
			})
		})
	}
}

func TestAServerThatStandsStillIsLeft(t *testing.T) {
	hang := func(r *http.Request) (*http.Response, error) {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	half := func(r *http.Request) (*http.Response, error) { // an answer that stops in its middle
		res := answer(200, "")
		res.Body = io.NopCloser(io.MultiReader(strings.NewReader(`{"data":`), blocked{r.Context()}))
		return res, nil
	}
	for name, step := range map[string]func(*http.Request) (*http.Response, error){"without an answer": hang, "in an answer": half} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &script{steps: []any{step, says(200, `{"data":[]}`)}}
				var why error
				c := New(Options{BaseURL: testBase, Transport: s, OnRetry: func(r Retry) { why = r.Err }})
				if _, err := c.Models(context.Background()); err != nil {
					t.Fatal(err)
				}
				if s.at[1] < patient || s.at[1] > patient+time.Second {
					t.Errorf("tried again after %v, want %v and a back-off", s.at[1], patient)
				}
				if why == nil || !strings.Contains(why.Error(), "no answer for 1m0s") {
					t.Errorf("the reason is %v", why)
				}
			})
		})
	}
}

type blocked struct{ ctx context.Context }

func (b blocked) Read([]byte) (int, error) { <-b.ctx.Done(); return 0, b.ctx.Err() }

// A slow body is not a still one.
func TestASlowAnswerIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := func(*http.Request) (*http.Response, error) {
			res := answer(200, "")
			res.Body = io.NopCloser(&drip{text: `{"data":[]}`, every: 50 * time.Second})
			return res, nil
		}
		s := &script{steps: []any{slow}}
		if _, err := New(Options{BaseURL: testBase, Transport: s}).Models(context.Background()); err != nil || len(s.reqs) != 1 {
			t.Errorf("%d requests, %v", len(s.reqs), err)
		}
	})
}

type drip struct {
	text  string
	every time.Duration
}

func (d *drip) Read(p []byte) (int, error) {
	if d.text == "" {
		return 0, io.EOF
	}
	time.Sleep(d.every)
	n := copy(p[:1], d.text)
	d.text = d.text[n:]
	return n, nil
}

func TestCancelling(t *testing.T) {
	stop := errors.New("asked to stop")
	for _, x := range []struct {
		name  string
		steps []any
		after time.Duration
		kind  string
	}{
		{"while an operation is being sent", []any{func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		}}, time.Second, "unclear"},
		{"in the wait after an unclear attempt", []any{error(errReset)}, 100 * time.Millisecond, "unclear"},
		{"in the wait after a clear one", []any{error(noDial)}, 100 * time.Millisecond, "local"},
		{"before anything was sent", []any{says(200, stepDone)}, 0, "local"},
	} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(context.Background())
				if x.after == 0 {
					cancel(stop)
				}
				defer time.AfterFunc(x.after, func() { cancel(stop) }).Stop()
				s := &script{steps: x.steps}
				start := time.Now()
				_, err := New(Options{BaseURL: testBase, Transport: s}).Join(spec, "s1").Submit(ctx, aKey, stepOp)
				if kind(err) != x.kind {
					t.Errorf("the error is %s: %v, want %s", kind(err), err, x.kind)
				}
				if time.Since(start) != x.after {
					t.Errorf("returned after %v, want %v", time.Since(start), x.after)
				}
			})
		})
	}
}

func TestNoErrorShowsASecret(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const key, extra = "tgp_v1_secretsecret", "gateway-password"
		leak := fmt.Sprintf(`{"error":{"type":"auth","message":"key %s and %s are not known"}}`, key, extra)
		for name, step := range map[string]any{
			"an envelope": says(401, leak), "a page": says(401, leak[1:]), "a 5xx": says(500, leak),
			"a transport": fmt.Errorf("proxy says Bearer %s %s", key, extra), "a redirect": says(302, "", "Location", "https://"+key+"/"),
		} {
			var told []error
			c := New(Options{BaseURL: testBase, Key: key, Headers: http.Header{"X-Gateway": {extra}}, Transport: &script{steps: []any{step}},
				OnRetry: func(r Retry) { told = append(told, r.Err) }})
			_, err := c.Open(context.Background(), runner.SessionSpec{})
			_, err2 := c.Join(spec, "s1").State(context.Background())
			for _, err := range append(told, err, err2) {
				if text := err.Error(); strings.Contains(text, key) || strings.Contains(text, extra) {
					t.Errorf("%s: %s", name, text)
				}
			}
		}
	})
}

func TestRedirectsKeepTheKeyAtHome(t *testing.T) {
	type hop struct{ method, url, auth, extra, body string }
	var hops []hop
	to := map[string]*http.Response{
		testBase + wire.PathSessions + "/s1/stop": answer(307, "", "Location", "/moved"),
		testBase + "/moved":                       answer(308, "", "Location", "http://elsewhere.test/x"),
		"http://elsewhere.test/x":                 answer(307, "", "Location", testBase+"/back"),
		testBase + "/back":                        answer(307, "", "Location", "https://replay.test/tls"),
		"https://replay.test/tls":                 answer(200, `{"id":"s1","status":"TRAINING_SESSION_STATUS_STOPPED"}`),
	}
	rt := roundTrip(func(r *http.Request) (*http.Response, error) {
		body := []byte{}
		if r.Body != nil {
			body, _ = io.ReadAll(r.Body)
		}
		hops = append(hops, hop{r.Method, r.URL.String(), r.Header.Get("Authorization"), r.Header.Get("X-Extra"), string(body)})
		return to[r.URL.String()], nil
	})
	c := New(Options{BaseURL: testBase + "/", Key: "key-123", Headers: http.Header{"X-Extra": {"e"}}, Transport: rt})
	if err := c.Join(spec, "s1").Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	want := []hop{
		{"POST", testBase + wire.PathSessions + "/s1/stop", "Bearer key-123", "e", ""}, {"POST", testBase + "/moved", "Bearer key-123", "e", ""},
		{"POST", "http://elsewhere.test/x", "", "", ""}, {"POST", testBase + "/back", "Bearer key-123", "e", ""}, {"POST", "https://replay.test/tls", "", "", ""},
	}
	if !reflect.DeepEqual(hops, want) {
		t.Errorf("got  %v\nwant %v", hops, want)
	}
}

func TestARedirectThatGoesRoundEnds(t *testing.T) {
	s := &script{steps: []any{says(307, "", "Location", "/again")}}
	_, err := New(Options{BaseURL: testBase, Transport: s}).Models(context.Background())
	if err == nil || !strings.Contains(err.Error(), "redirected more than 10 times") {
		t.Errorf("got %v", err)
	}
}

func TestAnAddressThatIsNoneIsSaid(t *testing.T) {
	for _, base := range []string{"together.ai", "ftp://x", "http://", "http://a b"} {
		s := &script{steps: []any{says(200, `{"data":[]}`)}}
		_, err := New(Options{BaseURL: base, Transport: s}).Models(context.Background())
		if err == nil || !strings.Contains(err.Error(), "is not an address to send to") || len(s.reqs) > 0 {
			t.Errorf("%q: %d requests, %v", base, len(s.reqs), err)
		}
	}
}

// An upload address that has gone stale is asked for once more, and the body of the second is the one that is named.
func TestUploadIsRepeatedWithAFreshAddress(t *testing.T) {
	n := 0
	var puts [][]byte
	rt := roundTrip(func(r *http.Request) (*http.Response, error) {
		if r.Method == "PUT" {
			b, _ := io.ReadAll(r.Body)
			puts = append(puts, b)
			if len(puts) == 1 {
				return answer(403, "expired"), nil
			}
			return answer(200, ""), nil
		}
		n++
		return answer(200, fmt.Sprintf(`{"payload_id":"pl_%d","upload_url":"http://store.test/%d?sig=x"}`, n, n)), nil
	})
	s := New(Options{BaseURL: testBase, Key: "key-123", Transport: rt}).Join(spec, "s1")
	p, err := s.Prepare(context.Background(), bigForward(64, 2048))
	if err != nil {
		t.Fatal(err)
	}
	if p.PayloadID != "pl_2" || !bytes.Contains(p.Body, []byte(`"payload_id":"pl_2"`)) || !bytes.Contains(p.Body, []byte(`"forward_only":true`)) {
		t.Errorf("prepared %q with %.300s", p.PayloadID, p.Body)
	}
	if len(p.Body) > 64*400 {
		t.Errorf("the shortened body has %d bytes", len(p.Body))
	}
	f, err := wire.DecodeForwardBackward(bytes.NewReader(puts[1]), 0)
	if err != nil || len(f.Samples) != 64 || len(f.Samples[63].Targets) != 2048 || f.ForwardOnly {
		t.Errorf("uploaded %.200s, %v", puts[1], err)
	}
}

// TestPatienceIsForWhatMayBeRepeated: with a patience, reads and creates that never got out go on as long as it lasts; a
// create that may have arrived is sent once, and one that is turned away for its pace is not insisted on.
func TestPatienceIsForWhatMayBeRepeated(t *testing.T) {
	const patience = 10 * time.Minute
	for name, c := range map[string]struct {
		step   any
		ask    func(*Client) error
		lasts  bool
		unsure bool
	}{
		"a read that is not answered":  {errReset, func(c *Client) error { _, err := c.Resource(context.Background(), "r"); return err }, true, false},
		"a create that never got out":  {noDial, func(c *Client) error { _, err := c.Create(context.Background(), runner.ResourceSpec{}); return err }, true, false},
		"a create without an answer":   {errReset, func(c *Client) error { _, err := c.Create(context.Background(), runner.ResourceSpec{}); return err }, false, true},
		"a create that is turned away": {says(429, envelope), func(c *Client) error { _, err := c.Open(context.Background(), runner.SessionSpec{}); return err }, false, false},
		"a stop without an answer":     {errReset, func(c *Client) error { _, err := c.Stop(context.Background(), "r", false); return err }, false, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			begun := time.Now()
			err := c.ask(New(Options{BaseURL: testBase, Transport: &script{steps: []any{c.step}}, Patience: patience}))
			var unclear *runner.Unclear
			if err == nil || errors.As(err, &unclear) != c.unsure {
				t.Errorf("%s: %v", name, err)
			}
			if took := time.Since(begun); (took > patience-15*time.Second) != c.lasts || took > patience {
				t.Errorf("%s: it took %v", name, took)
			}
		})
	}
}
