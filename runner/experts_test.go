package runner_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
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
		files, err := filepath.Glob(filepath.Join(b.dir, "samples", "batch-*.jsonl"))
		if err != nil || len(files) != 2 {
			t.Fatalf("files of batches: %v, %v", files, err)
		}
		for _, name := range files {
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			for dec := json.NewDecoder(bytes.NewReader(data)); dec.More(); {
				var c struct {
					Key string `json:"routed_experts_key"`
				}
				if err := dec.Decode(&c); err != nil || c.Key == "" || kept[c.Key] {
					t.Fatalf("%s: key %q, %v", name, c.Key, err)
				}
				kept[c.Key] = true
			}
		}
		trained := 0
		for _, body := range line.bodies {
			f, err := api.DecodeForwardBackward(bytes.NewReader(body), 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, x := range f.Samples {
				if f.ForwardOnly {
					continue // a witness
				}
				if trained++; !kept[x.RoutedExpertsKey] {
					t.Errorf("a sample is trained with the key %q", x.RoutedExpertsKey)
				}
			}
		}
		if trained == 0 {
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
	next   http.RoundTripper
	path   string
	bodies [][]byte
}

func (l *listening) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, l.path) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		l.bodies = append(l.bodies, body)
		r = r.Clone(r.Context())
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	return l.next.RoundTrip(r)
}
