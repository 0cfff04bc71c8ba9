package runner

import (
	"errors"
	"fmt"

	"trainer/internal/rollout"
)

// Rollout batches in a row of which nothing is trained. They cost what others cost.
const (
	unscoredMost = 3  // without a single reward: the run ends
	evenMost     = 10 // whose rewards tell no completions of a prompt apart: a warning
)

// ErrUnscored ends a run whose rewards give no completion a score.
var ErrUnscored = errors.New("nothing to train on")

// fruitless counts rollout batches in a row of which nothing was trained, of the whole run. It is collect's alone.
type fruitless struct{ unscored, even int }

// unscored is why the last completion of a batch has no reward, where none has one; else empty.
func unscored(groups []rollout.Group) (why string) {
	for _, g := range groups {
		for _, m := range g.Members {
			if m.Unscored == "" {
				return ""
			}
			why = m.Unscored
		}
	}
	return why
}

// sow counts the first step of each rollout batch.
func (r *run) sow(f *flight) {
	if !r.in.samples() || f.step%r.plan.perBatch() != 0 {
		return
	}
	b, c := f.batch, &r.fruitless
	switch {
	case f.why == "":
		*c = fruitless{}
	case b.Empty == "": // left out for another reason
	case b.Unscored != "":
		*c = fruitless{unscored: c.unscored + 1}
	default:
		*c = fruitless{even: c.even + 1}
	}
	if most := max(1, min(unscoredMost, len(r.plan.Rates)/r.plan.perBatch())); c.unscored == most {
		r.leave(fmt.Errorf("%w: %d rollout batches in a row without a reward, the last completion for want of %s; see samples/ and what the reward says in trainer.log", ErrUnscored, most, b.Unscored))
	}
	if c.even == evenMost {
		r.tell(Event{Kind: WarnEvent, Done: r.doneSteps(), Text: fmt.Sprintf("%d rollout batches in a row trained nothing, and cost what others cost: the rewards are too easy, too hard, or do not tell completions apart; see samples/, and rollout.dynamic_sampling", evenMost)})
	}
}

// tellFruitless says at the end how many steps have trained nothing.
func (r *run) tellFruitless() {
	r.mu.Lock()
	out, last := 0, ""
	for _, m := range r.past.steps {
		if m.Why != "" {
			out, last = out+1, m.Why
		}
	}
	r.mu.Unlock()
	if out > 0 {
		r.tell(Event{Kind: WarnEvent, Done: r.doneSteps(), Text: fmt.Sprintf("%d of %d steps were left out, the last: %s", out, len(r.plan.Rates), last)})
	}
}
