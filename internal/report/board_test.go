package report

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"trainer/runner"
)

// frames is what a terminal of width columns shows after each event: what stays has a ^, the live line a |.
func frames(info runner.RunInfo, events []runner.Event, width int, color bool) string {
	var b strings.Builder
	board := newBoard(info, color, at(-1))
	for _, line := range board.opening() {
		b.WriteString("^" + line + "\n")
	}
	for _, e := range events {
		for _, line := range board.add(e) {
			b.WriteString("^" + line + "\n")
		}
		b.WriteString("|" + board.live(width, e.Time) + "\n")
	}
	return b.String() + "^" + board.final(events[len(events)-1]) + "\n"
}

func TestBoardOfARun(t *testing.T) {
	info, events := script()
	same(t, frames(info, events, 78, false), `
^capitals: Qwen/Qwen3.8-27B, 10 steps, $12.40 an hour
|⠋ provisioning Qwen/Qwen3.8-27B <1s
^provisioning Qwen/Qwen3.8-27B took 5s
|⠸ queued (position 3) <1s
|⠦ queued (position 1) 1m05s
^queued took 2m10s
|⠋ loading the model <1s
^loading the model took 50s
| 1/10 █▌░░░░░░░░░░░░░ loss 3.0000  lr 1.00e-04    410 tok/s  $0.03  eta 1m30s
| 2/10 ███░░░░░░░░░░░░ loss 1.5000  lr 5.00e-05    819 tok/s  $0.07  eta 1m20s
| 3/10 ████▌░░░░░░░░░░ loss 1.0000  lr 3.33e-05   1.2k tok/s  $0.10  eta 1m10s
| 4/10 ██████░░░░░░░░░ loss 0.7500  lr 2.50e-05   1.6k tok/s  $0.14  eta 1m
| 5/10 ███████▌░░░░░░░ loss 0.6000  lr 2.00e-05   2.0k tok/s  $0.17  eta 50s
^evaluation at step 5  eval/loss 0.7500  eval/tokens 512
| 5/10 ███████▌░░░░░░░ loss 0.6000  lr 2.00e-05   2.0k tok/s  $0.17  eta 49s
^checkpoint at step 5: training ckpt_05
| 5/10 ███████▌░░░░░░░ loss 0.6000  lr 2.00e-05   2.0k tok/s  $0.17  eta 48s
| 6/10 █████████░░░░░░ loss 0.5000  lr 1.67e-05   2.5k tok/s  $0.20  eta 40s
| 7/10 ██████████▌░░░░ loss 0.4286  lr 1.43e-05   2.9k tok/s  $0.24  eta 30s
^trying again: GET /v1/rl/operations: 503; again in 2s
| 7/10 ██████████▌░░░░ loss 0.4286  lr 1.43e-05   2.9k tok/s  $0.24  eta 29s
^warning: a message with ?[31mcontrol
| 7/10 ██████████▌░░░░ loss 0.4286  lr 1.43e-05   2.9k tok/s  $0.24  eta 28s
| 8/10 ████████████░░░ loss 0.3750  lr 1.25e-05   3.3k tok/s  $0.27  eta 20s
| 9/10 █████████████▌░ loss 0.3333  lr 1.11e-05   3.7k tok/s  $0.31  eta 10s
|10/10 ███████████████████████████ loss 0.3000  lr 1.00e-05   4.1k tok/s  $0.34
|10/10 ███████████████████ loss 0.3000  lr 1.00e-05   4.1k tok/s  $0.34  saving
^saving took 4s
|10/10 ████████████████ loss 0.3000  lr 1.00e-05   4.1k tok/s  $0.34  releasing
|10/10 ███████████████████████████ loss 0.3000  lr 1.00e-05   4.1k tok/s  $0.97
^complete: 10 of 10 steps in 4m42s, train/loss 0.3000, eval/loss 0.7500, cost/usd $0.97
`)
}

func TestBoardOfAStandInWarnsAndMarks(t *testing.T) {
	info, events := script()
	info.StandIn = true
	got := frames(info, events, 100, false)
	if want := "^the sandbox trains a small stand-in for Qwen/Qwen3.8-27B"; !strings.Contains(got, want) {
		t.Errorf("no line %q", want)
	}
	for line := range strings.Lines(got) {
		if strings.Contains(line, "lr ") && !strings.Contains(line, "[stand-in]") {
			t.Errorf("no mark: %s", line)
		}
	}
}

func TestColourChangesNothingElse(t *testing.T) {
	info, events := script()
	plain, painted := frames(info, events, 90, false), frames(info, events, 90, true)
	if !strings.Contains(painted, "\x1b[33mwarning: ") {
		t.Error("a warning is not yellow")
	}
	if strings.Contains(plain, "\x1b") {
		t.Error("there is an escape without colour")
	}
	same(t, regexp.MustCompile("\x1b\\[[0-9]+m").ReplaceAllString(painted, ""), "\n"+plain)
}

func TestTheLiveLineFitsAnyWidth(t *testing.T) {
	info, events := script()
	info.StandIn = true
	board := newBoard(info, false, at(-1))
	for _, e := range events {
		board.add(e)
		for width := range 130 {
			line := board.live(width, e.Time)
			if n := utf8.RuneCountInString(line); n > max(1, width) {
				t.Fatalf("%d columns for width %d: %q", n, width, line)
			}
		}
	}
}

func TestNarrowTerminalsKeepTheLoss(t *testing.T) {
	info, events := script()
	board := newBoard(info, false, at(-1))
	for _, e := range events[:10] {
		board.add(e)
	}
	for width, want := range map[int]string{
		100: " 5/10 ██████████████████▌░░░░░░░░░░░░░░░░░░ loss 0.6000  lr 2.00e-05   2.0k tok/s  $0.17  eta 49s",
		60:  " 5/10 █████░░░░░ loss 0.6000   2.0k tok/s  $0.17  eta 49s",
		40:  " 5/10 █████░░░░░ loss 0.6000  eta 49s",
		27:  " 5/10 ████▌░░░░ loss 0.6000",
		12:  " 5/10",
	} {
		if got := board.live(width, at(226)); got != want {
			t.Errorf("width %d\n got %s\nwant %s", width, got, want)
		}
	}
}

func TestBarIsMonotonic(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		columns, total := 1+r.IntN(60), 1+r.IntN(5000)
		done := r.IntN(total + 1)
		full, rest := bar(columns, done, total)
		if n := utf8.RuneCountInString(full + rest); n != columns {
			t.Fatalf("bar(%d, %d, %d) has %d columns", columns, done, total, n)
		}
		if (rest == "" && strings.HasSuffix(full, "█")) != (done == total) {
			t.Fatalf("bar(%d, %d, %d) is %q: full exactly at the end", columns, done, total, full+rest)
		}
	}
	if full, rest := bar(8, 3, 0); full != "" || rest != "░░░░░░░░" {
		t.Errorf("without a plan the bar is %q%q, want it empty", full, rest)
	}
}

func TestEtaIgnoresTheWaitBeforeTheFirstStep(t *testing.T) {
	e := eta{total: 100}
	if _, ok := e.left(at(0)); ok {
		t.Error("there is a forecast before the first step")
	}
	step := func(done int, when float64) {
		e.add(runner.Event{Time: at(when), Kind: runner.StepEvent, Done: done, Metrics: map[string]float64{"time/step_seconds": 900}})
	}
	step(1, 900)
	if d, ok := e.left(at(900)); !ok || d != 99*900*time.Second {
		t.Errorf("after one step: %v, %v; want what that step took for each of 99", d, ok)
	}
	step(2, 902)
	if d, _ := e.left(at(902)); d != 98*2*time.Second {
		t.Errorf("after two steps: %v, want 98 steps of 2s", d)
	}
	if d, _ := e.left(at(903)); d != 98*2*time.Second-time.Second {
		t.Errorf("a second later: %v, want a second less", d)
	}
}

func TestEtaLeavesOutOneStallAndForgets(t *testing.T) {
	e := eta{total: 1000}
	now := 0.0
	step := func(done int, took float64) {
		now += took
		e.add(runner.Event{Time: at(now), Kind: runner.StepEvent, Done: done})
	}
	for done := 1; done <= 20; done++ {
		step(done, 1)
	}
	step(21, 3600) // a laptop that slept
	if d, _ := e.left(at(now)); d != 979*time.Second {
		t.Errorf("after a stall: %v, want 979 steps of 1s", d)
	}
	for done := 22; done <= 22+etaWindow; done++ {
		step(done, 2)
	}
	if d, _ := e.left(at(now)); d != time.Duration(1000-22-etaWindow)*2*time.Second {
		t.Errorf("after %d slower steps: %v, want 2s a step", etaWindow, d)
	}
	step(50, 2) // a rollback
	step(51, 5)
	if d, _ := e.left(at(now)); d != 949*5*time.Second {
		t.Errorf("after a rollback: %v, want 949 steps of 5s", d)
	}
	step(1000, 5)
	if _, ok := e.left(at(now)); ok {
		t.Error("there is a forecast after the last step")
	}
}

func TestACheckpointIsOneLineOfATerminal(t *testing.T) {
	info, _ := script()
	e := runner.Event{Time: at(1), Kind: runner.SaveEvent, Done: 50, Text: "training 96fbfda3-803c-4bf5-bc60-cd8d1b524ef2 registered as ml_7281f3f519a54af3a637"}
	got := newBoard(info, false, at(0)).add(e)
	if want := "checkpoint at step 50: training 96fbfda3-803c-4bf5-bc60-cd8d1b524ef2"; len(got) != 1 || got[0] != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
