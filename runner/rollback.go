package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"trainer/internal/journal"
)

// mostRollbacks without a checkpoint that holds more steps than any before it end a life: what fails so often is nothing
// that another session mends.
const mostRollbacks = 3

// goOn decides what follows the error that ended a stretch. nil: another one, which reads the journal as a later life
// would, so that a rollback is a resume without the end of the process. Else the error that ends the life.
func (r *run) goOn(ctx, stopped context.Context, err error) error {
	if r.ledger != nil {
		r.ledger.waits.Wait()
	}
	if ctx.Err() != nil {
		return err
	}
	what, err := r.verdict(ctx, err)
	if what != rollBack && what != settle {
		return err
	}
	if why := context.Cause(stopped); why != nil {
		if errors.Is(err, why) {
			return err
		}
		return fmt.Errorf("%w: %w", why, err)
	}
	if over := r.spent(); over != nil {
		return fmt.Errorf("%w: %w", over, err)
	}
	if what == settle && !r.settles() {
		return err
	}
	p, jerr := reread(r.world.Dir)
	if jerr != nil {
		return errors.Join(err, jerr)
	}
	if what == rollBack && p.fruitless >= mostRollbacks {
		return fmt.Errorf("%w; it was rolled back %d times without a new checkpoint", err, p.fruitless)
	}
	doing := "rolling back"
	if what == settle {
		doing = "settling what is in doubt"
	}
	r.tell(Event{Kind: WarnEvent, Done: r.doneSteps(), Text: fmt.Sprintf("%v: %s", err, doing)})
	r.mu.Lock()
	r.past = p
	r.mu.Unlock()
	return nil
}

// spent says which limit is reached: nothing new is opened then.
func (r *run) spent() error {
	if r.lease == nil {
		return nil
	}
	return r.lease.overrun()
}

// settles says whether to look at the session again: not twice without a step between.
func (r *run) settles() bool {
	done := r.doneSteps()
	if r.settledAt != nil && *r.settledAt == done {
		return false
	}
	r.settledAt = &done
	return true
}

func reread(dir string) (*past, error) {
	records, err := journal.Read(dir)
	if err != nil {
		return nil, fmt.Errorf("read the run's own journal: %w", err)
	}
	return recall(records)
}

// origin is where the next session begins: the newest checkpoint of the lineage that the service still shows, or the start
// of everything. A run that is resumed begins anew only where nothing was trained or the user says so; one that lives has
// its answer in the policy.
func (r *run) origin(ctx context.Context) (origin, error) {
	for _, c := range r.past.candidates() {
		why, err := r.unusable(ctx, c)
		if err != nil {
			return origin{}, err
		}
		if why == "" {
			return origin{c.ID, c.Done, c.Updates}, nil
		}
		r.tell(Event{Kind: WarnEvent, Done: r.past.done(), Text: fmt.Sprintf("the checkpoint of step %d is not used: %s", c.Done, why)})
	}
	if r.past.updates() == r.past.begun().Updates || r.stretches > 1 || r.world.Restart {
		return r.beginning(ctx)
	}
	return origin{}, &hopeless{fmt.Errorf("%w of the %d steps done, and their session is gone: `trainer resume --restart %s` begins again at the first step", ErrUnsaved, r.past.done(), r.world.Dir)}
}

// beginning is where the run began, if the service still has it.
func (r *run) beginning(ctx context.Context) (origin, error) {
	from := r.past.begun()
	if from.CheckpointID == "" {
		return from, nil
	}
	_, err := r.world.Backend.Checkpoint(ctx, from.CheckpointID)
	var no *Refused
	if errors.As(err, &no) && no.Status == 404 {
		return from, &hopeless{fmt.Errorf("checkpoint %s, which the run begins from, is gone from the service", from.CheckpointID)}
	}
	if err != nil {
		return from, fmt.Errorf("read the checkpoint that the run begins from: %w", err)
	}
	return from, nil
}

// candidates are the training checkpoints that a session may begin from, the newest first. Where the last session failed
// in its first step, the checkpoint that it began from may be the reason, so only older ones are: unless there are none.
func (p *past) candidates() []checkpointRecord {
	var all []checkpointRecord
	for _, c := range slices.Backward(p.saves) {
		if c.Kind == "training" {
			all = append(all, c)
		}
	}
	slices.SortStableFunc(all, func(a, b checkpointRecord) int { return cmp.Compare(b.Done, a.Done) })
	g := p.last()
	if g == nil || p.salvaged != nil || !g.tainted() || slices.ContainsFunc(p.steps, func(m measured) bool { return m.Gen == g.gen }) {
		return all
	}
	older := slices.DeleteFunc(slices.Clone(all), func(c checkpointRecord) bool { return c.Done >= g.from.Done })
	if len(older) == 0 {
		return all
	}
	return older
}

// unusable says why a checkpoint that the journal has is not to be gone on from, empty where it is.
func (r *run) unusable(ctx context.Context, c checkpointRecord) (string, error) {
	got, err := r.world.Backend.Checkpoint(ctx, c.ID)
	var no *Refused
	if errors.As(err, &no) && no.Status == 404 {
		return fmt.Sprintf("%s is gone from the service", c.ID), nil
	}
	if err != nil {
		return "", fmt.Errorf("read the checkpoint of step %d: %w", c.Done, err)
	}
	if got.Inference || got.Step != c.ServerStep {
		return fmt.Sprintf("the service has %s at step %d, the journal at %d", c.ID, got.Step, c.ServerStep), nil
	}
	if g := r.past.generation(c.Gen); g != nil && got.Session != g.id {
		return fmt.Sprintf("the service has %s from session %s, the journal from %s", c.ID, got.Session, g.id), nil
	}
	return "", nil
}

func (p *past) generation(gen int) *generation {
	for _, g := range p.gens {
		if g.gen == gen {
			return g
		}
	}
	return nil
}
