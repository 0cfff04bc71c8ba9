package runner

import (
	"context"
	"errors"
	"fmt"

	"trainer/internal/journal"
)

// unopened says what to do about a journal that cannot be opened.
func unopened(dir string, err error) error {
	err = fmt.Errorf("open the run: %w", err)
	var bad *journal.Damaged
	if errors.As(err, &bad) {
		return fmt.Errorf("%w: `trainer resume --salvage %s` keeps those, and rolls back to the newest checkpoint that they name", err, dir)
	}
	return err
}

// salvage cuts a damaged journal to what stands before the damage.
func salvage(dir string) error {
	_, err := journal.Salvage(dir, recSalvage, func(s journal.Salvaged) any {
		return salvageRecord{s.Kept, s.Damage.Line, s.Damage.Offset, s.Bytes}
	})
	var bad *journal.Damaged
	switch {
	case err == nil:
		return nil
	case errors.As(err, &bad):
		return &hopeless{fmt.Errorf("salvage the run: %w: look for what it may have left with `trainer resources list`, and start anew with `trainer run`", err)}
	}
	return fmt.Errorf("salvage the run: %w", err)
}

// salvage gives up every session: what was done in it since is not known.
func (p *past) salvage(v salvageRecord) {
	p.salvaged = &v
	for _, g := range p.gens {
		g.spoiled = true
	}
}

// unexplained shows the resources that lost records may have been about: those of this user that the journal does not name.
func (r *run) unexplained(ctx context.Context) error {
	s := r.past.salvaged
	if s == nil {
		return nil
	}
	r.tell(Event{Kind: WarnEvent, Done: r.past.done(), Text: fmt.Sprintf(
		"the journal was damaged at line %d; what stood behind is lost, all of it is kept in %s: rolling back to the newest checkpoint before", s.Line, s.Kept)})
	mine, _, err := r.world.Resources.Mine(ctx, false)
	if err != nil {
		return fmt.Errorf("list the resources there are: %w", err)
	}
	for _, res := range mine {
		if r.past.resource(res.ID) != nil {
			continue
		}
		what := "may be this run's, or another's"
		if all, err := r.world.Backend.Sessions(ctx, res.ID); err == nil {
			for _, s := range all {
				if r.ours(s) {
					what = "has a session of this run"
				}
			}
		}
		r.tell(Event{Kind: WarnEvent, Done: r.past.done(), Text: fmt.Sprintf(
			"resource %s (%s, %s) is not in what is left of the journal, and %s; `trainer resources stop %s` stops it", res.ID, res.BaseModel, res.Status, what, res.ID)})
	}
	return nil
}
