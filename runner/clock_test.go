package runner_test

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"trainer/internal/sandbox"
)

// skew is a service whose clock is off from ours: every time that it tells is.
type skew struct {
	next http.RoundTripper
	by   time.Duration
}

var stamps = regexp.MustCompile(`"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"`)

func (s *skew) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := s.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if at, err := http.ParseTime(res.Header.Get("Date")); err == nil {
		res.Header.Set("Date", at.Add(s.by).UTC().Format(http.TimeFormat))
	}
	if res.Header.Get("Content-Type") != "application/json" {
		return res, nil
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, err
	}
	body = stamps.ReplaceAllFunc(body, func(text []byte) []byte {
		at, err := time.Parse(`"`+time.RFC3339Nano+`"`, string(text))
		if err != nil {
			return text
		}
		return []byte(at.Add(s.by).Format(`"` + time.RFC3339Nano + `"`))
	})
	res.Body, res.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return res, nil
}

// TestTwoClocksThatDisagree: whatever our clock says beside the service's, by hours or years, creates are settled, lives go
// on after one another, and what is metered is the service's time.
func TestTwoClocksThatDisagree(t *testing.T) {
	b := newBench(t)
	want := b.unbroken()
	for _, by := range []time.Duration{0, 7 * time.Hour, -7 * time.Hour, 10 * 365 * 24 * time.Hour, -10 * 365 * 24 * time.Hour} {
		b.against(sandbox.Options{}, func(t *testing.T) {
			line := &skew{b.server, by}
			cutOff := &killer{next: line, match: posts("optim-step"), at: 4}
			b.cut(t, cutOff)
			time.Sleep(3*time.Minute + 20*time.Second)
			s, err := b.through(line)
			if err != nil || s.Outcome != "complete" {
				t.Fatalf("%v: %s, %v", by, s.Outcome, err)
			}
			if got := b.steps(); got != want {
				t.Errorf("%v: got\n%swant\n%s", by, got, want)
			}
			judge(t, b.dir, b.store, true).hold(t, fmt.Sprint(by))
		}, "drop:when=after,on=creates,times=2")
	}
}

// TestWhatIsProjectedComesBack: every file of a run folder but those that the protocol names comes back as it was when it is
// deleted.
func TestWhatIsProjectedComesBack(t *testing.T) {
	b := newBench(t)
	b.against(sandbox.Options{}, func(t *testing.T) {
		if _, err := b.through(b.server); err != nil {
			t.Fatal(err)
		}
		names := []string{"metrics.jsonl", "metrics.abandoned.jsonl", "checkpoints.jsonl"}
		was := map[string][]byte{}
		for _, name := range names {
			path := filepath.Join(b.dir, name)
			data, err := os.ReadFile(path)
			if err != nil || len(data) == 0 {
				t.Fatalf("%s: %d bytes, %v", name, len(data), err)
			}
			was[name] = data
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}
		if s, err := b.through(b.server); err != nil || !s.Idle {
			t.Fatalf("%+v, %v", s, err)
		}
		for _, name := range names {
			if got, err := os.ReadFile(filepath.Join(b.dir, name)); err != nil || !bytes.Equal(got, was[name]) {
				t.Errorf("%s came back as\n%s\nwant\n%s (%v)", name, got, was[name], err)
			}
		}
	}, failing)
}

var everywhere = flag.Bool("everywhere", false, "tests that end a life at points of it try every point in each way, under every lookahead")

// sparse is the stride between the points of a test that ends a life at them: one with -everywhere, and wider where -short
// asks for a sample of them: under the race detector each costs ten times as much, and what races, races at many.
func sparse(stride int) int {
	switch {
	case *everywhere:
		return 1
	case testing.Short():
		return 15 * stride
	}
	return stride
}

// ways are how a life is cut at a request: before it arrives, or with its answer lost. With an odd stride they take turns.
func ways(die int) []bool {
	if *everywhere {
		return []bool{false, true}
	}
	return []bool{die%2 == 0}
}

// inTurn says whether row i of a table is to be tried as variant k of n: with -short each row is tried as one of them, in turn.
func inTurn(i, k, n int) bool { return !testing.Short() || i%n == k }

// fewest is how many points such a test has to find, so that it is seen to try any.
func fewest(points int) int {
	if testing.Short() {
		return 1
	}
	return points
}
