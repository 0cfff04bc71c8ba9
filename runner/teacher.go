package runner

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"trainer/internal/rollout"
	"trainer/loss"
)

// teacher is the frozen model that a student learns from: a session in which nothing ever takes a step, open while a stretch
// of the student's training lasts. What it has said is on the disk with the samples that it is of, so a later life opens
// another and asks only for the rest.
type teacher struct {
	lease   *lease
	session Session
	ledger  *ledger
	most    int           // sequences a request; 0: any number
	turn    chan struct{} // of one: full while groups are scored, so that a batch ahead and an evaluation take turns
}

// isTeacher marks the display names of the sessions of teachers, behind the run's id.
const isTeacher = "/teacher/"

// openTeacher opens the session, once those of earlier lives are closed.
func (r *run) openTeacher(ctx, stop context.Context) error {
	if !r.in.distils() {
		return nil
	}
	t := &teacher{lease: r.lease, most: r.limits.MaxBatch, turn: make(chan struct{}, 1)}
	if of := r.limits.Teacher; of != nil {
		t.lease, t.most = r.lease.also, of.MaxBatch
	}
	if err := r.closeTeachers(ctx, t.lease.id); err != nil {
		return err
	}
	spec := r.teacherSpec(t.lease.id)
	text := "opening a session of the teacher, " + r.in.Recipe.Teacher.BaseModel
	if spec.From != "" {
		text += ", checkpoint " + spec.From
	}
	r.tell(Event{Kind: StageEvent, Done: r.past.done(), Text: text})
	if err := r.journal.Append(recTeacher, teacherRecord{Name: spec.DisplayName, Body: sessionBodyOf(spec)}); err != nil {
		return err
	}
	r.past.teachers++
	s, err := r.askTeacher(ctx, stop, spec)
	if err != nil {
		return fmt.Errorf("create the session of the teacher: %w", err)
	}
	t.session = s
	r.teacher = t
	if _, err := r.running(ctx, stop, s); err != nil {
		return fmt.Errorf("the session of the teacher: %w", err)
	}
	t.ledger = r.newLedger(s)
	t.ledger.serial = false
	if r.in.softly() != nil {
		return r.publishTeacher(ctx, t)
	}
	return nil
}

// teacherSpec is the session, in the form of the student's: an adapter that nothing trains changes nothing of the weights below it.
func (r *run) teacherSpec(resource string) SessionSpec {
	spec := SessionSpec{Resource: resource, DisplayName: fmt.Sprintf("%s%s%d", r.past.run.RunID, isTeacher, r.past.teachers),
		LoRA: r.in.Recipe.LoRA, LoRASeed: r.in.Seeds.LoRA, OperationTimeout: r.in.Recipe.Limits.OperationTimeout}
	spec.Patience = r.sessionSpec(newGeneration(0, 0, origin{})).Patience
	if from := r.in.Teacher; from != nil {
		spec.From = from.CheckpointID
	}
	return spec
}

// askTeacher sends the create, which bills nothing. One that is not answered is looked for by its name.
func (r *run) askTeacher(ctx, stop context.Context, spec SessionSpec) (Session, error) {
	s, err := r.world.Backend.Open(ctx, spec)
	var none *Unclear
	if !errors.As(err, &none) || ctx.Err() != nil {
		return s, err
	}
	found := ""
	if serr := r.sought(stop, lookSession, func() (bool, error) {
		all, err := r.world.Backend.Sessions(ctx, spec.Resource)
		for _, s := range all {
			if s.DisplayName == spec.DisplayName {
				found = s.ID
			}
		}
		return found != "", err
	}); serr != nil {
		return nil, errors.Join(err, serr)
	}
	if found == "" {
		return nil, fmt.Errorf("%v; nothing was seen that it has made", err) // it is settled
	}
	return r.world.Backend.Join(spec, found), nil
}

// closeTeachers closes what earlier lives have left on a resource: each holds a place there.
func (r *run) closeTeachers(ctx context.Context, resource string) error {
	if r.past.teachers == 0 {
		return nil
	}
	all, err := r.world.Backend.Sessions(ctx, resource)
	if err != nil {
		return fmt.Errorf("list the sessions of resource %s: %w", resource, err)
	}
	for _, s := range all {
		if strings.HasPrefix(s.DisplayName, r.past.run.RunID+isTeacher) && active(s) {
			r.closeStray(ctx, s.ID)
		}
	}
	return nil
}

// closeTeacher closes the session of this stretch, where one is open.
func (r *run) closeTeacher(ctx context.Context) {
	t := r.teacher
	if t == nil {
		return
	}
	r.teacher = nil
	if t.ledger != nil {
		t.ledger.waits.Wait()
		t.ledger.unstage()
		t.ledger.drop(t.ledger.ended(math.MaxInt))
	}
	if ctx.Err() == nil { // else the resource goes, and it with it
		r.closeStray(ctx, t.session.ID())
	}
}

// gone is err, or that the teacher's session is lost, where that is why it was refused.
func (t *teacher) gone(ctx context.Context, err error) error {
	var no *Refused
	if errors.As(err, &no) {
		if lost := sessionLost(ctx, t.session); lost != nil {
			return lost
		}
	}
	return err
}

// teach has the teacher score the members of groups, on exactly the tokens that were sampled, from slot on.
func (t *teacher) teach(ctx context.Context, r *run, groups []rollout.Group, from slot) error {
	select {
	case t.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-t.turn }()
	if l := r.in.softly(); l != nil {
		return t.gone(ctx, t.likeliest(ctx, groups, l.TopK, from))
	}
	data := rollout.Untaught(groups)
	var items []item
	for len(data) > 0 {
		n := len(data)
		if t.most > 0 {
			n = min(n, t.most)
		}
		part, err := scoring(ctx, t.session, slot{step: from.step, kind: from.kind, index: len(items)}, [][]loss.Datum{data[:n]})
		if err != nil {
			return fmt.Errorf("prepare the scoring of the teacher: %w", err)
		}
		items, data = append(items, part...), data[n:]
	}
	if len(items) == 0 {
		return nil
	}
	rows, err := t.ledger.score(ctx, items)
	if err = t.gone(ctx, err); err != nil {
		return fmt.Errorf("score the teacher: %w", err)
	}
	t.ledger.drop(t.ledger.ended(math.MaxInt))
	return rollout.Teach(groups, rows)
}
