package runner

import (
	"fmt"

	"trainer/internal/journal"
)

// leastRoom is what the files of a run folder grow by, at the least: the journal, metrics, events, the report.
const leastRoom = 16 << 20

// room keeps space for the end of the journal, and refuses a disk on which the run would not get far: it costs nothing yet.
func (r *run) room() error {
	need := r.needs()
	if free, ok := journal.Space(r.world.Dir); ok && free < need {
		return fmt.Errorf("the disk of %s has %d MiB left, and this run writes about %d MiB to it: free some, or start in another place with --runs-dir", r.world.Dir, free>>20, need>>20+1)
	}
	if err := journal.Reserve(r.disk, r.world.Dir); err != nil {
		return err
	}
	return nil
}

// needs is about how many bytes this life writes: the requests of the steps in flight, an entry of a line or two for each
// request, and the rest.
func (r *run) needs() int64 {
	const perToken, perStep = 32, 4 << 10
	steps := int64(len(r.plan.Rates))
	inFlight := (r.plan.Tokens + r.plan.Sampled) / max(steps, 1) * perToken * int64(2+r.lookahead())
	return leastRoom + journal.ReserveSize + inFlight + (steps-int64(r.past.done()))*perStep
}
