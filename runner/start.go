package runner

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"trainer/internal/diag"
	"trainer/internal/journal"
	"trainer/loss"
	"trainer/recipe"
)

// Start is a checkpoint that a run begins from, in place of the base model's weights.
type Start struct {
	CheckpointID  string
	LoadOptimizer bool   // the optimiser's state too, not the weights alone
	RunID         string // of the run that has saved it; empty where only the id is known
	Step          int    // the steps in it, as that run counts; 0 where only the id is known
	// Done and Updates are the steps in it that the run counts as its own: of a fork, whose schedule and data go on behind
	// them. 0: both begin at the first step.
	Done, Updates int
	// Origin is the checkpoint at which the first of the runs that a fork goes back to has begun, empty for the base model's
	// weights.
	Origin string
	// Dir is the folder of that run, empty where only the id is known. It is not in the lock: a run needs it once.
	Dir string

	pos  diag.Pos // where it is asked for
	key  string
	made *recipe.Recipe // what that run is; nil where only the id is known
}

// StartOf is what init_from names, nil where it is null. A run is named by its folder. The error is a diag.List where the
// recipe or that run is at fault.
func StartOf(r *recipe.Recipe) (*Start, error) { return startOf(r, r.InitFrom, "init_from") }

// TeacherOf is what teacher.init_from names, nil where it is null or there is no teacher. Errors as StartOf.
func TeacherOf(r *recipe.Recipe) (*Start, error) {
	if r.Teacher == nil {
		return nil, nil
	}
	return startOf(r, r.Teacher.InitFrom, "teacher.init_from")
}

// startOf is what from, which stands at key, names.
func startOf(r *recipe.Recipe, from *recipe.InitFrom, key string) (*Start, error) {
	if from == nil {
		return nil, nil
	}
	if from.CheckpointID != nil {
		key += ".checkpoint_id"
		return &Start{CheckpointID: *from.CheckpointID, LoadOptimizer: from.LoadOptimizer, pos: r.At(key), key: key}, nil
	}
	s := &Start{LoadOptimizer: from.LoadOptimizer, Dir: filepath.Clean(*from.Run), pos: r.At(key + ".run"), key: key + ".run"}
	_, err := s.find(from.Step)
	var none *noStep
	if errors.As(err, &none) {
		key += ".step"
		return nil, diag.List{{Pos: r.At(key), Key: key, Msg: none.text}}
	}
	return s, err
}

// Fork is the training checkpoint of done steps of the run in dir, for a run that goes on behind them.
func Fork(dir string, done int) (*Start, error) {
	s, err := forked(dir, &done, diag.Pos{File: fmt.Sprintf("--from %d", done)})
	if err == nil {
		s.LoadOptimizer = true
	}
	return s, err
}

// forked is the training checkpoint of a run with the weights of step steps, nil the newest, counted as that run counts.
func forked(dir string, step *int, pos diag.Pos) (*Start, error) {
	s := &Start{Dir: filepath.Clean(dir), pos: pos}
	c, err := s.find(step)
	s.Done, s.Updates = c.Done, c.Updates
	var none *noStep
	if errors.As(err, &none) {
		return nil, s.fault("%s", none.text)
	}
	if err != nil {
		return nil, err
	}
	was, err := ReadLock(s.Dir)
	if err != nil {
		return nil, fmt.Errorf("read the lock of the run that is forked: %w", err)
	}
	if s.Origin = was[lockStart]; was[lockDone] != "" { // a fork itself
		s.Origin = was[lockOrigin]
	}
	return s, nil
}

// noStep says that a run has no checkpoint of the step.
type noStep struct{ text string }

func (n *noStep) Error() string { return n.text }

// find looks the checkpoint up in the journal of the run; step nil: the newest.
func (s *Start) find(step *int) (checkpointRecord, error) {
	path := filepath.Join(s.Dir, ResolvedName)
	if _, err := os.Stat(path); err != nil {
		return checkpointRecord{}, s.fault("%s is not a run folder: it has no %s", s.Dir, ResolvedName)
	}
	var err error
	if s.made, err = recipe.Load(path); err != nil {
		return checkpointRecord{}, err
	}
	records, err := journal.Read(s.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return checkpointRecord{}, err
	}
	p, err := recall(records)
	if err != nil {
		return checkpointRecord{}, err
	}
	if all := p.trainingAt(step); len(all) > 0 {
		c := all[len(all)-1]
		s.CheckpointID, s.RunID, s.Step = c.ID, p.run.RunID, c.Done
		return c, nil
	}
	var steps []string
	for _, c := range p.trainingAt(nil) {
		steps = append(steps, strconv.Itoa(c.Done))
	}
	if len(steps) == 0 {
		return checkpointRecord{}, s.fault("the run in %s has no training checkpoint", s.Dir)
	}
	return checkpointRecord{}, &noStep{fmt.Sprintf("the run in %s has training checkpoints of the steps %s, none of %d", s.Dir, strings.Join(steps, ", "), *step)}
}

// trainingAt are the training checkpoints of the lineage, in order of their steps: those of done steps, or all.
func (p *past) trainingAt(done *int) (all []checkpointRecord) {
	for _, c := range p.saves {
		if c.Kind == "training" && (done == nil || c.Done == *done) {
			all = append(all, c)
		}
	}
	slices.SortStableFunc(all, func(a, b checkpointRecord) int { return a.Done - b.Done })
	return all
}

// fault is a problem of what was asked for.
func (s *Start) fault(format string, a ...any) error {
	return diag.List{{Pos: s.pos, Key: s.key, Msg: fmt.Sprintf(format, a...)}}
}

// String says it in words, for reports.
func (s *Start) String() string {
	text := "checkpoint " + s.CheckpointID
	if s.RunID != "" {
		text += fmt.Sprintf(", step %d of run %s", s.Step, s.RunID)
	}
	switch {
	case s.Done > 0 && s.LoadOptimizer:
		return text + ", forked: weights, optimizer, schedule and data go on"
	case s.LoadOptimizer:
		return text + ", weights and optimizer"
	}
	return text + ", weights alone"
}

// Entries of a lock that say where a run begins.
const (
	lockStart     = "start"
	lockOptimizer = "start.optimizer"
	lockStartRun  = "start.run"
	lockStartStep = "start.step"
	lockDone      = "start.done"
	lockUpdates   = "start.updates"
	lockOrigin    = "start.origin"

	lockTeacher     = "teacher"
	lockTeacherRun  = "teacher.run"
	lockTeacherStep = "teacher.step"
)

func (s *Start) enter(l Lock) {
	if s == nil {
		return
	}
	l[lockStart], l[lockOptimizer] = s.CheckpointID, strconv.FormatBool(s.LoadOptimizer)
	if s.RunID != "" {
		l[lockStartRun], l[lockStartStep] = s.RunID, strconv.Itoa(s.Step)
	}
	if s.Done > 0 {
		l[lockDone], l[lockUpdates] = strconv.Itoa(s.Done), strconv.Itoa(s.Updates)
		if s.Origin != "" {
			l[lockOrigin] = s.Origin
		}
	}
}

// enterTeacher is enter of the checkpoint that a teacher has.
func (s *Start) enterTeacher(l Lock) {
	if s == nil {
		return
	}
	l[lockTeacher] = s.CheckpointID
	if s.RunID != "" {
		l[lockTeacherRun], l[lockTeacherStep] = s.RunID, strconv.Itoa(s.Step)
	}
}

// Teacher is the checkpoint that the teacher of the lock's run has, nil for the weights of its base model.
func (l Lock) Teacher() (*Start, error) {
	if l[lockTeacher] == "" {
		return nil, nil
	}
	s := &Start{CheckpointID: l[lockTeacher], RunID: l[lockTeacherRun], pos: diag.Pos{File: lockName}, key: lockTeacher}
	var err error
	s.Step, err = l.steps(lockTeacherStep)
	return s, err
}

// steps is the number of steps that an entry has; 0: there is none.
func (l Lock) steps(name string) (int, error) {
	if l[name] == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(l[name])
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%s: %s: %q is not a number of steps", lockName, name, l[name])
	}
	return n, nil
}

// Start is where the run of the lock has begun, nil for the base model's weights.
func (l Lock) Start() (*Start, error) {
	if l[lockStart] == "" {
		return nil, nil
	}
	s := &Start{CheckpointID: l[lockStart], LoadOptimizer: l[lockOptimizer] == "true", RunID: l[lockStartRun], Origin: l[lockOrigin], pos: diag.Pos{File: lockName}}
	for name, to := range map[string]*int{lockStartStep: &s.Step, lockDone: &s.Done, lockUpdates: &s.Updates} {
		n, err := l.steps(name)
		if err != nil {
			return nil, err
		}
		*to = n
	}
	return s, nil
}

// fits says whether the run that saved the checkpoint trains what this one does; what the service shows of the checkpoint is
// compared by askStart.
func (s *Start) fits(r *recipe.Recipe) error {
	if s == nil || s.made == nil {
		return nil
	}
	if was := s.made; was.BaseModel != r.BaseModel {
		return s.fault("%s trains %s, this recipe %s", s.Dir, was.BaseModel, r.BaseModel)
	}
	return s.shaped(r)
}

// teaches says whether the run that saved the checkpoint of a teacher trained the teacher's base model, in the form that the
// teacher's session has.
func (s *Start) teaches(r *recipe.Recipe) error {
	if s == nil || s.made == nil {
		return nil
	}
	if was := s.made; was.BaseModel != r.Teacher.BaseModel {
		return s.fault("%s trains %s, the teacher is %s", s.Dir, was.BaseModel, r.Teacher.BaseModel)
	}
	return s.shaped(r)
}

// shaped says whether that run trains weights of the recipe's form.
func (s *Start) shaped(r *recipe.Recipe) error {
	was := s.made
	switch {
	case (was.LoRA == nil) != (r.LoRA == nil):
		return s.fault("%s trains %s, this recipe %s", s.Dir, weightsOf(was), weightsOf(r))
	case r.LoRA != nil && (was.LoRA.Rank != r.LoRA.Rank || was.LoRA.Alpha != r.LoRA.Alpha || was.LoRA.TrainUnembed != r.LoRA.TrainUnembed):
		return s.fault("%s has lora_config rank %d, alpha %d, train_unembed %v; this recipe rank %d, alpha %d, train_unembed %v: a checkpoint's adapter keeps its shape",
			s.Dir, was.LoRA.Rank, was.LoRA.Alpha, was.LoRA.TrainUnembed, r.LoRA.Rank, r.LoRA.Alpha, r.LoRA.TrainUnembed)
	case s.LoadOptimizer && was.Optimizer.Type != r.Optimizer.Type:
		return s.fault("%s has the state of %s, this recipe trains with %s: begin from its weights alone, with init_from and load_optimizer false", s.Dir, was.Optimizer.Type, r.Optimizer.Type)
	}
	return nil
}

// compares refuses a fork whose loss compares with the weights that the run which it is forked from has started at, where
// that run did not: no session of the fork ever has them.
func (s *Start) compares(r *recipe.Recipe) error {
	if s == nil || s.Done == 0 || s.made == nil || r.Reference != nil && r.Reference.CheckpointID != nil {
		return nil
	}
	if !usesReference(r.Loss.Params) || usesReference(s.made.Loss.Params) {
		return nil
	}
	return s.fault("%s compares with the weights that training started from, which %s did not keep anything of: a new run with init_from begins at this checkpoint and compares with it, and reference.checkpoint_id names weights of their own", r.Loss.Type, s.Dir)
}

func usesReference(l loss.Loss) bool {
	r, ok := l.(loss.Referenced)
	return ok && r.UsesReference()
}

func weightsOf(r *recipe.Recipe) string {
	if r.LoRA == nil {
		return "full weights"
	}
	return "LoRA"
}

// askStart looks at the checkpoints that the run begins from, compares with and learns from: whether the service has them and they fit.
// It is free.
func (in *Inputs) askStart(ctx context.Context, b Backend) error {
	if s := in.Start; s != nil {
		if err := in.askCheckpoint(ctx, b, s, in.Recipe.BaseModel); err != nil {
			return err
		}
	}
	if t := in.Teacher; t != nil {
		if err := in.askCheckpoint(ctx, b, t, in.Recipe.Teacher.BaseModel); err != nil {
			return err
		}
	}
	ref := in.Recipe.Reference
	if ref == nil || ref.CheckpointID == nil {
		return nil
	}
	const key = "reference.checkpoint_id"
	return in.askCheckpoint(ctx, b, &Start{CheckpointID: *ref.CheckpointID, pos: in.Recipe.At(key), key: key}, in.Recipe.BaseModel)
}

// askCheckpoint looks whether the service has the checkpoint of s, and whether a session of model with the recipe's lora_config can
// have its weights.
func (in *Inputs) askCheckpoint(ctx context.Context, b Backend, s *Start, model string) error {
	c, err := b.Checkpoint(ctx, s.CheckpointID)
	var no *Refused
	switch {
	case errors.As(err, &no) && no.Status < 500 && no.Status != 401 && no.Status != 403 && no.Status != 429:
		return s.fault("the service has no checkpoint %s", s.CheckpointID)
	case err != nil:
		return fmt.Errorf("ask for checkpoint %s: %w", s.CheckpointID, err)
	}
	rank := 0
	if in.Recipe.LoRA != nil {
		rank = in.Recipe.LoRA.Rank
	}
	switch {
	case c.BaseModel != "" && c.BaseModel != model && model == in.Recipe.BaseModel:
		return s.fault("checkpoint %s is of %s, this recipe trains %s", c.ID, c.BaseModel, model)
	case c.BaseModel != "" && c.BaseModel != model:
		return s.fault("checkpoint %s is of %s, the teacher is %s", c.ID, c.BaseModel, model)
	case c.LoRARank != rank && c.LoRARank > 0 && rank > 0:
		return s.fault("checkpoint %s has LoRA rank %d, this recipe %d", c.ID, c.LoRARank, rank)
	case c.LoRARank > 0 && rank == 0:
		return s.fault("checkpoint %s is a LoRA adapter, this recipe trains full weights", c.ID)
	case c.Inference && s.LoadOptimizer:
		return s.fault("checkpoint %s is an inference checkpoint, without the optimizer's state; use load_optimizer: false", c.ID)
	}
	return nil
}
