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

func TestProgressSaysNoOutcomeWhereTheCallerDoes(t *testing.T) {
	var b bytes.Buffer
	play(t, &Progress{Out: &b, Width: 90, Brief: true}, nil)
	if text := b.String(); strings.Contains(text, "complete:") || !strings.Contains(text, "\n10/10 ████") {
		t.Errorf("the terminal has an outcome, or no bar:\n%s", text)
	}
}

// The ^C of a terminal stands in the line under the bar: a frame that clears from there on leaves a piece of the old bar.
func TestFramesBeginInTheFirstColumn(t *testing.T) {
	var all writes
	play(t, &Progress{Out: &all, Width: 90, Brief: true}, nil)
	if len(all) == 0 {
		t.Fatal("nothing was drawn")
	}
	for i, f := range all {
		if !strings.HasPrefix(f, "\r") {
			t.Errorf("frame %d begins with %.20q", i, f)
		}
	}
}

// writes keeps what is written at a time.
type writes []string

// Write never fails.
func (w *writes) Write(p []byte) (int, error) {
	*w = append(*w, string(p))
	return len(p), nil
}

func TestProgressThatWasNeverOpenedCloses(t *testing.T) {
	for _, s := range []runner.Sink{&Progress{Out: &bytes.Buffer{}}, &Lines{Out: &bytes.Buffer{}}, &JSON{Out: &bytes.Buffer{}}, &Files{Dir: t.TempDir()}} {
		if err := s.Close(context.Background()); err != nil {
			t.Errorf("%T: %v", s, err)
		}
	}
}
