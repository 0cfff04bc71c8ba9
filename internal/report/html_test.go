package report

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"trainer/runner"
)

// folder is a run folder that a test writes.
type folder struct {
	t   *testing.T
	dir string
}

func newFolder(t *testing.T) folder { return folder{t, t.TempDir()} }

func (f folder) write(name, text string) folder {
	f.t.Helper()
	if err := os.WriteFile(filepath.Join(f.dir, name), []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
	return f
}

func (f folder) about(r runner.RunInfo) folder {
	f.t.Helper()
	if err := writeAbout(f.dir, r); err != nil {
		f.t.Fatal(err)
	}
	return f
}

func (f folder) events(events ...runner.Event) folder {
	f.t.Helper()
	var b strings.Builder
	for _, e := range events {
		line, err := encodeEvent(e)
		if err != nil {
			f.t.Fatal(err)
		}
		b.Write(line)
	}
	return f.write(eventsFile, b.String())
}

// steps writes metrics.jsonl with a curve that falls.
func (f folder) steps(n int) folder {
	var b strings.Builder
	for step := 1; step <= n; step++ {
		x := float64(step)
		m := map[string]any{"step": step, "generation": 0, "train/loss": 2*math.Exp(-x/float64(n)*3) + 0.3 + 0.2*math.Sin(x*12.9898)*math.Sin(x*78.233),
			"learning_rate": 1e-4 * (1 - x/float64(n+1)), "tokens": 4096, "trained_tokens": 1024, "time/tokens_per_second": 12000 + 900*math.Sin(x),
			"time/elapsed_seconds": x * 2, "cost/usd": x * 0.01, "epoch": x / 50, "api/grad_norm": 1 + math.Abs(math.Sin(x*3.7))}
		line, err := json.Marshal(m)
		if err != nil {
			f.t.Fatal(err)
		}
		b.Write(append(line, '\n'))
	}
	return f.write("metrics.jsonl", b.String())
}

// page writes and returns report.html, which must be well-formed.
func (f folder) page() string {
	f.t.Helper()
	if err := WriteHTML(f.dir); err != nil {
		f.t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(f.dir, pageFile))
	if err != nil {
		f.t.Fatal(err)
	}
	wellFormed(f.t, string(data))
	return string(data)
}

// wellFormed holds the page to XML's rules, which are stricter than HTML's: every tag closed, in order, quoted.
func wellFormed(t *testing.T, page string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(page))
	for {
		switch _, err := d.Token(); {
		case errors.Is(err, io.EOF):
			return
		case err != nil:
			t.Fatalf("the page is not well-formed: %v", err)
		}
	}
}

// selfContained refuses what a browser would fetch or run.
func selfContained(t *testing.T, page string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(page))
	for {
		token, err := d.Token()
		if err != nil {
			return
		}
		e, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		switch e.Name.Local {
		case "script", "link", "img", "iframe", "object", "embed", "image", "use", "a", "form", "base":
			t.Errorf("the page has a <%s>", e.Name.Local)
		}
		for _, a := range e.Attr {
			if name := strings.ToLower(a.Name.Local); name == "href" || name == "src" || name == "style" || strings.HasPrefix(name, "on") {
				t.Errorf("<%s> has %s=%q", e.Name.Local, name, a.Value)
			}
		}
	}
}

func testPlan(steps int) *runner.Plan {
	p := &runner.Plan{
		BatchesPerEpoch: 50, Epochs: float64(steps) / 50, BatchSize: 16, Rows: 800, Held: 40, Tokens: int64(steps) * 4096, Trained: int64(steps) * 1024, Warmup: steps / 20,
		Lengths: runner.Histogram{Bounds: []int{64, 128, 256, 512, 1024}, Counts: []int{120, 410, 190, 75, 5}, Longest: 987},
		Lock:    runner.Lock{"recipe": "5a1c0d", "dataset": "77e0b2"},
		Cost:    &runner.Cost{USDPerHour: 12.4, DeadMan: 16 * time.Minute, DeadManUSD: 3.31},
	}
	for i := range steps {
		rate := 1e-4 * (1 - float64(i)/float64(steps))
		if i < p.Warmup {
			rate = 1e-4 * float64(i+1) / float64(p.Warmup)
		}
		p.Rates = append(p.Rates, rate)
	}
	return p
}

var clock0 = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

func at(seconds float64) time.Time { return clock0.Add(time.Duration(seconds * float64(time.Second))) }

func TestPageOfAWholeRun(t *testing.T) {
	f := newFolder(t).steps(400).
		about(runner.RunInfo{ID: "0f3e", Name: "capitals", BaseModel: "Qwen/Qwen3.8-27B", Recipe: "recipes/capitals.yaml", Plan: testPlan(400), PriceUSDPerHour: 12.4}).
		write("lock.yaml", "# what decides the result\nrecipe: 5a1c0d9e\ndataset: 77e0b2aa\n").
		write("resolved.yaml", "version: 1  # recipe.yaml:1\nbase_model: Qwen/Qwen3.8-27B  # recipe.yaml:2\n")
	events := []runner.Event{{Time: at(0), Kind: runner.StageEvent, Text: "queued (position 3)"}}
	for done := 40; done <= 400; done += 40 {
		events = append(events,
			runner.Event{Time: at(float64(done) * 2), Kind: runner.EvalEvent, Done: done, Metrics: map[string]float64{"eval/loss": 0.5 + 100/float64(done+40)}},
			runner.Event{Time: at(float64(done) * 2), Kind: runner.SaveEvent, Done: done, Text: fmt.Sprintf("training ckpt_%04d", done)})
	}
	events = append(events,
		runner.Event{Time: at(400), Kind: runner.SaveEvent, Done: 200, Text: "inference ckpt_i200 registered as ml_200"},
		runner.Event{Time: at(500), Kind: runner.RetryEvent, Done: 250, Text: "GET /v1/rl/…: 503, again in 2s"},
		runner.Event{Time: at(801), Kind: runner.EndEvent, Done: 400, Text: "complete", Metrics: map[string]float64{"cost/usd": 4.02}})
	page := f.events(events...).page()
	selfContained(t, page)
	for _, want := range []string{
		"<h1>capitals</h1>", "run 0f3e", `badge good">complete`, "of 400", "train/loss", "smoothed over 10 steps", "ckpt_0400", "$4.02", "13m21s",
		"5a1c0d9e", "recipes/capitals.yaml", "# recipe.yaml:2", "api/grad_norm", "503, again in 2s", "0.7273",
		`<td class="mono">ckpt_i200</td><td class="mono">ml_200</td>`, "<code>trainer checkpoints download " + f.dir + " --out model</code>",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

func TestPageOfAnOpenRunForecastsItsCost(t *testing.T) {
	r := runner.RunInfo{Name: "open", PriceUSDPerHour: 12.4, Plan: &runner.Plan{Rates: make([]float64, 10)}}
	page := newFolder(t).about(r).write("metrics.jsonl", "{\"step\":1,\"train/loss\":1,\"cost/usd\":0.5,\"cost/forecast_usd\":4.75}\n").
		events(runner.Event{Time: at(9), Kind: runner.StepEvent, Done: 1, Metrics: map[string]float64{"cost/usd": 0.5}}).page()
	for _, want := range []string{"$0.50", "at $12.40 an hour, $4.75 forecast for all steps"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

func TestPageOfALaterLifeNamesTheFirstRecipeAndTheNewestBinary(t *testing.T) {
	first := runner.RunInfo{ID: "0f3e", Name: "capitals", Recipe: "recipes/capitals.yaml", Version: "0.1.0", Sandbox: true, PriceUSDPerHour: 12.4}
	later := first
	later.Recipe, later.Version = "runs/capitals/resolved.yaml", "0.2.0"
	page := newFolder(t).about(first).about(later).steps(3).
		events(runner.Event{Time: at(9), Kind: runner.EndEvent, Done: 3, Text: "failed: step 4: no space left", Metrics: map[string]float64{"cost/usd": 1}}).page()
	for _, want := range []string{">recipes/capitals.yaml<", ">0.2.0<", "cost, rehearsed", `badge bad">failed<`, "step 4: no space left"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

func TestPageOfWhatIsMissingOrBroken(t *testing.T) {
	line := func(step int, rest string) string { return fmt.Sprintf(`{"step":%d%s}`+"\n", step, rest) }
	ended := runner.Event{Time: at(9), Kind: runner.EndEvent, Done: 1, Text: "interrupted"}
	cases := []struct {
		name string
		make func(f folder)
		want []string
		not  []string
	}{
		{"an empty folder", func(folder) {}, []string{"not started", "No step has a loss yet."}, []string{"<svg"}},
		{"a plan without steps", func(f folder) { f.about(runner.RunInfo{Name: "n", Plan: testPlan(30)}) }, []string{"of 30", "No step has a loss yet.", "planned", "77e0b2"}, nil},
		{"one step", func(f folder) { f.steps(1) }, []string{"<svg", "step 1: train/loss", "unfinished"}, nil},
		{"a life that was interrupted", func(f folder) { f.steps(1).events(ended) }, []string{`badge open">interrupted`}, nil},
		{"a life after one that was interrupted", func(f folder) {
			f.steps(2).events(ended, runner.Event{Time: at(20), Kind: runner.StepEvent, Done: 2})
		}, []string{"unfinished: still running, or killed"}, []string{`badge open">interrupted`}},
		{"a failure", func(f folder) {
			f.events(runner.Event{Time: at(1), Kind: runner.EndEvent, Text: "failed"})
		}, []string{`badge bad">failed`}, nil},
		{"a half-written last line", func(f folder) {
			f.write("metrics.jsonl", line(1, `,"train/loss":1.25`)+`{"step":2,"train/lo`)
		}, []string{"1.2500"}, []string{"could not be read"}},
		{"a half line in the middle", func(f folder) {
			f.write("metrics.jsonl", line(1, `,"train/loss":1.25`)+"{\"step\":2,\"tr\n"+line(3, `,"train/loss":0.5`))
		}, []string{"1 lines of the run folder could not be read", "0.5000"}, nil},
		{"losses that are not finite or missing", func(f folder) {
			f.write("metrics.jsonl", line(1, `,"train/loss":1.25`)+line(2, `,"train/loss":null`)+line(3, ``)+line(4, `,"train/loss":1e200`)+line(5, `,"train/loss":0.5`))
		}, []string{"3 steps have no finite value", `class="gap"`, "step 2: no finite train/loss"}, []string{"NaN<", "Inf"}},
		{"every loss missing", func(f folder) { f.write("metrics.jsonl", line(1, "")+line(2, "")) }, []string{"No step has a loss yet."}, []string{"NaN"}},
		{"the evaluation before the first step", func(f folder) {
			f.write("metrics.jsonl", line(0, `,"eval/loss":3.5`)+line(1, `,"train/loss":1.25,"eval/loss":1.5`))
		}, []string{"3.5000", "1.5000", "step 0: eval/loss 3.5000"}, nil},
		{"a lock that is no plain list", func(f folder) { f.write("lock.yaml", "files:\n  - a: <b>\n") }, []string{"<pre>files:\n  - a: &lt;b&gt;"}, nil},
		{"a stand-in", func(f folder) {
			f.about(runner.RunInfo{Name: "n", BaseModel: "org/model", StandIn: true, Sandbox: true})
		}, []string{`badge open">stand-in`, "stand-in for org/model: losses and samples say nothing"}, nil},
		{"the sandbox's own model", func(f folder) { f.about(runner.RunInfo{Name: "n", Sandbox: true}) }, []string{`badge open">sandbox`}, nil},
		{"values that differ by orders of magnitude", func(f folder) {
			f.write("metrics.jsonl", line(1, `,"train/loss":1e6`)+line(2, `,"train/loss":0.5`))
		}, []string{"logarithmic scale"}, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			f := newFolder(t)
			c.make(f)
			page := f.page()
			selfContained(t, page)
			for _, want := range c.want {
				if !strings.Contains(page, want) {
					t.Errorf("the page lacks %q", want)
				}
			}
			for _, not := range c.not {
				if strings.Contains(page, not) {
					t.Errorf("the page has %q", not)
				}
			}
		})
	}
}

func TestPageEscapesForeignText(t *testing.T) {
	evil := `</pre></title><script src="http://evil.example/x.js">alert(1)</script><img onerror=x>&amp;"'` + "\x00\x1b[31m\u202e"
	steps, err := json.Marshal(map[string]any{"step": 1, "train/loss": 1, "eval/" + evil: 2, "api/" + evil: 3})
	if err != nil {
		t.Fatal(err)
	}
	f := newFolder(t).
		about(runner.RunInfo{ID: evil, Name: evil, BaseModel: evil, Recipe: evil, StandIn: true, Plan: &runner.Plan{Lock: runner.Lock{evil: evil}}}).
		write("metrics.jsonl", string(steps)+"\n").
		write("resolved.yaml", "description: "+evil+"\n").
		events(
			runner.Event{Time: at(1), Kind: runner.EventKind(evil), Text: evil},
			runner.Event{Time: at(2), Kind: runner.SaveEvent, Done: 1, Text: evil},
			runner.Event{Time: at(3), Kind: runner.WarnEvent, Text: evil},
			runner.Event{Time: at(4), Kind: runner.EndEvent, Done: 1, Text: evil})
	page := f.page()
	selfContained(t, page)
	for _, not := range []string{"<script", "<img", "\x00", "\x1b", "\u202e"} {
		if strings.Contains(page, not) {
			t.Errorf("the page has %q", not)
		}
	}
	if !strings.Contains(page, "&lt;script src=") {
		t.Error("the text itself is gone")
	}
	f.write("lock.yaml", evil)
	selfContained(t, f.page())
}

func TestPageOfManySteps(t *testing.T) {
	const steps, peak = 100_000, 61_803
	var b strings.Builder
	for step := 1; step <= steps; step++ {
		loss := 1 + float64(step%7)/100
		if step == peak {
			loss = 9.4321
		}
		fmt.Fprintf(&b, `{"step":%d,"train/loss":%.4f,"learning_rate":0.0001}`+"\n", step, loss)
	}
	page := newFolder(t).write("metrics.jsonl", b.String()).page()
	if len(page) > 1<<20 {
		t.Errorf("the page has %d bytes, want at most 1 MiB", len(page))
	}
	for _, want := range []string{"step 61,803: train/loss 9.4321", "step 1: train/loss", "step 100,000: train/loss"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

func TestWhatWasTakenBackIsMarked(t *testing.T) {
	loss := func(v float64) map[string]float64 { return map[string]float64{"eval/loss": v} }
	f := newFolder(t).events(
		runner.Event{Time: at(1), Kind: runner.StepEvent, Done: 1, Metrics: map[string]float64{"train/loss": 5}},
		runner.Event{Time: at(2), Kind: runner.EvalEvent, Done: 1, Metrics: loss(5)},
		runner.Event{Time: at(3), Kind: runner.SaveEvent, Done: 1, Text: "training kept"},
		runner.Event{Time: at(4), Kind: runner.StepEvent, Done: 2, Metrics: map[string]float64{"train/loss": 0.125}},
		runner.Event{Time: at(5), Kind: runner.EvalEvent, Done: 2, Metrics: loss(0.0625)},
		runner.Event{Time: at(6), Kind: runner.SaveEvent, Done: 2, Text: "training lost"},
		runner.Event{Time: at(7), Kind: runner.StepEvent, Done: 2, Metrics: map[string]float64{"train/loss": 4}},
		runner.Event{Time: at(8), Kind: runner.EvalEvent, Done: 2, Metrics: loss(3)},
	)
	h, err := readHistory(f.dir)
	if err != nil {
		t.Fatal(err)
	}
	if got := h.series[trainLoss]; len(got) != 2 || got[1] != (point{2, 4}) {
		t.Errorf("train/loss is %v, want step 2 once, of the second attempt", got)
	}
	var gone []string
	for _, m := range append(h.evals, h.saves...) {
		if m.abandoned {
			gone = append(gone, fmt.Sprint(m.done, m.text, m.metrics))
		}
	}
	if want := []string{"2map[eval/loss:0.0625]", "2training lostmap[]"}; strings.Join(gone, "|") != strings.Join(want, "|") {
		t.Errorf("marked %q, want %q", gone, want)
	}
	if best, _, ok := bestEval(h.evals); !ok || best.metrics[evalLoss] != 3 {
		t.Errorf("the best evaluation is %v, want 3 at step 2", best)
	}
	if page := f.page(); strings.Count(page, `class="gone"`) != 2 {
		t.Errorf("%d rows of the page are struck out, want 2", strings.Count(page, `class="gone"`))
	}
}

func TestARepeatedEventIsShownOnce(t *testing.T) {
	save := runner.Event{Time: at(1), Kind: runner.SaveEvent, Done: 3, Text: "training c"}
	eval := runner.Event{Time: at(1), Kind: runner.EvalEvent, Done: 3, Metrics: map[string]float64{"eval/loss": 1}}
	f := newFolder(t).events(save, eval, save, eval)
	h, err := readHistory(f.dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(h.saves) != 1 || len(h.evals) != 1 {
		t.Errorf("got %d checkpoints and %d evaluations, want 1 and 1", len(h.saves), len(h.evals))
	}
}

func TestLinesThatAreTooLongAreCounted(t *testing.T) {
	var lines []string
	text := "a\n" + strings.Repeat("x", lineLimit+1) + "\n\nb\nhalf"
	refused, err := readLines(strings.NewReader(text), func(b []byte) bool {
		lines = append(lines, strings.TrimSpace(string(b)))
		return true
	})
	if err != nil || refused != 1 || strings.Join(lines, ",") != "a,b" {
		t.Errorf("lines %q, refused %d, error %v; want a,b with 1 refused", lines, refused, err)
	}
}

func FuzzFolder(f *testing.F) {
	f.Add([]byte(`{"step":1,"train/loss":1}`+"\n"), []byte(`{"time":"2026-11-29T12:00:00Z","kind":"end","done":1,"text":"complete"}`+"\n"), []byte("recipe: x\n"))
	f.Add([]byte("{\"step\":-1}\n{\"step\":1,\"x\":[]}\n"), []byte("null\n[]\n"), []byte("a:\n"))
	f.Add([]byte("{\"step\":2,\"train/loss\":1e308}\n{\"step\":9223372036854775807,\"train/loss\":-1e99}\n"), []byte("{\"kind\":\"eval\",\"done\":-5,\"metrics\":{\"eval/loss\":null}}\n"), []byte("\xff\x00"))
	f.Fuzz(func(t *testing.T, metrics, events, lock []byte) {
		newFolder(t).write("metrics.jsonl", string(metrics)).write(eventsFile, string(events)).write("lock.yaml", string(lock)).write("resolved.yaml", string(lock)).page()
	})
}
