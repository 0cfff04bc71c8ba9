package report

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"trainer/runner"
)

func testLines(out *strings.Builder) *Lines {
	return &Lines{Out: out, Location: time.UTC, now: func() time.Time { return at(-1) }}
}

func TestLinesOfARun(t *testing.T) {
	var b strings.Builder
	play(t, testLines(&b), nil)
	same(t, b.String(), `
11:59:59 INF capitals: Qwen/Qwen3.8-27B, 10 steps, $12.40 an hour dir=runs/capitals id=0f3e
12:00:00 INF provisioning Qwen/Qwen3.8-27B
12:00:05 INF queued (position 3)
12:01:10 INF queued (position 1)
12:02:15 INF loading the model
12:03:05 INF step 1/10 loss=3.0000 learning_rate=1.00e-04 tokens/s=410 cost=$0.03 eta=1m30s
12:03:15 INF step 2/10 loss=1.5000 learning_rate=5.00e-05 tokens/s=819 cost=$0.07 eta=1m20s
12:03:25 INF step 3/10 loss=1.0000 learning_rate=3.33e-05 tokens/s=1.2k cost=$0.10 eta=1m10s
12:03:35 INF step 4/10 loss=0.7500 learning_rate=2.50e-05 tokens/s=1.6k cost=$0.14 eta=1m
12:03:45 INF step 5/10 loss=0.6000 learning_rate=2.00e-05 tokens/s=2.0k cost=$0.17 eta=50s
12:03:46 INF evaluation at step 5 eval/loss=0.7500 eval/tokens=512
12:03:47 INF checkpoint at step 5: training ckpt_05
12:03:55 INF step 6/10 loss=0.5000 learning_rate=1.67e-05 tokens/s=2.5k cost=$0.20 eta=40s
12:04:05 INF step 7/10 loss=0.4286 learning_rate=1.43e-05 tokens/s=2.9k cost=$0.24 eta=30s
12:04:06 WRN trying again: GET /v1/rl/operations: 503; again in 2s
12:04:07 WRN a message with ?[31mcontrol
12:04:15 INF step 8/10 loss=0.3750 learning_rate=1.25e-05 tokens/s=3.3k cost=$0.27 eta=20s
12:04:25 INF step 9/10 loss=0.3333 learning_rate=1.11e-05 tokens/s=3.7k cost=$0.31 eta=10s
12:04:35 INF step 10/10 loss=0.3000 learning_rate=1.00e-05 tokens/s=4.1k cost=$0.34
12:04:36 INF saving
12:04:40 INF releasing
12:04:42 INF complete: 10 of 10 steps in 4m42s train/loss=0.3000 eval/loss=0.7500 cost/usd=$0.97
`)
}

func TestQuietLinesAreWarnings(t *testing.T) {
	var b strings.Builder
	l := testLines(&b)
	l.Quiet = true
	play(t, l, nil)
	same(t, b.String(), `
12:04:06 WRN trying again: GET /v1/rl/operations: 503; again in 2s
12:04:07 WRN a message with ?[31mcontrol
`)
}

func TestEveryStepOfAStandInSaysSo(t *testing.T) {
	var b strings.Builder
	play(t, testLines(&b), func(r *runner.RunInfo) { r.StandIn, r.Sandbox, r.Done = true, true, 3 })
	lines := strings.Split(b.String(), "\n")
	if want := "11:59:59 WRN the sandbox trains a small stand-in for Qwen/Qwen3.8-27B: losses and samples say nothing about that model"; lines[0] != want {
		t.Errorf("got %s\nwant %s", lines[0], want)
	}
	if !strings.Contains(lines[1], "going on after step 3") {
		t.Errorf("the opening does not say where it goes on: %s", lines[1])
	}
	for _, line := range lines {
		if strings.Contains(line, " step ") && strings.Contains(line, "learning_rate") && !strings.Contains(line, "model=stand-in") {
			t.Errorf("no mark: %s", line)
		}
	}
}

func TestLinesOfOtherEnds(t *testing.T) {
	for text, want := range map[string]string{
		"failed":      "12:00:09 ERR failed: 0 of 0 steps in <1s",
		"failed: why": "12:00:09 ERR failed: 0 of 0 steps in <1s (why)",
		"interrupted": "12:00:09 WRN interrupted: 0 of 0 steps in <1s",
		"budget":      "12:00:09 WRN budget: 0 of 0 steps in <1s",
	} {
		var b strings.Builder
		l := testLines(&b)
		l.Quiet = true
		if err := l.Open(context.Background(), runner.RunInfo{}); err != nil {
			t.Fatal(err)
		}
		l.Emit(runner.Event{Time: at(9), Kind: runner.EndEvent, Text: text})
		if got := strings.TrimSpace(b.String()); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestALossThatIsNotANumberIsShown(t *testing.T) {
	var b strings.Builder
	l := testLines(&b)
	if err := l.Open(context.Background(), runner.RunInfo{}); err != nil {
		t.Fatal(err)
	}
	l.Emit(runner.Event{Time: at(0), Kind: runner.StepEvent, Done: 1, Metrics: map[string]float64{"train/loss": math.NaN(), "cost/usd": 0}})
	if want := "step 1 loss=NaN\n"; !strings.HasSuffix(b.String(), want) {
		t.Errorf("got %q, want the end %q: no dollars without a price", b.String(), want)
	}
}

// fails refuses every write.
type fails struct{}

var errFull = errors.New("no space left")

func (fails) Write([]byte) (int, error) { return 0, errFull }

func TestASinkKeepsTheErrorOfAWriteForClose(t *testing.T) {
	for name, s := range map[string]runner.Sink{
		"lines":    &Lines{Out: fails{}},
		"json":     &JSON{Out: fails{}},
		"progress": &Progress{Out: fails{}},
	} {
		if err := s.Open(context.Background(), runner.RunInfo{}); err != nil {
			t.Fatalf("%s: Open: %v", name, err)
		}
		for done := range 3 {
			s.Emit(runner.Event{Time: at(1), Kind: runner.StepEvent, Done: done})
		}
		s.Emit(runner.Event{Time: at(2), Kind: runner.EndEvent, Done: 3, Text: "complete"})
		if err := s.Close(context.Background()); !errors.Is(err, errFull) {
			t.Errorf("%s: Close returned %v, want the error of the write", name, err)
		}
	}
}
