package runner_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"trainer/internal/sandbox"
	"trainer/internal/together"
	api "trainer/internal/wire"
	"trainer/runner"
)

// weights are those of the session that was opened last.
func (b *bench) weights() string {
	b.t.Helper()
	c := together.New(together.Options{BaseURL: "http://sandbox", Key: "k", Transport: b.server})
	list, err := c.Sessions(context.Background(), "")
	if err != nil || len(list) == 0 {
		b.t.Fatalf("%d sessions, %v", len(list), err)
	}
	hash, err := b.server.WeightsHash(list[0].ID)
	if err != nil {
		b.t.Fatal(err)
	}
	return fmt.Sprintf("%x", hash)
}

// TestAResumeMayChangeTheShape cuts a run at every third of its requests, with its answer lost or not, and resumes it in the
// other shape of requests: what the first life sent is sent again as it was, and the end is that of the unbroken run.
func TestAResumeMayChangeTheShape(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var want, weights string
	b.against(sandbox.Options{Dir: t.TempDir()}, func(t *testing.T) {
		if _, _, err := b.life(0, false); err != nil {
			t.Fatal(err)
		}
		want, weights = b.steps(), b.weights()
	})
	points := 0
	for _, first := range []api.Shape{api.April2026, api.Current} {
		for die, over := 1, false; !over; die += sparse(3) {
			lost := die%2 == 0
			b.against(sandbox.Options{Dir: t.TempDir()}, func(t *testing.T) {
				b.shape = first
				_, n, err := b.life(die, lost)
				if over = err == nil && n < die; over {
					if b.steps() != want || b.weights() != weights {
						t.Errorf("the unbroken run in the %s shape is another", first)
					}
					return
				}
				points++
				b.shape = api.April2026 - first
				point := fmt.Sprintf("%s, then %s, cut at request %d (lost %v)", first, b.shape, die, lost)
				b.resumes(t, point, want)
				if got := b.weights(); got != weights {
					t.Errorf("%s: weights %s, want %s", point, got, weights)
				}
			})
		}
	}
	if t.Logf("%d points", points); points < fewest(20) {
		t.Errorf("%d points are too few", points)
	}
}

// deaf is a server of the older shape that knows neither forward_only nor what returns the outputs.
type deaf struct {
	next    http.RoundTripper
	trained int
}

func (d *deaf) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body == nil || !strings.HasSuffix(r.URL.Path, "/forward-backward") {
		return d.next.RoundTrip(r)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	if !bytes.Contains(body, []byte(`"forward_only":true`)) {
		d.trained++
	}
	body = bytes.ReplaceAll(bytes.ReplaceAll(body, []byte(`,"forward_only":true`), nil), []byte(`,"return_loss_fn_outputs":true`), nil)
	again := r.Clone(r.Context())
	again.Body, again.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return d.next.RoundTrip(again)
}

// TestAServerThatTrainsOnWhatItIsToScoreIsLeft: what is held out is never trained on, whatever the server knows.
func TestAServerThatTrainsOnWhatItIsToScoreIsLeft(t *testing.T) {
	b := newBench(t)
	b.fresh(func(t *testing.T) {
		d := &deaf{next: b.server}
		c := together.New(together.Options{BaseURL: "http://sandbox", Key: "k", Transport: d, Shape: api.April2026})
		_, err := runner.Run(t.Context(), t.Context(), b.in, b.plan, runner.World{Backend: c, Resources: c, Dir: b.dir, Version: "test", Sandbox: true})
		if err == nil || !strings.Contains(err.Error(), "knows no forward_only") || d.trained > 0 {
			t.Errorf("got %v after %d requests that train", err, d.trained)
		}
		if left := b.ready(); len(left) > 0 {
			t.Errorf("left running: %v", left)
		}
	})
}
