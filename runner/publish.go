package runner

import (
	"context"
	"fmt"
	"time"
)

// syncs says whether the weights of done steps are published: in a loop that samples, behind each rollout batch and where a
// session begins; else at the two ends of a life.
func (r *run) syncs(done int) bool {
	switch {
	case r.in.Recipe.Compute.NumGeneratorReplicas == 0:
		return false
	case r.in.samples():
		return done%r.plan.perBatch() == 0 || done == r.gen.from.Done
	}
	return done == r.from || done == r.until
}

// publish makes the weights of done steps those that completions are sampled under, and waits until they are: what is
// sampled before would be of older ones. What fails is asked for again, and then ends the run.
func (r *run) publish(ctx context.Context, f *flight, source *fromRollouts, done int) error {
	mode := r.in.Recipe.Rollout.WeightSyncType
	for attempt := 0; ; attempt++ {
		o, err := r.once(ctx, slot{step: done, kind: kindSync, attempt: attempt}, Sync{Mode: mode}, f.updates)
		if err != nil {
			return err
		}
		res, err := o.wait(ctx)
		if err == nil {
			if err := r.applied(ctx, mode, res.Version); err != nil {
				return err
			}
			source.published(served{done / source.per, f.updates, res.Version})
			return nil
		}
		if attempt = max(attempt, o.slot.attempt); attempt >= harmlessTries-1 || r.tainted() != nil || costs(failureOf(err), false) != askAgain {
			return fmt.Errorf("publish the weights of step %d: %w", done, err)
		}
	}
}

// applied waits until a sync that ends before its weights are served is over.
func (r *run) applied(ctx context.Context, mode string, version int64) error {
	for since := time.Now(); mode == "pipeline"; {
		st, err := r.session.State(ctx)
		if err != nil || st.Applied >= version || time.Since(since) > r.ledger.patience {
			return nil // where it is not seen to be over, the samples say what they are of
		}
		if err := sleep(ctx, nextLook(since)); err != nil {
			return err
		}
	}
	return nil
}
