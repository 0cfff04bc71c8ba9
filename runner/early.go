package runner

import (
	"sync"

	"trainer/recipe"
)

// earlyStop ends the submission of steps: when a signal or a limit asks for it, or when the watched metric has not
// improved for so many evaluations. Where it watches, the step behind an evaluation waits for its verdict, so that the
// run ends on exactly the weights that were judged, whatever the lookahead and the clock.
type earlyStop struct {
	rule   *recipe.EarlyStop // nil: only signals and limits
	halted chan struct{}     // closed when no further step is wanted
	once   sync.Once

	mu    sync.Mutex
	best  float64
	since int // evaluations since best
	seen  bool
	over  bool // by the rule
}

// newEarlyStop replays the evaluations of earlier lives, in order of steps done.
func newEarlyStop(rule *recipe.EarlyStop, evals []measured) *earlyStop {
	e := &earlyStop{rule: rule, halted: make(chan struct{})}
	for _, m := range evals {
		e.judge(m.Metrics)
	}
	return e
}

// halt ends submission; it can be called more than once.
func (e *earlyStop) halt() { e.once.Do(func() { close(e.halted) }) }

func (e *earlyStop) isHalted() bool {
	select {
	case <-e.halted:
		return true
	default:
		return false
	}
}

// decides says whether the verdict on f is needed before the next step.
func (e *earlyStop) decides(f *flight) bool { return e.rule != nil && f.evals }

// stopped says whether the rule has ended the run.
func (e *earlyStop) stopped() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.over
}

// judge takes an evaluation into account. One without the metric counts as no improvement.
func (e *earlyStop) judge(metrics map[string]float64) {
	if e.rule == nil {
		return
	}
	e.mu.Lock()
	v, ok := metrics[e.rule.Metric]
	better := v < e.best
	if e.rule.Mode == "max" {
		better = v > e.best
	}
	switch {
	case ok && (!e.seen || better):
		e.best, e.seen, e.since = v, true, 0
	default:
		e.since++
	}
	e.over = e.over || e.since >= e.rule.Patience
	over := e.over
	e.mu.Unlock()
	if over {
		e.halt()
	}
}
