package sandbox

import (
	"math"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"trainer/internal/wire"
)

func TestTimeRunsFaster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := open(t, Options{Speed: 1000, Provision: 2 * time.Hour})
		r := c.resource(`{"base_model":"sandbox/bytes-tiny","inactive_timeout":3600}`)
		date := func() time.Time {
			at, err := http.ParseTime(c.try("GET", wire.PathModels, "").header.Get("Date"))
			if err != nil {
				t.Fatal(err)
			}
			return at
		}
		start := date()
		for _, tt := range []struct {
			status wire.ResourceStatus
			sleep  time.Duration
		}{
			{wire.ResourcePending, 3600 * time.Millisecond}, {wire.ResourceCreating, 3600 * time.Millisecond},
			{wire.ResourceReady, 3600 * time.Millisecond}, {wire.ResourceStopped, 0},
		} {
			if got := c.getResource(r.ID).Status; got != tt.status {
				t.Errorf("after %v of Date: got %s, want %s", date().Sub(start), got, tt.status)
			}
			time.Sleep(tt.sleep)
		}
		if got := date().Sub(start); got != 3*time.Hour {
			t.Errorf("10.8s took %v of Date, want 3h", got)
		}
	})
}

func TestASpeedThatIsNone(t *testing.T) {
	for _, speed := range []float64{-1, math.NaN(), math.Inf(1), 2 * MaxSpeed} {
		if _, err := Open(Options{Speed: speed}); err == nil {
			t.Errorf("%v: got no error", speed)
		}
	}
}

// A server that was fast and was killed has told times that its log does not have; the next one starts behind them.
func TestTimeDoesNotGoBackAfterAFastServerWasKilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		s, err := Open(Options{Dir: dir, Speed: 1000})
		if err != nil {
			t.Fatal(err)
		}
		c := &client{t: t, http: s}
		id := c.resource(`{"base_model":"sandbox/bytes-tiny","inactive_timeout":86400}`).ID
		time.Sleep(249 * time.Millisecond)
		c.getResource(id)
		s.mu.Lock()
		told := s.clock.now()
		s.mu.Unlock()
		copied := t.TempDir()
		if err := copyDir(copied, dir); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s, _ = open(t, Options{Dir: copied})
		s.mu.Lock()
		defer s.mu.Unlock()
		if now := s.clock.now(); now.Before(told) {
			t.Errorf("got %v, want no earlier than %v, which was told", now, told)
		}
	})
}

func TestOperationsTakeTheirTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pace, err := OpTime{}.With("forward-backward=100ms+1ms,forward-only=10ms+1ms,optim-step=3s")
		if err != nil {
			t.Fatal(err)
		}
		_, c := open(t, Options{Speed: 10, OpTime: pace})
		id := c.tiny()
		hello := row("hello") // 4 tokens
		start := time.Now()
		var ids []string
		for _, op := range []struct {
			kind wire.Kind
			body string
		}{
			{wire.KindForwardBackward, batch(t, "", hello, hello)}, {wire.KindForwardBackward, batch(t, `,"forward_only":true`, hello)},
			{wire.KindOptimStep, `{}`}, {wire.KindWeightsSync, syncNow},
		} {
			ids = append(ids, c.post(id, op.kind, op.body).ID)
		}
		// In virtual time: 108 ms, 14 ms, 3 s, nothing.
		for _, tt := range []struct {
			at       time.Duration
			first    wire.OperationStatus
			optim    wire.OperationStatus
			last     wire.OperationStatus
			stepsNow wire.Int64
		}{
			{0, wire.OperationRunning, wire.OperationPending, wire.OperationPending, 0},
			{100 * time.Millisecond, wire.OperationRunning, wire.OperationPending, wire.OperationPending, 0},
			{130 * time.Millisecond, wire.OperationCompleted, wire.OperationRunning, wire.OperationPending, 0},
			{3100 * time.Millisecond, wire.OperationCompleted, wire.OperationRunning, wire.OperationPending, 0},
			{3130 * time.Millisecond, wire.OperationCompleted, wire.OperationCompleted, wire.OperationCompleted, 1},
		} {
			time.Sleep(tt.at/10 - time.Since(start))
			synctest.Wait()
			status := func(kind wire.Kind, i int) wire.OperationStatus {
				var op wire.Operation[struct{}]
				c.ok("GET", opsPath(id, kind)+"/"+ids[i], "", &op)
				return op.Status
			}
			first, optim, last := status(wire.KindForwardBackward, 0), status(wire.KindOptimStep, 2), status(wire.KindWeightsSync, 3)
			if first != tt.first || optim != tt.optim || last != tt.last {
				t.Errorf("after %v: got %s, %s, %s; want %s, %s, %s", tt.at, first, optim, last, tt.first, tt.optim, tt.last)
			}
			if got := c.getSession(id).Step; got != tt.stepsNow {
				t.Errorf("after %v: got step %d, want %d", tt.at, got, tt.stepsNow)
			}
		}
	})
}

// movedClock is moved by the test while the server looks at it.
type movedClock struct{ at atomic.Int64 } // seconds since 1970

func (c *movedClock) Now() time.Time       { return time.Unix(c.at.Load(), 0) }
func (c *movedClock) move(d time.Duration) { c.at.Add(int64(d / time.Second)) }

// Where the clock is the caller's, operations end when it says so, and the resource's idleness begins then.
func TestOperationsOfAClockByHand(t *testing.T) {
	clock := &movedClock{}
	_, c := open(t, Options{Clock: clock, OpTime: OpTime{wire.KindOptimStep: {Base: time.Hour}}})
	r := c.resource(`{"base_model":"sandbox/bytes-tiny","inactive_timeout":300}`)
	id := c.session(`{"model_resources_id":"` + r.ID + `"}`).ID
	ended := clock.Now().Add(time.Hour)
	op := c.post(id, wire.KindOptimStep, `{}`)
	clock.move(59 * time.Minute)
	if got := c.getResource(r.ID).Status; got != wire.ResourceReady {
		t.Errorf("busy for 59 minutes: got %s, want READY", got)
	}
	clock.move(2 * time.Minute)
	if got := c.wait(id, wire.KindOptimStep, op.ID); got.Status != wire.OperationCompleted {
		t.Errorf("after an hour: got %+v", got)
	}
	if got, want := c.getResource(r.ID).ExpiresAt, ended.Add(300*time.Second); got == nil || !got.Equal(want) {
		t.Errorf("expires at %v, want 300s after the operation's end, %v", got, want)
	}
}

func TestAServerIsClosedWhileAnOperationTakesItsTime(t *testing.T) {
	dir := t.TempDir()
	clock := &movedClock{}
	s, c := open(t, Options{Dir: dir, Clock: clock, OpTime: OpTime{wire.KindOptimStep: {Base: time.Hour}}})
	id := c.tiny()
	c.loss(id, "", row("hello"))
	op := c.post(id, wire.KindOptimStep, `{"adam_params":{"learning_rate":0.01}}`)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s, c = open(t, Options{Dir: dir})
	if got := c.wait(id, wire.KindOptimStep, op.ID); got.Status != wire.OperationCompleted {
		t.Errorf("after a restart: got %+v", got)
	}
	want := trainedBy(t, Options{}, func(c *client, id string) {
		c.loss(id, "", row("hello"))
		c.run(id, wire.KindOptimStep, `{"adam_params":{"learning_rate":0.01}}`, nil)
	})
	if got, err := s.WeightsHash(id); err != nil || got != want {
		t.Errorf("the weights are not those of an operation that ran once (%v)", err)
	}
}

func TestPacesAreRead(t *testing.T) {
	p, err := FindGPUProfile("b200-8b")
	if err != nil {
		t.Fatal(err)
	}
	// 6·8e9 operations a token, at 40 % of 2.25e15 a second.
	if got, want := p[wire.KindForwardBackward].PerToken, 53333*time.Nanosecond; got != want {
		t.Errorf("b200-8b: %v a token, want %v", got, want)
	}
	over, err := p.With("optim-step=1s,sample=2s+5ms")
	if err != nil || over[wire.KindOptimStep] != (Pace{Base: time.Second}) || over[wire.KindSample] != (Pace{2 * time.Second, 5 * time.Millisecond}) {
		t.Errorf("got %v, %v", over, err)
	}
	if p[wire.KindOptimStep].Base == time.Second {
		t.Error("the profile itself has changed")
	}
	for text, want := range map[string]string{
		"optim-stp=1s": `did you mean "optim-step"`, "optim-step": "is not KIND=TIME", "optim-step=1": `"1" is not a time`,
		"optim-step=-1s": "is not a time", "optim-step=1s+2": "is not a time", "": "is not KIND=TIME",
	} {
		if _, err := p.With(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
	if _, err := FindGPUProfile("b200-8"); err == nil || !strings.Contains(err.Error(), "did you mean") {
		t.Errorf("got %v", err)
	}
}

func TestEveryRequestHasANameOfItsOwn(t *testing.T) {
	seen := map[string]string{}
	for _, rt := range routes() {
		name := rt.labels()[0]
		if other := seen[name]; other != "" || name == "" || strings.HasSuffix(name, "-") || strings.HasPrefix(name, "-") {
			t.Errorf("%s %s is %q, as %q is", rt.method, rt.path, name, other)
		}
		seen[name] = rt.method + " " + rt.path
	}
	for _, name := range []string{
		"create-resource", "list-resources", "get-resource", "stop-resource", "create-session", "get-session", "update-session", "stop-session",
		"optim-step", "get-optim-step", "upload-url", "put-payload", "get-payload", "list-checkpoints", "download-checkpoint", "list-models",
	} {
		if seen[name] == "" {
			t.Errorf("no request is %q", name)
		}
	}
}
