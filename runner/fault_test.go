package runner_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"trainer/internal/sandbox"
	"trainer/internal/together"
	"trainer/runner"
)

// liar stands between client and server. Of the requests that match, number at (from 1) and the reach-1 after it meet do;
// the rest pass.
type liar struct {
	next      http.RoundTripper
	match     func(*http.Request) bool
	ops       string // of the operation's name: counts operations, by their POSTs, and matches their reads
	at, reach int
	do        func(r *http.Request, pass func() (*http.Response, error)) (*http.Response, error)

	mu    sync.Mutex
	n     int
	order map[string]int // of the operations, from 1
}

func (l *liar) RoundTrip(r *http.Request) (*http.Response, error) {
	pass := func() (*http.Response, error) { return l.next.RoundTrip(r) }
	n := 0
	switch {
	case l.ops != "" && posts(l.ops)(r):
		return l.count(pass)
	case l.ops != "" && reads(l.ops)(r):
		l.mu.Lock()
		n = l.order[path.Base(r.URL.Path)]
		l.mu.Unlock()
	case l.ops == "" && l.match(r):
		l.mu.Lock()
		l.n++
		n = l.n
		l.mu.Unlock()
	}
	if n < l.at || n >= l.at+l.reach {
		return pass()
	}
	return l.do(r, pass)
}

// count passes a POST and keeps the operation that it makes in mind. Its end is left to be read.
func (l *liar) count(pass func() (*http.Response, error)) (*http.Response, error) {
	open := func() (*http.Response, error) { return unfinished(nil, pass) }
	return altered(open, func(b []byte) []byte {
		var op struct{ ID string }
		l.mu.Lock()
		defer l.mu.Unlock()
		if json.Unmarshal(b, &op) == nil && l.order[op.ID] == 0 {
			if l.order == nil {
				l.order = map[string]int{}
			}
			l.order[op.ID] = len(l.order) + 1
		}
		return b
	})
}

func posts(op string) func(*http.Request) bool {
	return func(r *http.Request) bool { return r.Method == http.MethodPost && path.Base(r.URL.Path) == op }
}

func reads(op string) func(*http.Request) bool {
	return func(r *http.Request) bool {
		return r.Method == http.MethodGet && path.Base(path.Dir(r.URL.Path)) == op
	}
}

func anything(*http.Request) bool { return true }

func stops(r *http.Request) bool { return posts("stop")(r) }

var errCut = errors.New("connection reset by peer")

type pass = func() (*http.Response, error)

func before(*http.Request, pass) (*http.Response, error) { return nil, errCut }

// after carries the request out and loses the answer.
func after(_ *http.Request, p pass) (*http.Response, error) {
	if res, err := p(); err == nil {
		_, _ = io.Copy(io.Discard, res.Body)
	}
	return nil, errCut
}

// says answers in place of the server; carried says that the server carries the request out all the same.
func says(status int, carried bool, header ...string) func(*http.Request, pass) (*http.Response, error) {
	return func(r *http.Request, p pass) (*http.Response, error) {
		if carried {
			_, _ = after(r, p)
		}
		res := answer(r, status, `{"error":{"type":"test","message":"the test says so"}}`)
		for i := 0; i+1 < len(header); i += 2 {
			res.Header.Set(header[i], header[i+1])
		}
		return res, nil
	}
}

func answer(r *http.Request, status int, body string) *http.Response {
	return &http.Response{StatusCode: status, Status: strconv.Itoa(status), Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)), Request: r}
}

// truncated cuts the answer in half.
func truncated(_ *http.Request, p pass) (*http.Response, error) {
	return altered(p, func(b []byte) []byte { return b[:len(b)/2] })
}

func altered(p pass, change func([]byte) []byte) (*http.Response, error) {
	res, err := p()
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, err
	}
	res.Body = io.NopCloser(bytes.NewReader(change(b)))
	return res, nil
}

func late(d time.Duration) func(*http.Request, pass) (*http.Response, error) {
	return func(r *http.Request, p pass) (*http.Response, error) {
		select {
		case <-time.After(d):
			return p()
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
}

// final reports an operation that has ended as change makes it, and leaves one that has not.
func final(change func(op map[string]any)) func(*http.Request, pass) (*http.Response, error) {
	return func(_ *http.Request, p pass) (*http.Response, error) {
		return altered(p, func(b []byte) []byte {
			var op map[string]any
			if json.Unmarshal(b, &op) != nil || op["output"] == nil {
				return b
			}
			change(op)
			b, _ = json.Marshal(op)
			return b
		})
	}
}

func fails(code string) func(*http.Request, pass) (*http.Response, error) {
	return final(func(op map[string]any) {
		delete(op, "output")
		op["status"], op["error"] = "TRAINING_OPERATION_STATUS_FAILED", map[string]any{"code": "TRAINING_OPERATION_ERROR_CODE_" + code, "message": "the test says so"}
	})
}

// unfinished reports an operation that has ended as one that runs.
var unfinished = final(func(op map[string]any) {
	delete(op, "output")
	op["status"] = "TRAINING_OPERATION_STATUS_RUNNING"
})

// skipped counts one optimiser step more than the server does.
var skipped = final(func(op map[string]any) {
	out, _ := op["output"].(map[string]any)
	step, _ := strconv.Atoi(fmt.Sprint(out["step"]))
	out["step"] = strconv.Itoa(step + 1)
})

// endSession and endResource do it behind the run's back.
func (b *bench) endSession(r *http.Request) {
	session, _, _ := strings.Cut(r.URL.Path, "/operations/")
	stop, err := http.NewRequestWithContext(r.Context(), http.MethodPost, "http://sandbox"+session+"/stop", nil)
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := b.server.RoundTrip(stop); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) endResource(*http.Request) {
	c := client(b.server)
	mine, _, err := c.Mine(context.Background(), false)
	if err != nil || len(mine) != 1 {
		b.t.Fatalf("%v, %v", mine, err)
	}
	if _, err := c.Stop(context.Background(), mine[0].ID, true); err != nil {
		b.t.Fatal(err)
	}
}

// rekey is a service that knows a key for so long, which may be no time at all.
type rekey struct {
	next http.RoundTripper
	life time.Duration

	mu    sync.Mutex
	n     int
	since map[string]time.Time
}

func (k *rekey) RoundTrip(r *http.Request) (*http.Response, error) {
	key := r.Header.Get("Idempotency-Key")
	if key == "" {
		return k.next.RoundTrip(r)
	}
	k.mu.Lock()
	since, known := k.since[key]
	if !known {
		k.since[key], since = time.Now(), time.Now()
	}
	k.n++
	n := k.n
	k.mu.Unlock()
	if known && time.Since(since) >= k.life {
		r = r.Clone(r.Context())
		r.Header.Set("Idempotency-Key", fmt.Sprintf("%s#%d", key, n))
	}
	return k.next.RoundTrip(r)
}

// onDisk is fresh with a server whose log can be read.
func (b *bench) onDisk(f func(t *testing.T)) {
	synctest.Test(b.t, func(t *testing.T) {
		b.store, b.dir = t.TempDir(), t.TempDir()
		b.warned.Reset()
		s, err := sandbox.Open(sandbox.Options{Dir: b.store})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = s.Close() }()
		b.server = s
		f(t)
	})
}

func client(rt http.RoundTripper) *together.Client {
	return together.New(together.Options{BaseURL: "http://sandbox", Key: "k", Transport: rt})
}

// through is a life over a transport.
func (b *bench) through(rt http.RoundTripper) (runner.Summary, error) {
	ctx := context.Background()
	c := together.New(together.Options{BaseURL: "http://sandbox", Key: "k", Transport: rt, Patience: b.patience})
	b.warned.Reset()
	w := runner.World{Backend: c, Resources: c, Downloads: c, Dir: b.dir, Version: "test", Sandbox: true, Sinks: []runner.Sink{listener{&b.warned}}}
	if b.alter != nil {
		b.alter(&w)
	}
	return runner.Run(ctx, ctx, b.in, b.plan, w)
}

// listener keeps the warnings of a life, a line each.
type listener struct{ to *strings.Builder }

func (listener) Open(context.Context, runner.RunInfo) error { return nil }
func (listener) Close(context.Context) error                { return nil }
func (l listener) Emit(e runner.Event) {
	if e.Kind == runner.WarnEvent {
		fmt.Fprintln(l.to, e.Text)
	}
}

const (
	forever               = 1 << 30
	never   time.Duration = -1
)

// faults are what a service can do to a run. goesOn: the life meets it and ends as if it had not been, maybe by way of a
// rollback, whose warning says matches. Else the life ends with an error that says matches, and the next one completes the
// run, unless refused is what that one says.
var faults = map[string]struct {
	match         func(*http.Request) bool
	ops           string
	at, reach     int
	do            func(*http.Request, pass) (*http.Response, error)
	goesOn        bool
	says, refused string
	meddle        func(*bench, *http.Request)
	keys          time.Duration // so long the service knows one, or never; 0: for ever
	billing       bool          // the end says that something is left running
}{
	"a forward_backward that never arrives":         {match: posts("forward-backward"), at: 5, reach: 1, do: before, goesOn: true},
	"a forward_backward whose answer is lost":       {match: posts("forward-backward"), at: 5, reach: 1, do: after, goesOn: true},
	"an optim_step that never arrives":              {match: posts("optim-step"), at: 2, reach: 2, do: before, goesOn: true},
	"an optim_step whose answer is lost twice":      {match: posts("optim-step"), at: 2, reach: 2, do: after, goesOn: true},
	"an optim_step answered 500, carried out":       {match: posts("optim-step"), at: 2, reach: 1, do: says(500, true), goesOn: true},
	"an optim_step answered 500, not carried out":   {match: posts("optim-step"), at: 2, reach: 1, do: says(500, false), goesOn: true},
	"an optim_step answered 503 with Retry-After":   {match: posts("optim-step"), at: 2, reach: 2, do: says(503, true, "Retry-After", "7"), goesOn: true},
	"an optim_step answered 429 with Retry-After":   {match: posts("optim-step"), at: 2, reach: 3, do: says(429, false, "Retry-After", "3"), goesOn: true},
	"an optim_step answered 408":                    {match: posts("optim-step"), at: 2, reach: 1, do: says(408, true), goesOn: true},
	"an optim_step answered 409":                    {match: posts("optim-step"), at: 2, reach: 1, do: says(409, true), goesOn: true},
	"an optim_step whose answer is cut":             {match: posts("optim-step"), at: 2, reach: 1, do: truncated, goesOn: true},
	"an optim_step that stands still":               {match: posts("optim-step"), at: 2, reach: 1, do: late(90 * time.Second), goesOn: true},
	"a checkpoint whose answer is lost":             {match: posts("training-checkpoint"), at: 1, reach: 1, do: after, goesOn: true},
	"a result that is lost":                         {match: reads("optim-step"), at: 2, reach: 2, do: before, goesOn: true},
	"a result that is cut":                          {match: reads("forward-backward"), at: 4, reach: 2, do: truncated, goesOn: true},
	"a result behind 500s":                          {match: reads("optim-step"), at: 2, reach: 3, do: says(500, false), goesOn: true},
	"every tenth answer is late":                    {match: anything, at: 10, reach: 1, do: late(50 * time.Second), goesOn: true},
	"a forward_backward FAILED, out of memory":      {ops: "forward-backward", at: 10, reach: 1, do: fails("RESOURCE_EXHAUSTED"), says: "RESOURCE_EXHAUSTED", goesOn: true},
	"an optim_step FAILED, internal":                {ops: "optim-step", at: 4, reach: 1, do: fails("INTERNAL_ERROR"), says: "INTERNAL_ERROR", goesOn: true},
	"an optim_step FAILED, timeout":                 {ops: "optim-step", at: 4, reach: 1, do: fails("TIMEOUT"), says: "TIMEOUT", goesOn: true},
	"an optim_step FAILED, a code of tomorrow":      {ops: "optim-step", at: 4, reach: 1, do: fails("MOON_PHASE"), says: "MOON_PHASE", goesOn: true},
	"an optim_step FAILED, session not active":      {ops: "optim-step", at: 4, reach: 1, do: fails("SESSION_NOT_ACTIVE"), says: "SESSION_NOT_ACTIVE", goesOn: true},
	"an optim_step FAILED, loss not finite":         {ops: "optim-step", at: 4, reach: 1, do: fails("NON_FINITE_LOSS"), says: "NON_FINITE_LOSS", refused: "the same rows fail again"},
	"an optim_step FAILED, input invalid":           {ops: "optim-step", at: 4, reach: 1, do: fails("INVALID_INPUT"), says: "INVALID_INPUT", refused: "the same rows fail again"},
	"a training checkpoint FAILED":                  {ops: "training-checkpoint", at: 1, reach: 1, do: fails("INTERNAL_ERROR"), goesOn: true},
	"an optim_step that is not known any more":      {ops: "optim-step", at: 4, reach: 1, do: says(404, false), says: "no longer knows", goesOn: true},
	"a forward_backward that is not known any more": {ops: "forward-backward", at: 10, reach: 1, do: says(404, false), says: "no longer knows", goesOn: true},
	"a step is counted twice":                       {ops: "optim-step", at: 4, reach: 1, do: skipped, says: "the service counts", goesOn: true},
	"a forward_backward that never ends":            {ops: "forward-backward", at: 10, reach: 1, do: unfinished, says: "", goesOn: true},
	"a forward_backward refused":                    {match: posts("forward-backward"), at: 11, reach: forever, do: says(422, false), says: `refused \(422\)`},
	"an optim_step refused":                         {match: posts("optim-step"), at: 4, reach: forever, do: says(422, false), says: `refused \(422\)`},
	"the key is revoked":                            {match: anything, at: 30, reach: forever, do: says(401, false), says: "check TOGETHER_API_KEY", billing: true},
	"the key may do nothing any more":               {match: func(r *http.Request) bool { return r.Method == "POST" }, at: 15, reach: forever, do: says(403, false), says: "permission", billing: true},
	"too many requests, for ever":                   {match: posts("optim-step"), at: 4, reach: forever, do: says(429, false, "Retry-After", "30"), says: `refused \(429\)`},
	"the resource's price is not told":              {match: posts("estimate-cost"), at: 1, reach: forever, do: says(403, false), says: "ask for the price"},
	"a resource that is refused":                    {match: posts("model-resources"), at: 1, reach: forever, do: says(402, false), says: "create the resource"},
	"a session that is refused":                     {match: posts("training-sessions"), at: 1, reach: forever, do: says(429, false), says: "create the session"},
	"a session that cannot be read": {match: func(r *http.Request) bool {
		return r.Method == "GET" && path.Base(path.Dir(r.URL.Path)) == "training-sessions"
	}, at: 1, reach: forever, do: says(403, false), says: "read session"},
	"the session is stopped by others":               {match: posts("optim-step"), at: 4, reach: 1, meddle: (*bench).endSession, says: "session", goesOn: true},
	"the resource is stopped by others":              {match: posts("optim-step"), at: 4, reach: 1, meddle: (*bench).endResource, says: "session", goesOn: true},
	"the session ends between two steps":             {match: posts("forward-backward"), at: 11, reach: 1, meddle: (*bench).endSession, says: "session", goesOn: true},
	"keys are ignored, an answer is lost":            {match: posts("optim-step"), at: 4, reach: 1, do: after, keys: never, says: "no clear answer", goesOn: true},
	"keys are ignored, nothing is lost":              {match: posts("optim-step"), at: 4, reach: 0, do: after, keys: never, goesOn: true},
	"keys are forgotten, an answer is lost for long": {match: posts("optim-step"), at: 4, reach: 40, do: after, keys: 65 * time.Second, says: "has forgotten an idempotency key", goesOn: true},
	"a stop that is refused":                         {match: stops, at: 1, reach: forever, do: says(403, false), goesOn: true, billing: true},
	"a stop that ends in 500":                        {match: stops, at: 1, reach: forever, do: says(500, false), goesOn: true, billing: true},
	"a stop whose answers are lost":                  {match: stops, at: 1, reach: 1, do: after, goesOn: true},
}

// TestFaults holds a run to its promises under each of them: it goes on, or ends and goes on in the next life, trains
// nothing twice, and leaves nothing running without saying so. Each meets the default lookahead and one of the others;
// with -everywhere all of them.
func TestFaults(t *testing.T) {
	t.Parallel()
	for _, lookahead := range []int{0, 1, 4} {
		b := newBench(t, fmt.Sprintf("train.lookahead=%d", lookahead), "optimizer.learning_rate=1e-3")
		var steps, lineage, weights string
		b.onDisk(func(t *testing.T) {
			if _, err := b.through(b.server); err != nil {
				t.Fatal(err)
			}
			o := judge(t, b.dir, b.store, true)
			o.hold(t, "unbroken")
			steps, lineage, weights = b.steps(), strings.Join(o.lineage(), "\n"), o.weights(t, b.store)
		})
		for name, f := range faults {
			if one := 4 * (len(name) % 2); lookahead != 1 && (lookahead != one || testing.Short()) && !*everywhere {
				continue
			}
			t.Run(fmt.Sprintf("lookahead %d/%s", lookahead, name), func(t *testing.T) {
				b := *b
				b.t = t
				b.onDisk(func(t *testing.T) {
					var server http.RoundTripper = b.server
					if f.keys != 0 {
						server = &rekey{next: b.server, life: max(0, f.keys), since: map[string]time.Time{}}
					}
					do := f.do
					if f.meddle != nil {
						do = func(r *http.Request, p pass) (*http.Response, error) { f.meddle(&b, r); return p() }
					}
					s, err := b.through(&liar{next: server, match: f.match, ops: f.ops, at: f.at, reach: f.reach, do: do})
					said := b.warned.String()
					if err != nil {
						said = err.Error()
					}
					if (err == nil) != f.goesOn || !regexp.MustCompile(f.says).MatchString(said) {
						t.Fatalf("the life ends with %v, want %q; its warnings: %s", err, f.says, b.warned.String())
					}
					if f.refused != "" && !errors.Is(err, runner.ErrHopeless) {
						t.Errorf("the first life does not say that a resume is refused: %v", err)
					}
					t.Logf("the first life: %v", err)
					judge(t, b.dir, b.store, !f.billing).hold(t, "the first life")
					if left := b.ready(); len(left) > 0 && len(s.Unreleased) == 0 {
						t.Errorf("left running without a word: %v", left)
					} else if f.billing && len(left) == 0 {
						t.Errorf("the test expects something to be left")
					}
					_, err = b.through(b.server)
					if f.refused != "" {
						if !errors.Is(err, runner.ErrHopeless) || !strings.Contains(err.Error(), f.refused) {
							t.Errorf("the next life ends with %v, want %q", err, f.refused)
						}
						judge(t, b.dir, b.store, true).hold(t, "the next life")
						return
					}
					if err != nil {
						t.Fatalf("the next life: %v", err)
					}
					o := judge(t, b.dir, b.store, true)
					o.hold(t, "the next life")
					if got := b.steps(); got != steps {
						t.Errorf("metrics\n%swant\n%s", got, steps)
					}
					if got := strings.Join(o.lineage(), "\n"); got != lineage {
						t.Errorf("trained with\n%s\nwant\n%s", got, lineage)
					}
					if o.weights(t, b.store) != weights {
						t.Error("other weights than those of the unbroken run")
					}
				})
			})
		}
	}
}
