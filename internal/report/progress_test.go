package report

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"trainer/runner"
)

func TestProgressLeavesTheBarAndTheOutcome(t *testing.T) {
	var b bytes.Buffer
	play(t, &Progress{Out: &b, Width: 90}, nil)
	text := b.String()
	for _, want := range []string{
		"capitals: Qwen/Qwen3.8-27B, 10 steps, $12.40 an hour\n", "queued took 2m10s\n", "evaluation at step 5  eval/loss 0.7500",
		"checkpoint at step 5: training ckpt_05\n", "warning: a message with ?[31mcontrol\n", "\n10/10 ████", "loss 0.3000",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the terminal lacks %q in\n%s", want, text)
		}
	}
	if want := "\ncomplete: 10 of 10 steps in 4m42s, train/loss 0.3000, eval/loss 0.7500, cost/usd $0.97\n"; !strings.HasSuffix(text, want) {
		t.Errorf("the last line is not %q in\n%s", want, text)
	}
}

func TestProgressThatWasNeverOpenedCloses(t *testing.T) {
	for _, s := range []runner.Sink{&Progress{Out: &bytes.Buffer{}}, &Lines{Out: &bytes.Buffer{}}, &JSON{Out: &bytes.Buffer{}}, &Files{Dir: t.TempDir()}} {
		if err := s.Close(context.Background()); err != nil {
			t.Errorf("%T: %v", s, err)
		}
	}
}
