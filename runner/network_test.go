package runner_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"trainer/internal/together"
	"trainer/runner"
)

// outage is a network that is dead for so long from request number at on: that one is carried out, and its answer lost.
type outage struct {
	next http.RoundTripper
	at   int
	last time.Duration

	mu    sync.Mutex
	n     int
	until time.Time
}

func (o *outage) RoundTrip(r *http.Request) (*http.Response, error) {
	o.mu.Lock()
	o.n++
	begins := o.n == o.at
	if begins {
		o.until = time.Now().Add(o.last)
	}
	dead := time.Now().Before(o.until)
	o.mu.Unlock()
	if !dead {
		return o.next.RoundTrip(r)
	}
	if begins {
		if res, err := o.next.RoundTrip(r); err == nil {
			_, _ = io.Copy(io.Discard, res.Body)
			_ = res.Body.Close()
		}
	}
	return nil, errCut
}

func (o *outage) met() bool { o.mu.Lock(); defer o.mu.Unlock(); return !o.until.IsZero() }

// patiently is a life whose client waits for the network as long as a run of the command does, and counts its tries.
func (b *bench) patiently(rt http.RoundTripper) (s runner.Summary, tries int, err error) {
	var mu sync.Mutex
	c := together.New(together.Options{BaseURL: "http://sandbox", Key: "k", Transport: rt, Patience: b.in.Recipe.InactiveTimeout / 2,
		OnRetry: func(together.Retry) { mu.Lock(); tries++; mu.Unlock() }})
	b.warned.Reset()
	w := runner.World{Backend: c, Resources: c, Downloads: c, Dir: b.dir, Version: "test", Sandbox: true, Sinks: []runner.Sink{listener{&b.warned}}}
	s, err = runner.Run(context.Background(), context.Background(), b.in, b.plan, w)
	return s, tries, err
}

// TestANetworkDeadForMinutes: from each request on, the network is dead for five minutes, in which that request is carried
// out and its answer lost. The run waits, and comes in one life to the end that it comes to without that.
func TestANetworkDeadForMinutes(t *testing.T) {
	t.Parallel()
	for _, lookahead := range []int{0, 1} {
		b := newBench(t, fmt.Sprintf("train.lookahead=%d", lookahead))
		want, points := b.measured(), 0
		for at, over := 1, false; !over; at += sparse(2) {
			b.onDisk(func(t *testing.T) {
				line := &outage{next: b.server, at: at, last: 5 * time.Minute}
				s, tries, err := b.patiently(line)
				if over = !line.met(); over {
					return
				}
				points++
				if err != nil && s.Outcome != "complete" {
					t.Fatalf("lookahead %d, request %d: %s, %v", lookahead, at, s.Outcome, err)
				}
				if tries == 0 {
					t.Errorf("lookahead %d, request %d: nothing was told of the tries", lookahead, at)
				}
				if left := b.readyNow(t); len(left) > len(s.Unreleased)+len(s.Twins) {
					t.Errorf("lookahead %d, request %d: left running: %v, told: %v %v", lookahead, at, left, s.Unreleased, s.Twins)
				}
				b.compare(t, want)
			})
		}
		if points < fewest(20) {
			t.Errorf("lookahead %d: %d points are too few", lookahead, points)
		}
	}
}

// TestANetworkDeadForLong: what lasts longer than half an inactive_timeout ends the life; the next one goes on.
func TestANetworkDeadForLong(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	want := b.unbroken()
	for at, over := 1, false; !over; at += sparse(5) {
		b.fresh(func(t *testing.T) {
			line := &outage{next: b.server, at: at, last: time.Hour}
			begun := time.Now()
			s, _, err := b.patiently(line)
			if over = !line.met(); over || s.Outcome == "complete" { // cut in its stops
				return
			}
			if took := time.Since(begun); err == nil || took < b.in.Recipe.InactiveTimeout/2-10*time.Second || took > time.Hour {
				t.Errorf("request %d: %v after %v", at, err, took)
			}
			time.Sleep(time.Hour)
			b.alter = func(w *runner.World) { w.Restart = true }
			defer func() { b.alter = nil }()
			if s, err := b.through(b.server); err != nil || b.steps() != want {
				t.Errorf("request %d: the next life: %s, %v", at, s.Outcome, err)
			}
			if left := b.ready(); len(left) > 0 {
				t.Errorf("request %d: left running: %v", at, left)
			}
		})
	}
}
