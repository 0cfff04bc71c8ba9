package report

import (
	"fmt"
	"strings"
	"time"

	"trainer/runner"
)

// course is how far this life of a run has come, for the sinks that speak of more than one event at a time.
type course struct {
	run   runner.RunInfo
	total int // steps of the plan
	done  int
	began time.Time // the first event of this life
	eta   eta
	last  map[string]float64 // newest value of each metric
}

func newCourse(r runner.RunInfo) *course {
	c := &course{run: r, done: r.Done, last: map[string]float64{}}
	if r.Plan != nil {
		c.total = len(r.Plan.Rates)
	}
	c.eta.total = c.total
	return c
}

func (c *course) add(e runner.Event) {
	if c.began.IsZero() {
		c.began = e.Time
	}
	for name, v := range e.Metrics {
		c.last[name] = v
	}
	switch e.Kind {
	case runner.StepEvent:
		c.eta.add(e)
		c.done = e.Done
	case runner.EndEvent:
		c.done = e.Done
	}
}

// progress is "37/200"; without a plan the steps done.
func (c *course) progress() string {
	if c.total == 0 {
		return Count(c.done)
	}
	return Count(c.done) + "/" + Count(c.total)
}

// sentence is an event other than a step in words, without its metrics.
func (c *course) sentence(e runner.Event) string {
	var s string
	switch e.Kind {
	case runner.EvalEvent:
		s = "evaluation at step " + Count(e.Done)
		if e.Text != "" {
			s += ": " + e.Text
		}
	case runner.SaveEvent:
		s = "checkpoint at step " + Count(e.Done) + ": " + e.Text
	case runner.DownloadEvent:
		s = "copy of step " + Count(e.Done) + ": " + e.Text
	case runner.SampleEvent:
		s = completionText(e)
	case runner.RetryEvent:
		s = "trying again: " + e.Text
	case runner.EndEvent:
		outcome, why, _ := strings.Cut(e.Text, ": ")
		s = fmt.Sprintf("%s: %s of %s steps in %s", outcome, Count(e.Done), Count(c.total), Duration(e.Time.Sub(c.began)))
		if why != "" {
			s += " (" + why + ")"
		}
	default:
		s = e.Text
	}
	return printable(s)
}

// completionText is a completion in one line: what it earned, where anything rewards it, the end of its prompt, and its start.
func completionText(e runner.Event) string {
	const prompt, text = 60, 80
	end, start := []rune(e.Prompt), []rune(e.Text)
	if len(end) > prompt {
		end = append([]rune("…"), end[len(end)-prompt:]...)
	}
	if len(start) > text {
		start = append(start[:text:text], '…')
	}
	earned := ""
	if v, ok := e.Metrics["reward"]; ok {
		earned = fmt.Sprintf("reward %.3g: ", v)
	} else if v, ok := e.Metrics["reverse_kl"]; ok {
		earned = fmt.Sprintf("reverse_kl %.3g: ", v)
	} else if _, ok := e.Metrics["advantage"]; ok {
		earned = "no reward: "
	}
	return fmt.Sprintf("%s%s → %s", earned, string(end), string(start))
}

// endFields are the newest figures, for the last line.
func (c *course) endFields() []field {
	var fields []field
	for _, f := range []struct {
		key    string
		format func(float64) string
	}{{trainLoss, Loss}, {evalLoss, Loss}, {rewardMean, Loss}, {evalReward, Loss}, {evalPass, Loss}, {costUSD, USD}} {
		if shown(c.run, c.last, f.key) {
			fields = append(fields, field{f.key, f.format(c.last[f.key])})
		}
	}
	return fields
}

// severity of an event, from the outcome where it is an end.
type severity int

const (
	note severity = iota
	caution
	fault
)

func severityOf(e runner.Event) severity {
	switch e.Kind {
	case runner.RetryEvent, runner.WarnEvent:
		return caution
	case runner.EndEvent:
		switch outcome, _, _ := strings.Cut(e.Text, ":"); outcome {
		case "complete":
			return note
		case "failed":
			return fault
		}
		return caution
	}
	return note
}
