package runner

import (
	"cmp"
	"fmt"

	"trainer/internal/diag"
	"trainer/loss"
	"trainer/recipe"
)

// lockPurpose is the entry of a lock whose run is not one that trains: it has evaluation.
const (
	lockPurpose = "purpose"
	evaluation  = "evaluation"
)

// NewEvaluation is the plan of a run that trains nothing: its session begins where in begins, scores what is held out, and is
// over. It needs a Held, and counts the steps that the weights contain as those of the plan, all of them done. The error is a
// diag.List.
func NewEvaluation(in *Inputs) (*Plan, error) {
	r := in.Recipe
	if in.Held == nil {
		return nil, diag.List{{Pos: r.At("dataset"), Key: "dataset", Msg: "nothing is held out, so there is nothing to evaluate; name rows in dataset.validation, or dataset.validation_split: 0.1"}}
	}
	if err := cmp.Or(in.Start.fits(r), in.Teacher.teaches(r)); err != nil {
		return nil, err
	}
	if err := in.comparable(); err != nil {
		return nil, err
	}
	p := sized(in)
	p.Evaluates, p.BatchesPerEpoch, p.StepsPerBatch = true, max(1, p.BatchesPerEpoch), 1
	if in.Start != nil {
		p.Rates = make([]float64, in.Start.Done)
	}
	lock, err := newLock(in)
	if err != nil {
		return nil, err
	}
	lock[lockPurpose] = evaluation
	p.Lock = lock
	return p, nil
}

// comparable refuses weights that would be compared with themselves: what training started from is known of a run, and not of
// a checkpoint.
func (in *Inputs) comparable() error {
	s, ref := in.Start, in.Recipe.Reference
	if s == nil || s.Dir != "" || in.Recipe.Loop() != loss.Preference || !usesReference(in.Recipe.Loss.Params) || ref != nil && ref.CheckpointID != nil {
		return in.Start.compares(in.Recipe)
	}
	return s.fault("%s compares with the weights that training started from, and a checkpoint alone does not say which those are; name its run, with --run, or give reference.checkpoint_id", in.Recipe.Loss.Type)
}

// Evaluates says that the run of the lock is an evaluation.
func (l Lock) Evaluates() bool { return l[lockPurpose] == evaluation }

// AtRun is the training checkpoint of the run in dir with the weights of step steps, nil the newest, for an evaluation: it is
// counted as that run counts, and compared with what that run compares with.
func AtRun(dir string, step *int) (*Start, error) {
	flag := "--run " + dir
	if step != nil {
		flag = fmt.Sprintf("--step %d", *step)
	}
	return forked(dir, step, diag.Pos{File: flag})
}

// AtCheckpoint is a checkpoint of which only the id is known, for an evaluation.
func AtCheckpoint(id string) *Start {
	return &Start{CheckpointID: id, pos: diag.Pos{File: "--checkpoint " + id}}
}

// RecipeOf is the recipe of the run that has saved the checkpoint; nil where only the id is known.
func (s *Start) RecipeOf() *recipe.Recipe { return s.made }
