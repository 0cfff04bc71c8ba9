package runner

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/google/uuid"

	"trainer/internal/journal"
)

// open writes the first records of a life.
func (r *run) open() error {
	reason := "resume"
	if r.past.run == nil {
		reason = "run"
		rec := runRecord{Format: journalFormat, RunID: uuid.NewString(), RecipeHash: r.in.Recipe.Hash(), LockHash: r.plan.Lock.Hash()}
		if s := r.in.Start; s != nil {
			rec.Parent = &parent{s.RunID, s.CheckpointID, s.Done, s.Updates}
		}
		if err := r.journal.Append(recRun, rec); err != nil {
			return err
		}
		r.past.run = &rec
	}
	if err := os.MkdirAll(r.inflight(), 0o700); err != nil {
		return fmt.Errorf("make the folder of stored requests: %w", err)
	}
	if err := r.disk.SyncFolder(r.world.Dir); err != nil { // without its name the folder would lose what is synced in it
		return fmt.Errorf("bring the folder of stored requests to the disk: %w", err)
	}
	journal.Sweep(r.disk, r.inflight())
	if err := r.room(); err != nil {
		return err
	}
	if err := r.bind(); err != nil {
		return err
	}
	device, inode, err := journal.Folder(r.world.Dir)
	if err != nil {
		return err
	}
	who := journal.Owner()
	return r.journal.Append(recLife, lifeRecord{
		PID: who.PID, Host: who.Host, BootID: who.BootID, Binary: r.world.Version, Reason: reason,
		Folder: folderMark{device, inode}, LockHash: r.plan.Lock.Hash(), Steps: len(r.plan.Rates), TornBytes: r.journal.Torn(),
		TakeOver: r.world.TakeOver,
	})
}

// inflight is where the bodies of unanswered operations are.
func (r *run) inflight() string { return filepath.Join(r.world.Dir, "inflight") }

func (r *run) info() RunInfo {
	info := RunInfo{ID: r.past.run.RunID, Name: r.in.Recipe.RunName(), Dir: r.world.Dir, BaseModel: r.in.Recipe.BaseModel,
		Recipe: r.in.Recipe.Path(), Plan: r.plan, Done: r.past.done(), Sandbox: r.world.Sandbox, StandIn: r.in.StandIn, Version: r.world.Version}
	if r.in.Start != nil {
		info.Start = r.in.Start.String()
	}
	if r.plan.Cost != nil {
		info.PriceUSDPerHour = r.plan.Cost.USDPerHour
	}
	return info
}

// acquire gets all that training needs: what the service allows, the resource, the data in order, the session.
func (r *run) acquire(ctx, stop context.Context) error {
	if err := r.decide(ctx); err != nil {
		return err
	}
	rows := &fromRows{set: r.in.Train, seed: r.in.Seeds.Order, batch: r.plan.BatchSize, perEpoch: r.plan.BatchesPerEpoch,
		reduction: r.in.Recipe.Loss.Reduction, parts: partsFor(r.limits.MaxBatch, r.limits.Accumulation), soft: r.in.softly()}
	if r.in.Recipe.Taught() {
		rows.reduction = "" // reduced by the loss, which is computed here
	}
	r.batches = rows
	if r.in.samples() {
		r.batches = newRollouts(r, rows)
	}
	r.gradient = r.newGradient()
	if err := r.sift(); err != nil {
		return err
	}
	if err := r.position(); err != nil || r.fulfilled() {
		return err
	}
	if err := r.gradient.check(ctx, r); err != nil {
		return err
	}
	if err := r.take(ctx, stop); err != nil {
		return err
	}
	if err := r.gradient.open(ctx, stop, r); err != nil {
		return err
	}
	if err := r.attend(ctx, stop); err != nil {
		return err
	}
	if err := r.openTeacher(ctx, stop); err != nil {
		return err
	}
	return r.position()
}

// lookahead is the recipe's, while the service keeps the order of operations.
func (r *run) lookahead() int {
	if r.past.disorder {
		return 0
	}
	return r.in.Recipe.Train.Lookahead
}

// fulfilled says that an earlier life has done all there is to do, and did not come to saying so.
func (r *run) fulfilled() bool {
	done := r.past.done()
	if done < len(r.plan.Rates) && !r.early.stopped() || done == r.past.begun().Done || !r.had.training[done] || r.evalsAt(done) {
		return false
	}
	return r.had.inference[done] || !r.in.Recipe.Checkpoint.InferenceAtEnd
}

// position says where this life starts and ends, and brings the projections up to date.
func (r *run) position() error {
	if r.from = r.past.done(); r.until == 0 { // a rollback takes nothing from the steps of this life
		r.until = len(r.plan.Rates)
		if m := r.in.Recipe.Limits.MaxSteps; m != nil {
			r.until = r.plan.Until(r.from, *m)
		}
	}
	r.savedAt = time.Now()
	r.had = had{map[int]bool{}, map[int]bool{}, map[int]bool{}}
	for _, c := range r.past.saves {
		if c.Kind == "inference" {
			r.had.inference[c.Done] = true
		} else {
			r.had.training[c.Done] = true
		}
	}
	var evals []measured
	for d, e := range r.past.evals {
		r.had.evals[d] = true
		evals = append(evals, e)
	}
	if d := r.past.begun().Done; d > 0 && !r.plan.Evaluates { // the run that this one is forked from has seen to what was due there
		r.had.training[d], r.had.inference[d], r.had.evals[d] = true, true, true
	}
	slices.SortFunc(evals, func(a, b measured) int { return a.Done - b.Done })
	r.early = newEarlyStop(r.in.Recipe.Eval.EarlyStop, evals)
	if err := r.sameRows(); err != nil {
		return err
	}
	wrote, err := r.past.project(r.disk, r.world.Dir, r.evalsAt)
	r.wrote = wrote
	return err
}

// sameRows compares what the rows of the last steps hash to with what was trained on.
func (r *run) sameRows() error {
	for i := max(0, len(r.past.steps)-3); i < len(r.past.steps); i++ {
		m := r.past.steps[i]
		b, err := r.batches.next(context.Background(), m.Step)
		if err != nil {
			return err
		}
		if b.Hash != m.Rows {
			return fmt.Errorf("%w: the rows of step %d are not those that were trained", ErrDrift, m.Done)
		}
	}
	return nil
}

// decide asks once what the service allows, checks the plan against it, and writes it down for every later life.
func (r *run) decide(ctx context.Context) error {
	if r.past.plan != nil {
		r.limits = *r.past.plan
		return nil
	}
	models, err := r.world.Backend.Models(ctx)
	if err != nil {
		return fmt.Errorf("ask what the service trains: %w", err)
	}
	m, problems := r.in.Check(r.plan, models)
	if err := problems.Err(); err != nil {
		return err
	}
	r.limits = decided{GPUType: m.GPUType, MaxBatch: m.Limits.MaxBatchSize, Accumulation: r.in.Recipe.Train.GradientAccumulation, StandIn: m.StandIn}
	price, err := r.world.Resources.Price(ctx, r.spec())
	if err != nil {
		return fmt.Errorf("ask for the price: %w", err)
	}
	r.limits.PriceUSD = price
	if r.limits.Teacher, err = r.in.decideTeacher(ctx, models, r.world.Resources); err != nil {
		return err
	}
	return r.journal.Append(recPlan, r.limits)
}
