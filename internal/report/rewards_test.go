package report

import (
	"strings"
	"testing"

	"trainer/runner"
)

// TestPageOfARunThatSamples: rewards stand first, and a batch in which all were equal is no fault of the loss.
func TestPageOfARunThatSamples(t *testing.T) {
	step := func(done int, more map[string]float64) runner.Event {
		m := map[string]float64{"groups": 8, "reward/mean": 0.1 * float64(done), "learning_rate": 1e-4}
		for name, v := range more {
			m[name] = v
		}
		return runner.Event{Time: at(float64(done)), Kind: runner.StepEvent, Done: done, Metrics: m}
	}
	held := func(done int, reward float64) runner.Event {
		return runner.Event{Time: at(float64(done)), Kind: runner.EvalEvent, Done: done,
			Metrics: map[string]float64{"eval/completion/length": 7, "eval/pass@1": reward, "eval/reward": reward, "eval/pass@4": 1, "eval/reward/unscored": 3}}
	}
	h, err := readHistory(newFolder(t).events(held(0, 0.2), step(1, map[string]float64{"train/loss": 0.5}), step(2, map[string]float64{"skipped": 1}),
		held(2, 0.6), step(3, map[string]float64{"train/loss": 0.25}), held(3, 0.4)).dir)
	if err != nil {
		t.Fatal(err)
	}
	if got := h.series[trainLoss]; len(got) != 2 || got.gaps() != 0 {
		t.Errorf("the losses are %v, with %d gaps", got, got.gaps())
	}
	p := newPage(h)
	if got := strings.Join(p.EvalColumns, " "); got != "eval/reward eval/pass@1 eval/pass@4 eval/completion/length eval/reward/unscored" {
		t.Errorf("the evaluations have the columns %s", got)
	}
	if !p.Evals[1].Best || p.Evals[1].Values[0] != "0.6000" || p.Evals[1].Values[4] != "3" {
		t.Errorf("the evaluations are %+v", p.Evals)
	}
	if len(p.Reward.Legend) != 3 || p.Reward.Title != "Reward" || p.Loss.Title != "Loss, as the service returns it" || p.Loss.Note != "" {
		t.Errorf("the charts are %v of %v and %v with the note %q", p.Reward.Title, p.Reward.Legend, p.Loss.Title, p.Loss.Note)
	}
	found := 0
	for _, x := range p.Tiles {
		if x == (tile{"eval/reward, best", "0.6000", "at step 2"}) || x == (tile{"reward/mean", "0.3000", "from 0.1000"}) {
			found++
		}
	}
	if found != 2 {
		t.Errorf("the tiles are %v", p.Tiles)
	}
}
