package runner_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	api "trainer/internal/wire"
)

// TestReplayRoutedExperts: what a step trains of a completion goes with the key that came with it, kept in the file of its
// batch; the sandbox takes no other.
func TestReplayRoutedExperts(t *testing.T) {
	b := newRollouts(t, "base_model=openai/gpt-oss-20b", "advantage.zero_variance=keep", "rollout.replay_routed_experts=true", "train.num_steps=2", "train.epochs=null", "eval.every=null", "eval.at_start=false", "eval.limit=null")
	b.onDisk(func(t *testing.T) {
		line := &listening{next: b.server, path: "/forward-backward"}
		if s, err := b.through(line); err != nil || s.Outcome != "complete" {
			t.Fatalf("%s, %v: %s", s.Outcome, err, b.warned.String())
		}
		judge(t, b.dir, b.store, true).hold(t, "experts")
		kept := map[string]bool{}
		for _, c := range slices.Concat(b.completions(t)...) {
			if c.Key == "" || kept[c.Key] {
				t.Fatalf("key %q", c.Key)
			}
			kept[c.Key] = true
		}
		trained := line.trained(t)
		for _, x := range slices.Concat(trained...) {
			if !kept[x.RoutedExpertsKey] {
				t.Errorf("a sample is trained with the key %q", x.RoutedExpertsKey)
			}
		}
		if len(trained) == 0 {
			t.Error("nothing was trained")
		}
	})
}

// TestExpertsOfADenseModel: one without experts gives no keys, and the run says so in place of training without.
func TestExpertsOfADenseModel(t *testing.T) {
	b := newRollouts(t, "rollout.replay_routed_experts=true")
	b.onDisk(func(t *testing.T) {
		_, err := b.through(b.server)
		if err == nil || !strings.Contains(b.warned.String(), "sandbox/bytes-tiny is no mixture of experts, set rollout.replay_routed_experts to false") {
			t.Errorf("%v; warned %s", err, b.warned.String())
		}
	})
}

// listening keeps the bodies of the POSTs to paths that end in path.
type listening struct {
	next http.RoundTripper
	path string

	mu     sync.Mutex
	bodies [][]byte
	at     []string // the path of each
}

func (l *listening) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, l.path) {
		var body []byte
		if r.Body != nil {
			var err error
			if body, err = io.ReadAll(r.Body); err != nil {
				return nil, err
			}
			r = r.Clone(r.Context())
			r.Body = io.NopCloser(bytes.NewReader(body))
		}
		l.mu.Lock()
		l.bodies, l.at = append(l.bodies, body), append(l.at, r.URL.Path)
		l.mu.Unlock()
	}
	return l.next.RoundTrip(r)
}

// trained are the samples of the requests that train, by request.
func (l *listening) trained(t *testing.T) (all [][]api.Sample) {
	t.Helper()
	for _, body := range l.bodies {
		f, err := api.DecodeForwardBackward(bytes.NewReader(body), 0)
		if err != nil {
			t.Fatal(err)
		}
		if !f.ForwardOnly {
			all = append(all, f.Samples)
		}
	}
	return all
}

// kept is a line of the file of a rollout batch.
type kept struct {
	Trained   bool
	Advantage float64
	Tokens    []int32
	Logprobs  []float64
	Ref       []float64 `json:"ref_logprobs"`
	Key       string    `json:"routed_experts_key"`
	Observed  [][2]int
}

// completions are those of the files of batches, by batch.
func (b *bench) completions(t *testing.T) (all [][]kept) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(b.dir, "samples", "batch-*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Fatalf("files of batches: %v, %v", files, err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var batch []kept
		for dec := json.NewDecoder(bytes.NewReader(data)); dec.More(); {
			var c kept
			if err := dec.Decode(&c); err != nil {
				t.Fatal(err)
			}
			batch = append(batch, c)
		}
		all = append(all, batch)
	}
	return all
}
