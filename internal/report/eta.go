package report

import (
	"slices"
	"time"

	"trainer/runner"
)

// etaWindow is how many recent steps the forecast looks at.
const etaWindow = 64

// eta forecasts the end from the times at which recent steps were done, so evaluations and checkpoints between steps
// count. The time before the first step (loading, compiling) is never in it. The zero value is ready to use; Total is
// the number of steps.
type eta struct {
	total int
	done  []int       // ascending
	at    []time.Time // when done[i] was reached
	first time.Duration
}

// add takes a step event. Steps that go back, after a rollback, start the window anew.
func (e *eta) add(ev runner.Event) {
	if n := len(e.done); n > 0 && ev.Done <= e.done[n-1] {
		e.done, e.at = nil, nil
	}
	if len(e.done) > etaWindow {
		e.done, e.at = slices.Delete(e.done, 0, 1), slices.Delete(e.at, 0, 1)
	}
	e.done, e.at = append(e.done, ev.Done), append(e.at, ev.Time)
	e.first = seconds(ev.Metrics[stepSeconds])
}

// perStep is the time of a step: of few the median, of 8 and more the mean without the longest, which may be a first
// step, a rollback or a laptop that slept; 0 when it is not known.
func (e *eta) perStep() time.Duration {
	var each []time.Duration
	for i := 1; i < len(e.done); i++ {
		each = append(each, max(0, e.at[i].Sub(e.at[i-1]))/time.Duration(e.done[i]-e.done[i-1]))
	}
	slices.Sort(each)
	switch {
	case len(each) == 0:
		return e.first
	case len(each) < 8:
		return each[len(each)/2]
	}
	var sum time.Duration
	for _, d := range each[:len(each)-1] {
		sum += d
	}
	return sum / time.Duration(len(each)-1)
}

// left is what remains at now; ok is false while nothing is known, or nothing is left.
func (e *eta) left(now time.Time) (d time.Duration, ok bool) {
	n := len(e.done)
	if n == 0 || e.done[n-1] >= e.total {
		return 0, false
	}
	each := e.perStep()
	if each == 0 {
		return 0, false
	}
	remaining := time.Duration(e.total - e.done[n-1])
	if each > (1<<62)/remaining {
		return 0, false
	}
	return max(0, each*remaining-max(0, now.Sub(e.at[n-1]))), true
}
