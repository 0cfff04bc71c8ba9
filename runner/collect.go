package runner

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"trainer/internal/journal"
)

// Collector is what Collect needs of the service, implemented by internal/together.
type Collector interface {
	Resources
	// Active lists the sessions on a resource that hold their slot, whoever made them.
	Active(ctx context.Context, resource string) ([]SessionState, error)
}

// ErrInUse is a resource that somebody else trains on.
var ErrInUse = errors.New("somebody else trains on it")

// Collect stops resource res, which the dead run of dir has left, under the lock of dir, so that no resume begins meanwhile,
// and writes it into the journal. It looks again at everything: what is not left any more is not stopped, and a resource with
// a session of somebody else is not either.
func Collect(ctx context.Context, dir string, res Resource, c Collector) (err error) {
	j, records, err := journal.Open(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	h := Holdings{Dir: dir}
	if err := h.read(records); err != nil {
		return err
	}
	why := h.Reason(res)
	if why == "" {
		return fmt.Errorf("%s is not left any more: another process has seen to it", res.ID)
	}
	if err := h.alone(ctx, res.ID, c); err != nil {
		return err
	}
	if c, _ := h.made(res); c != nil {
		rec := createdRecord{What: c.What, Attempt: c.Attempt, ID: res.ID, How: "adopted", Pinned: res.BaseWeightsRef}
		if err := j.Append(recCreated, rec); err != nil {
			return err
		}
	}
	if err := j.Append(recStop, stopRecord{What: aResource, ID: res.ID, Why: "collected: " + why}); err != nil {
		return err
	}
	r := &run{world: World{Resources: c}}
	now, err := r.halt(ctx, res.ID)
	if err != nil {
		return fmt.Errorf("stop %s: %w", res.ID, err)
	}
	for _, held := range h.Held {
		if held.ID == res.ID && !held.ReadyAt.IsZero() && !now.ServerTime.IsZero() {
			if err := j.Add(recMeter, meterOf(res.ID, held.USDPerH, now.ServerTime.Sub(held.ReadyAt), now.ServerTime)); err != nil {
				return err
			}
		}
	}
	return j.Append(recStopped, stopRecord{What: aResource, ID: res.ID, Why: "collected"})
}

// alone holds that every session on a resource is the run's own.
func (h *Holdings) alone(ctx context.Context, id string, c Collector) error {
	sessions, err := c.Active(ctx, id)
	if err != nil {
		return fmt.Errorf("list the sessions on %s: %w", id, err)
	}
	for _, s := range sessions {
		if !strings.HasPrefix(s.DisplayName, h.RunID+"/") {
			return fmt.Errorf("%w: session %s (%q) on %s is not of this run; `trainer resources stop --force %s` stops it all the same", ErrInUse, s.ID, s.DisplayName, id, id)
		}
	}
	return nil
}
