package runner_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"trainer/internal/tokenizer"
)

// stopless stands before a server whose model takes no stop texts: a sample that has some fails.
type stopless struct {
	next http.RoundTripper

	mu     sync.Mutex
	failed map[string]bool // operations
}

func (s *stopless) RoundTrip(r *http.Request) (*http.Response, error) {
	pass := func() (*http.Response, error) { return s.next.RoundTrip(r) }
	if posts("sample")(r) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		if !bytes.Contains(body, []byte(`"stop":["`)) {
			return pass()
		}
		return altered(func() (*http.Response, error) { return unfinished(nil, pass) }, func(b []byte) []byte {
			var op struct{ ID string }
			s.mu.Lock()
			defer s.mu.Unlock()
			if json.Unmarshal(b, &op) == nil {
				s.failed[op.ID] = true
			}
			return b
		})
	}
	s.mu.Lock()
	failed := s.failed[path.Base(r.URL.Path)]
	s.mu.Unlock()
	if failed {
		return fails("INVALID_INPUT")(r, pass)
	}
	return pass()
}

// TestStopsAreCutHere: a model that takes no stop texts is sampled without, each completion ends where a stop text does, with as
// many log-probabilities as tokens, and the run learns from that, also in a life that goes on.
func TestStopsAreCutHere(t *testing.T) {
	stops := strings.Split("abcdefghijklmnop", "")
	b := newRollouts(t, "rollout.sampling_params.stop=["+strings.Join(stops, ", ")+"]")
	b.fresh(func(t *testing.T) {
		line := &stopless{next: b.server, failed: map[string]bool{}}
		if s, err := b.through(line); err != nil || s.Outcome != "complete" || len(line.failed) == 0 {
			t.Fatalf("%s, %v; %d samples were refused", s.Outcome, err, len(line.failed))
		}
		files, err := filepath.Glob(filepath.Join(b.dir, "samples", "batch-*.jsonl"))
		if err != nil || len(files) == 0 {
			t.Fatal(files, err)
		}
		ended := 0
		for _, name := range files {
			ended += endAtStops(t, name, stops)
		}
		if ended == 0 {
			t.Error("no completion meets a stop text")
		}
	})
}

// endAtStops counts the completions of a file that end at a stop text, and holds the others to have none.
func endAtStops(t *testing.T, name string, stops []string) (ended int) {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var c struct {
			Stop     string
			Tokens   []int32
			Logprobs []float64
		}
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		if len(c.Tokens) != len(c.Logprobs) || len(c.Tokens) == 0 {
			t.Errorf("%s: %d tokens, %d log-probabilities", name, len(c.Tokens), len(c.Logprobs))
			continue
		}
		last := len(c.Tokens) - 1
		for _, stop := range stops {
			if strings.Contains(plainText(c.Tokens[:last]), stop) {
				t.Errorf("%s: %q goes on behind %q", name, plainText(c.Tokens), stop)
			}
			if plainText(c.Tokens[last:]) == stop {
				ended++
				if c.Stop != "stop" {
					t.Errorf("%s: %q ends by %q", name, plainText(c.Tokens), c.Stop)
				}
			}
		}
	}
	return ended
}

// plainText is what stands in tokens beside control tokens, whose names no stop text is looked for in.
func plainText(ids []int32) string {
	var out []int32
	for _, id := range ids {
		if id < 256 {
			out = append(out, id)
		}
	}
	return tokenizer.Bytes().Decode(out)
}
