package runner

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"trainer/internal/diag"
)

// mostSkips is how many steps train.on_non_finite leaves out of a run: more than that is no bad row, it is a bad run.
const mostSkips = 3

// Reasons of a session, in its create record. A later life counts by them.
const (
	toStart    = "start"
	toResume   = "resume"
	toRollBack = "rollback"
	toSkip     = "skip_batch" // a rollback that leaves out a step whose loss was not finite
	toSkipStep = "skip_step"  // a resume that leaves out the step that it was told to
	toCompare  = "reference"  // a session that is only scored in, under the weights of reference.checkpoint_id
)

// failed is the operation that made the last session unfit to train on: the first one that trains and FAILED in it.
func (p *past) failed() (in intentRecord, code string, ok bool) {
	g := p.last()
	if g == nil {
		return in, "", false
	}
	for _, in := range g.intents {
		if res := g.results[in.Key]; res.Status == "FAILED" && (slot{kind: in.Kind}).mutating() {
			return in, res.Code, true
		}
	}
	return in, "", false
}

// sift decides what becomes of a step that cannot be trained on as it is: it is left out from the next session on, where
// the recipe or the user says so, or ends the run.
func (r *run) sift() error {
	r.leaveOut, r.reason = nil, ""
	in, code, ok := r.past.failed()
	unfit := r.past.unfitStep()
	if k := r.world.SkipStep; k > 0 {
		_, left := r.past.skip[k-1]
		if unfit != nil && unfit.Step == k-1 {
			return r.leaveUnfit(unfit)
		}
		if unfit != nil {
			in, ok = intentRecord{Step: unfit.Step}, true
		}
		if ok && in.Step == k-1 {
			r.leaveOut, r.reason = &in.Step, toSkipStep
			return nil
		}
		if !left {
			return wrongSkip(k, in, ok)
		}
	}
	if unfit != nil {
		return r.unfitAgain(unfit)
	}
	if !ok || costs(coded(code), true) != giveUp {
		return nil
	}
	if r.leavesOut(coded(code)) {
		r.leaveOut, r.reason = &in.Step, toSkip
		return nil
	}
	err := &Failed{Op: opOf(in.Kind), ID: r.past.last().acks[in.Key], Code: code, Message: "the same rows fail again"}
	return r.explain(&spoiling{slot{step: in.Step, kind: in.Kind, index: in.Index}, err})
}

// leavesOut says whether the recipe leaves out a step that fails with f, and has not done so too often.
func (r *run) leavesOut(f failure) bool {
	return f == nonFinite && r.in.Recipe.Train.OnNonFinite == "skip_batch" && r.past.leftOut < mostSkips
}

func wrongSkip(k int, in intentRecord, failed bool) error {
	msg := "no step of this run has failed"
	if failed {
		msg = fmt.Sprintf("step %d is the one that failed", in.Step+1)
	}
	return diag.List{{Pos: diag.Pos{File: fmt.Sprintf("--skip-step %d", k)}, Msg: msg}}
}

// skips are the steps that the next session leaves out, ascending.
func (r *run) skips() []int {
	all := slices.Collect(maps.Keys(r.past.skip))
	if r.leaveOut != nil && !slices.Contains(all, *r.leaveOut) {
		all = append(all, *r.leaveOut)
	}
	slices.Sort(all)
	return all
}

// spoiling is the failure of an operation that taints its session.
type spoiling struct {
	slot slot
	err  error
}

func (s *spoiling) Error() string {
	if s.slot.mutating() {
		return fmt.Sprintf("step %d: %v", s.slot.step+1, s.err)
	}
	return fmt.Sprintf("after step %d: %v", s.slot.step, s.err)
}

func (s *spoiling) Unwrap() error { return s.err }

// explain names the rows that an operation was sent with, where it failed for what it was sent. The rest of err stays.
func (r *run) explain(err error) error {
	var s *spoiling
	var failed *Failed
	if !errors.As(err, &s) || !s.slot.mutating() || !errors.As(s.err, &failed) {
		return err
	}
	rows := r.rowsOf(s.slot)
	if costs(coded(failed.Code), true) == giveUp {
		err := s.err
		if n := r.past.leftOut; n >= mostSkips && coded(failed.Code) == nonFinite {
			err = r.enough(err)
		}
		return &Unfit{s.slot.step, rows, err}
	}
	return fmt.Errorf("step %d%s: %w", s.slot.step+1, ofRows(rows), s.err)
}

// rowsOf are the places of the rows of a request, or of its whole step where it carries none.
func (r *run) rowsOf(s slot) []string {
	b, err := r.batches.next(context.Background(), s.step)
	if err != nil {
		return nil
	}
	if n := len(b.Parts); (s.kind == kindForwardBackward || s.kind == kindCustom) && s.index < n {
		lo, data := 0, 0
		for i, part := range b.Parts {
			if data += len(part); i < s.index {
				lo = data
			}
		}
		if each := data / len(b.Rows); each*len(b.Rows) == data { // sequences a row
			return b.Rows[lo/each : (lo+len(b.Parts[s.index]))/each]
		}
	}
	return b.Rows
}

// ofRows is how a message names rows: not more of them than a line holds, and each once, of which several completions may be.
func ofRows(rows []string) string {
	const shown = 8
	rows = slices.Compact(slices.Clone(rows))
	switch n := len(rows); {
	case n == 0:
		return ""
	case n > shown:
		return fmt.Sprintf(", rows %v and %d more", rows[:shown], n-shown)
	}
	return fmt.Sprintf(", rows %v", rows)
}
