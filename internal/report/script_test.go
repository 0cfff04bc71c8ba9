package report

import (
	"context"
	"strings"
	"testing"

	"trainer/runner"
)

// script is a life of a run as every sink is told it: a queue, a slow first step, an evaluation, a retry, a warning, a
// checkpoint, an end.
func script() (runner.RunInfo, []runner.Event) {
	info := runner.RunInfo{ID: "0f3e", Name: "capitals", Dir: "runs/capitals", BaseModel: "Qwen/Qwen3.8-27B", Recipe: "capitals.yaml", Plan: testPlan(10), PriceUSDPerHour: 12.4}
	events := []runner.Event{
		{Time: at(0), Kind: runner.StageEvent, Text: "provisioning Qwen/Qwen3.8-27B"},
		{Time: at(5), Kind: runner.StageEvent, Text: "queued (position 3)"},
		{Time: at(70), Kind: runner.StageEvent, Text: "queued (position 1)"},
		{Time: at(135), Kind: runner.StageEvent, Text: "loading the model"},
	}
	for done := 1; done <= 10; done++ {
		now := 135 + 40 + 10*float64(done)
		events = append(events, runner.Event{Time: at(now), Kind: runner.StepEvent, Done: done, Metrics: map[string]float64{
			"train/loss": 3 / float64(done), "learning_rate": 1e-4 / float64(done), "tokens": 4096, "trained_tokens": 1024,
			"time/tokens_per_second": 409.6 * float64(done), "time/step_seconds": 10, "cost/usd": 0.034 * float64(done), "api/grad_norm": 1.5,
		}})
		switch done {
		case 5:
			events = append(events,
				runner.Event{Time: at(now + 1), Kind: runner.EvalEvent, Done: done, Metrics: map[string]float64{"eval/tokens": 512, "eval/loss": 0.75}},
				runner.Event{Time: at(now + 2), Kind: runner.SaveEvent, Done: done, Text: "training ckpt_05"})
		case 7:
			events = append(events,
				runner.Event{Time: at(now + 1), Kind: runner.RetryEvent, Done: done, Text: "GET /v1/rl/operations: 503; again in 2s"},
				runner.Event{Time: at(now + 2), Kind: runner.WarnEvent, Done: done, Text: "a message\nwith \x1b[31mcontrol"})
		}
	}
	return info, append(events,
		runner.Event{Time: at(276), Kind: runner.StageEvent, Done: 10, Text: "saving"},
		runner.Event{Time: at(280), Kind: runner.StageEvent, Done: 10, Text: "releasing"},
		runner.Event{Time: at(282), Kind: runner.EndEvent, Done: 10, Text: "complete", Metrics: map[string]float64{"cost/usd": 0.97}})
}

// play tells a sink the script.
func play(t *testing.T, s runner.Sink, change func(*runner.RunInfo)) {
	t.Helper()
	info, events := script()
	if change != nil {
		change(&info)
	}
	if err := s.Open(context.Background(), info); err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		s.Emit(e)
	}
	if err := s.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// same compares texts line by line.
func same(t *testing.T, got, want string) {
	t.Helper()
	g, w := strings.Split(got, "\n"), strings.Split(strings.TrimPrefix(want, "\n"), "\n")
	for i := range max(len(g), len(w)) {
		var a, b string
		if i < len(g) {
			a = g[i]
		}
		if i < len(w) {
			b = w[i]
		}
		if a != b {
			t.Errorf("line %d\n got %s\nwant %s", i+1, a, b)
		}
	}
}
