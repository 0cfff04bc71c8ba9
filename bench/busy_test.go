package bench

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"trainer/internal/hub"
	"trainer/internal/together"
	"trainer/recipe"
	"trainer/runner"
)

var (
	python  = flag.String("python", "", "an interpreter with the official SDK, to measure beside us")
	rtt     = flag.Duration("rtt", 0, "what the network takes for a request and its answer")
	samples = flag.Int("samples", 8, "sequences a step")
	tokens  = flag.Int("tokens", 256, "tokens a sequence")
)

// BenchmarkBusy trains against a GPU that takes a given time for a step, and reports the share of the time in which it
// works; what is missing to 100 is what the client lets it wait.
func BenchmarkBusy(b *testing.B) {
	for _, d := range []time.Duration{50 * time.Millisecond, 300 * time.Millisecond, time.Second, 3 * time.Second} {
		steps := int(max(8, min(40, 10*time.Second/d)))
		for _, lookahead := range []int{0, 1} {
			b.Run(fmt.Sprintf("step=%v/trainer,lookahead=%d", d, lookahead), func(b *testing.B) {
				measure(b, d, func(url string) { train(b, url, steps, lookahead) })
			})
		}
		b.Run(fmt.Sprintf("step=%v/sdk", d), func(b *testing.B) {
			measure(b, d, func(url string) { sdk(b, url, "loop", "--steps", fmt.Sprint(steps)) })
		})
	}
}

// measure reports what the server saw of the last run of f, whose step takes d, an eighth of it the optimizer's.
func measure(b *testing.B, d time.Duration, f func(url string)) {
	url := serve(b)
	at := settings{Forward: d - d/8, Optim: d / 8, RTT: *rtt}
	var t tally
	for b.Loop() {
		control(b, url, at)
		f(url)
		t = control(b, url, at)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(100*t.share(), "busy-%")
	b.ReportMetric(t.Span.Seconds()/float64(t.Steps)/d.Seconds(), "time/step")
	b.ReportMetric(float64(t.LateMean.Microseconds())/1e3, "late-ms")
	b.ReportMetric(float64(t.LateMax.Microseconds())/1e3, "latest-ms")
	b.ReportMetric(float64(t.Requests)/float64(t.Steps), "requests/step")
}

// train runs a recipe of so many steps with our own loop, over HTTP.
func train(b *testing.B, url string, steps, lookahead int) {
	b.Helper()
	in, plan, dir := prepare(b, steps, lookahead)
	c := together.New(together.Options{BaseURL: url, Key: "k"})
	w := runner.World{Backend: c, Resources: c, Dir: dir, Version: "bench"}
	s, err := runner.Run(b.Context(), b.Context(), in, plan, w)
	if err != nil || s.Done != steps {
		b.Fatalf("%d of %d steps: %v", s.Done, steps, err)
	}
}

// prepare opens and plans a recipe over rows of our own.
func prepare(b *testing.B, steps, lookahead int) (*runner.Inputs, *runner.Plan, string) {
	b.Helper()
	dir := b.TempDir()
	var rows strings.Builder
	for i := range 4 * *samples {
		row, err := json.Marshal(map[string]string{"text": fmt.Sprintf("%d%s", i, strings.Repeat("x", *tokens-8))})
		if err != nil {
			b.Fatal(err)
		}
		rows.Write(append(row, '\n'))
	}
	text := fmt.Sprintf("base_model: %s\nloss: {type: cross_entropy}\ndataset: {train: rows.jsonl, max_length: 65536}\n"+
		"train: {epochs: null, num_steps: %d, batch_size: %d, lookahead: %d}\ncheckpoint: {inference_at_end: false}\n", model, steps, *samples, lookahead)
	path := filepath.Join(dir, "r.yaml")
	for name, data := range map[string]string{"r.yaml": text, "rows.jsonl": rows.String()} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	r, err := recipe.Load(path)
	if err != nil {
		b.Fatal(err)
	}
	in, err := runner.Open(b.Context(), r, &hub.Hub{}, true)
	if err != nil {
		b.Fatal(err)
	}
	p, err := runner.NewPlan(in)
	if err != nil {
		b.Fatal(err)
	}
	return in, p, b.TempDir()
}

// sdk runs sdk.py against the server and returns what it prints.
func sdk(b *testing.B, url, mode string, more ...string) []byte {
	b.Helper()
	if *python == "" {
		b.Skip("no -python with the official SDK")
	}
	args := []string{"sdk.py", mode, url, "--samples", fmt.Sprint(*samples), "--tokens", fmt.Sprint(*tokens)}
	run := exec.Command(*python, append(args, more...)...)
	run.Stderr = os.Stderr
	out, err := run.Output()
	if err != nil {
		b.Fatal(err)
	}
	return out
}
