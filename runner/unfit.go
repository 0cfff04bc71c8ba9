package runner

import (
	"errors"
	"fmt"

	"trainer/loss"
)

// Where the loss is computed here, a step can fail before anything of it is sent but what scores it. The session then holds
// exactly the steps before it: it is trained on without the step, or is saved.

// unfitRecord is a step whose loss could not be had. LeftOut is who decided to go on without it, as reasons of sessions are
// spelled; empty where the run ends with it.
type unfitRecord struct {
	Gen     int    `json:"gen"`
	Step    int    `json:"step"`
	Code    string `json:"code"` // as the service would call it
	Why     string `json:"why"`
	LeftOut string `json:"left_out,omitempty"` // skip_batch, skip_step
}

func (p *past) unfit(v unfitRecord) {
	g := p.last()
	if g == nil {
		return
	}
	if v.LeftOut == "" {
		g.unfit = &v
		return
	}
	g.unfit = nil
	if _, known := p.skip[v.Step]; !known && v.LeftOut == toSkip {
		p.leftOut++
	}
	p.skip[v.Step] = v.Code
}

// unfitStep is the step that ended the last life as its loss could not be had, nil where none did.
func (p *past) unfitStep() *unfitRecord {
	if g := p.last(); g != nil {
		return g.unfit
	}
	return nil
}

// code is what the service would have called the failure; empty for none of its.
func (u *Unfit) code() failure {
	switch {
	case errors.Is(u.Err, loss.ErrNonFinite):
		return nonFinite
	case errors.Is(u.Err, loss.ErrInvalid):
		return invalid
	}
	return ""
}

// without decides over a step whose gradient could not be made: why it is left out, or the error that ends the life, which the
// journal then has for the next one.
func (r *run) without(err error) (why string, _ error) {
	var u *Unfit
	if !errors.As(err, &u) || u.code() == "" {
		return "", err
	}
	code := u.code()
	rec := unfitRecord{Gen: r.gen.gen, Step: u.Step, Code: string(code), Why: u.Err.Error()}
	if r.leavesOut(code) {
		rec.LeftOut = toSkip
	} else if n := r.past.leftOut; n >= mostSkips && code == nonFinite {
		u.Err = r.enough(u.Err)
	}
	if jerr := r.journal.Append(recUnfit, rec); jerr != nil {
		return "", errors.Join(err, &journalError{fmt.Errorf("journal a step that is unfit: %w", jerr)})
	}
	if rec.LeftOut == "" {
		return "", err
	}
	r.past.leftOut++ // the map beside it is read steps ahead, and a later life fills it
	r.tell(Event{Kind: WarnEvent, Done: u.Step, Text: u.Error()})
	return string(code), nil
}

// enough says that no more steps are left out.
func (r *run) enough(err error) error {
	return fmt.Errorf("%w; train.on_non_finite has left out %d steps of this run", err, r.past.leftOut)
}

// leaveUnfit goes on without the step that ended the last life, as the user says.
func (r *run) leaveUnfit(u *unfitRecord) error {
	rec := *u
	rec.LeftOut = toSkipStep
	if err := r.journal.Append(recUnfit, rec); err != nil {
		return err
	}
	r.past.unfit(rec)
	return nil
}

// unfitAgain refuses to train a step that has ended the last life, nil where it may be tried: of what a program said, its
// owner may have removed the cause.
func (r *run) unfitAgain(u *unfitRecord) error {
	if r.in.program() != nil {
		return nil
	}
	return &Unfit{u.Step, r.rowsOf(slot{step: u.Step, kind: kindOptimStep}), fmt.Errorf("%s: the same rows fail again", u.Why)}
}

// silent is the loss of a step that a program has not given, for no fault of the step.
type silent struct {
	place string // of the program in the recipe
	step  int
	err   error
}

func (s *silent) Error() string {
	return fmt.Sprintf("%s: the loss of step %d: %v", s.place, s.step+1, s.err)
}

func (s *silent) Unwrap() error { return s.err }
