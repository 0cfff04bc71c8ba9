package runner

import (
	"context"
	"fmt"
	"time"
)

// syncs says whether the weights of done steps are published: in a loop that samples, behind each rollout batch and where a
// session begins; else at the two ends of a life, and before an evaluation that samples.
func (r *run) syncs(done int) bool {
	switch {
	case r.in.Recipe.Compute.NumGeneratorReplicas == 0:
		return false
	case r.in.samples():
		return done%r.plan.perBatch() == 0 || done == r.gen.from.Done
	}
	return done == r.from || done == r.until || r.in.examines() && r.evalsAt(done)
}

// publish makes the weights of done steps those that completions are sampled under, and waits until they are: what is
// sampled before would be of older ones. What fails is asked for again, and then ends the run.
func (r *run) publish(ctx context.Context, f *flight, done int) (served, error) {
	mode := "synchronous"
	if ro := r.in.Recipe.Rollout; ro != nil {
		mode = ro.WeightSyncType
	}
	for attempt := 0; ; attempt++ {
		o, err := r.once(ctx, slot{step: done, kind: kindSync, attempt: attempt}, Sync{Mode: mode}, f.updates)
		if err != nil {
			return served{}, err
		}
		res, err := o.wait(ctx)
		if err == nil {
			return served{done / r.plan.perBatch(), f.updates, res.Version}, r.applied(ctx, mode, res.Version)
		}
		if attempt = max(attempt, o.slot.attempt); attempt >= harmlessTries-1 || r.tainted() != nil || costs(failureOf(err), false) != askAgain {
			return served{}, fmt.Errorf("publish the weights of step %d: %w", done, err)
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
