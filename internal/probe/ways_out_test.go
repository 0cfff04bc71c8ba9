package probe_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"trainer/internal/probe"
	"trainer/internal/sandbox"
	"trainer/internal/together"
	"trainer/internal/wire"
	"trainer/runner"
)

func faults(t *testing.T, texts ...string) sandbox.Options {
	t.Helper()
	o := sandbox.Options{FaultSeed: 5}
	for _, text := range texts {
		r, err := sandbox.ParseFault(text)
		if err != nil {
			t.Fatal(err)
		}
		o.Faults = append(o.Faults, r)
	}
	return o
}

// A service whose answers get lost is understood all the same, and nothing stays behind: not even a session whose create was
// never answered, or was carried out twice. bench.probe looks.
func TestTroubleOnTheWayChangesNothing(t *testing.T) {
	for name, rules := range map[string][]string{
		"lost answers":                  {"drop:when=after,rate=0.1", "drop:when=before,rate=0.1"},
		"errors of the server":          {"server-error:rate=0.15", "server-error:when=after,rate=0.1,status=503"},
		"too many requests":             {"too-many-requests:rate=0.15,except=creates"},
		"answers that are cut":          {"truncate:rate=0.1"},
		"a create that is not heard":    {"drop:on=create-session,when=after,at=1"},
		"a create that shows up late":   {"drop:on=create-session,when=after,at=1", "late-create:on=create-session,after=20s"},
		"a create that is done twice":   {"double-create:on=create-session"},
		"a stop that is not heard":      {"drop:on=stop-session,when=after,at=1"},
		"a stop that is refused once":   {"refuse-stop:on=stop-session,at=1,status=409"},
		"a session that takes its time": {"latency:on=get-session,fixed=20s"},
	} {
		t.Run(name, func(t *testing.T) {
			o := faults(t, rules...)
			on(t, o, create("sandbox/bytes-tiny", true, false, 1), func(b *bench) {
				r, err := b.probe(b.t.Context(), b.client)
				if err != nil {
					t.Fatal(err)
				}
				for _, c := range sandbox.AllChoices() {
					if got, how := value(t, r, string(c.Choice)); got != c.Values[0] {
						t.Errorf("%s: got %s, want %s: %s", c.Choice, got, c.Values[0], how)
					}
				}
			})
		})
	}
}

// What goes wrong in the service itself is seen, or leaves a question open; it ends no probe.
func TestTroubleOfTheServiceIsToldAsItIs(t *testing.T) {
	type finding struct{ name, want, how string }
	for rule, findings := range map[string][]finding{
		"forget-key:on=forward-backward": {
			{"same_key", "new", "keys are not honoured"},
			{probe.ReusedKey, probe.Unknown, "made a second operation"},
		},
		"fail:on=forward-backward,at=1": {
			{"same_key", probe.Unknown, "INTERNAL_ERROR"},
			{probe.ReusedKey, probe.Unknown, "did not complete"},
		},
		"fail:on=optim-step": {
			{probe.GradNormalization, probe.Unknown, "INTERNAL_ERROR"},
			{probe.FailedLeaves, probe.Unknown, "INTERNAL_ERROR"},
			{"trainer_order", probe.Unknown, "INTERNAL_ERROR"},
		},
		"reorder:on=optim-step,rate=0.9": {{"trainer_order", "out_of_order", "back to back"}},
		"fail:on=sample":                 {{probe.StopToken, probe.Unknown, "INTERNAL_ERROR"}},
		"fail:on=weights-sync":           {{"pipeline_sync", "refused", "INTERNAL_ERROR"}},
		"expire-session:after=10ms":      {{probe.FailedLeaves, probe.Unknown, ""}},
	} {
		t.Run(rule, func(t *testing.T) {
			on(t, faults(t, rule), create("sandbox/bytes-tiny", true, false, 1), func(b *bench) {
				r, err := b.probe(b.t.Context(), b.client)
				if err != nil {
					t.Fatal(err)
				}
				for _, f := range findings {
					if got, how := value(t, r, f.name); got != f.want || !strings.Contains(how, f.how) {
						t.Errorf("%s: got %s (%s), want %s (%s)", f.name, got, how, f.want, f.how)
					}
				}
			})
		})
	}
}

func TestAResourceThatCannotBeProbedIsRefusedWithTheWayOut(t *testing.T) {
	full := create("sandbox/bytes-tiny", false, false, 0)
	t.Run("not ready yet", func(t *testing.T) {
		on(t, sandbox.Options{Provision: time.Hour}, full, func(b *bench) {
			_, err := probe.Find(b.t.Context(), b.client, b.resource)
			want(t, err, "is PENDING: probe it once `trainer resources list` says that it is READY")
		})
	})
	on(t, sandbox.Options{}, full, func(b *bench) {
		var s wire.Session
		b.call("POST", wire.PathSessions, `{"model_resources_id":"`+b.resource+`"}`, &s)
		target, err := probe.Find(b.t.Context(), b.client, b.resource)
		if err != nil {
			t.Fatal(err)
		}
		_, err = probe.Run(b.t.Context(), b.client, target, nil)
		want(t, err, "has no room for one more session: stop one of its sessions")
		var no *runner.Refused
		if !errors.As(err, &no) || no.Status != 429 {
			t.Errorf("got %v, want the refusal in it", err)
		}
		b.call("POST", wire.PathSessions+"/"+s.ID+"/stop", "", &s)
		b.empty()
		_, err = probe.Find(b.t.Context(), b.client, "nothing")
		want(t, err, "there is none; `trainer resources list` has yours")
		var r wire.Resource
		b.call("POST", wire.PathResources+"/"+b.resource+"/stop", "", &r)
		_, err = probe.Find(b.t.Context(), b.client, b.resource)
		want(t, err, "a probe needs one that is READY, and makes none itself")
	})
}

func want(t *testing.T, err error, text string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("got %v, want %q", err, text)
	}
}

// cutting is a transport that calls cut at a request, before or after the server has it.
type cutting struct {
	next  http.RoundTripper
	at    int
	after bool
	cut   func()

	mu sync.Mutex
	n  int
}

func (c *cutting) RoundTrip(r *http.Request) (*http.Response, error) {
	c.mu.Lock()
	c.n++
	due := c.n == c.at
	c.mu.Unlock()
	if due && !c.after {
		c.cut()
	}
	res, err := c.next.RoundTrip(r)
	if due && c.after {
		c.cut()
	}
	return res, err
}

// Ctrl-C at any request ends the probe as interrupted, and its session.
func TestAnInterruptedProbeLeavesNothing(t *testing.T) {
	for at := 1; ; at += 1 + at/2 {
		sent := 0
		for _, after := range []bool{false, true} {
			on(t, sandbox.Options{}, create("sandbox/bytes-tiny", true, false, 1), func(b *bench) {
				ctx, cancel := context.WithCancelCause(b.t.Context())
				defer cancel(nil)
				line := &cutting{next: b.server, at: at, after: after, cut: func() { cancel(runner.ErrInterrupted) }}
				c := together.New(together.Options{BaseURL: "http://sandbox", Key: "key", Transport: line})
				r, err := b.probe(ctx, c)
				if sent = line.n; sent >= at && ctx.Err() != nil && (!errors.Is(err, runner.ErrInterrupted) && r == nil) {
					t.Errorf("cut at request %d (after it: %v): got %v", at, after, err)
				}
			})
		}
		if sent < at {
			return
		}
	}
}

// A key that is withdrawn, or a service that is gone, ends the probe with what is left behind.
func TestAProbeThatCannotGoOnSaysWhatIsLeft(t *testing.T) {
	on(t, faults(t, "unauthorized:on=operations+stops"), create("sandbox/bytes-tiny", true, false, 1), func(b *bench) {
		target, err := probe.Find(b.t.Context(), b.client, b.resource)
		if err != nil {
			t.Fatal(err)
		}
		r, err := probe.Run(b.t.Context(), b.client, target, nil)
		want(t, err, "same_key: POST ")
		want(t, err, "may still hold a place on model resource "+b.resource)
		var no *runner.Refused
		if r != nil || !errors.As(err, &no) || no.Status != 401 {
			t.Errorf("got %v, %v", r, err)
		}
	})
}

// panicky is a service whose client has a bug.
type panicky struct{ probe.Service }

func (panicky) Post(context.Context, string, wire.Kind, string, []byte) (operation, error) {
	panic("a bug")
}

func TestAPanicStopsTheSession(t *testing.T) {
	on(t, sandbox.Options{}, create("sandbox/bytes-tiny", false, false, 0), func(b *bench) {
		defer b.empty()
		defer func() {
			if recover() == nil {
				t.Error("the panic is swallowed")
			}
		}()
		_, _ = b.probe(b.t.Context(), panicky{b.client})
	})
}
