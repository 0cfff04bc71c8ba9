package runner

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"trainer/internal/download"
)

// Downloads gives the files of inference checkpoints, implemented by internal/together.
type Downloads interface {
	// Downloads returns the files of checkpoint id: of the adapter of a LoRA session, or of the merged model.
	Downloads(id string, adapter bool) download.Source
}

// copiesName is the folder of a run's copies.
const copiesName = "checkpoints"

// What checkpoint.download says.
const (
	downloadNone  = "none"
	downloadFinal = "final"
	downloadKept  = "kept"
)

// The variants of an inference checkpoint's files.
const (
	Merged  = "merged"
	Adapter = "adapter"
)

// Variant is the kind of files that a checkpoint is for: of an adapter where it is registered as one, or is not registered
// and comes of a LoRA session.
func Variant(c SavedCheckpoint, lora bool) string {
	if c.Adapter || c.Registered == "" && lora {
		return Adapter
	}
	return Merged
}

// CopyDir is where a run keeps its copy of the inference checkpoint of so many done steps.
func CopyDir(dir string, done int, variant string) string {
	return filepath.Join(dir, copiesName, fmt.Sprintf("step-%d-%s", done, variant))
}

// copies fetches inference checkpoints into the run folder, on a goroutine of its own, so that no step waits for it; what it
// has not come to is fetched behind the release, which needs no GPU. What is there is seen from the folders alone: a later
// life needs no record to go on. The nil value copies nothing.
type copies struct {
	r      *run
	cancel context.CancelCauseFunc
	wake   chan struct{}
	done   chan struct{}

	mu     sync.Mutex
	behind bool                    // the resource is released, and the run has come to its end
	now    string                  // id of what is fetched
	cut    context.CancelCauseFunc // ends that
	failed map[string]error        // by id; tried again behind the release
	broke  error                   // a panic
}

var errForgotten = errors.New("it is not kept any more")

// newCopies begins to fetch, until stop ends; nil where the recipe asks for no copies.
func newCopies(stop context.Context, r *run) *copies {
	if r.in.Recipe.Checkpoint.Download == downloadNone || r.world.Downloads == nil {
		return nil
	}
	ctx, cancel := context.WithCancelCause(stop)
	c := &copies{r: r, cancel: cancel, wake: make(chan struct{}, 1), done: make(chan struct{}), failed: map[string]error{}}
	go c.work(ctx)
	return c
}

// poke says that what is kept has changed.
func (c *copies) poke() {
	if c == nil {
		return
	}
	c.mu.Lock()
	if c.now != "" && c.r.isForgotten(c.now) {
		c.cut(errForgotten)
	}
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (r *run) isForgotten(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.past.forgotten[id] != ""
}

// work fetches one checkpoint after the other, until nothing is left behind the release, or ctx ends.
func (c *copies) work(ctx context.Context) {
	defer close(c.done)
	defer func() {
		if p := recover(); p != nil {
			c.mu.Lock()
			c.broke = &Panic{Value: p, Stack: debug.Stack()}
			c.mu.Unlock()
		}
	}()
	for ctx.Err() == nil {
		c.mu.Lock()
		behind := c.behind
		c.mu.Unlock()
		c.sweep()
		if s, ok := c.next(behind); ok {
			c.fetch(ctx, s, behind)
			continue
		}
		if behind {
			return
		}
		select {
		case <-c.wake:
		case <-ctx.Done():
		}
	}
}

// finish ends the work: behind a run that has come to its end, or to a limit, once all that is due is there; else at once,
// and the next life goes on. The error says what could not be had.
func (c *copies) finish(outcome string) error {
	if c == nil {
		return nil
	}
	if outcome == "failed" || outcome == "interrupted" {
		c.cancel(ErrInterrupted)
		<-c.done
		return nil
	}
	c.mu.Lock()
	c.behind = true
	clear(c.failed)
	c.mu.Unlock()
	c.poke()
	<-c.done
	defer c.cancel(nil)
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.broke
	for _, s := range c.r.wanted(true) {
		err := c.failed[s.ID]
		if err == nil {
			err = ErrInterrupted
		}
		all = errors.Join(all, fmt.Errorf("download the inference checkpoint of step %d: %w", s.Done, err))
	}
	return all
}

// wanted are the checkpoints whose copy is due and not whole, oldest first.
func (r *run) wanted(behind bool) (due []checkpointRecord) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.past.saves {
		if s.Kind != "inference" || r.past.forgotten[s.ID] != "" {
			continue
		}
		if r.in.Recipe.Checkpoint.Download == downloadFinal && !(behind && s.Done == r.past.done() && r.why == "complete") {
			continue
		}
		if label, _, whole, err := download.Read(r.copyDir(s)); err != nil || !whole || label != r.label(s) {
			due = append(due, s)
		}
	}
	return due
}

func (r *run) copyDir(s checkpointRecord) string {
	return CopyDir(r.world.Dir, s.Done, r.label(s).Kind)
}

func (r *run) label(s checkpointRecord) download.Label {
	kind := Variant(s.saved().SavedCheckpoint, r.in.Recipe.LoRA != nil)
	return download.Label{Checkpoint: s.ID, Kind: kind, Step: int64(s.Done), BaseModel: r.in.Recipe.BaseModel}
}

func (c *copies) next(behind bool) (checkpointRecord, bool) {
	due := c.r.wanted(behind)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range due {
		if c.failed[s.ID] == nil {
			return s, true
		}
	}
	return checkpointRecord{}, false
}

// fetch brings one copy, and tells.
func (c *copies) fetch(ctx context.Context, s checkpointRecord, behind bool) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	c.mu.Lock()
	c.now, c.cut = s.ID, cancel
	c.mu.Unlock()
	c.poke() // what came to be forgotten before it could be cut
	label, dir := c.r.label(s), c.r.copyDir(s)
	err := replaceCopy(dir, label)
	var got download.Done
	if err == nil {
		job := download.Job{Of: label, Source: c.r.world.Downloads.Downloads(s.ID, label.Kind == Adapter), Dir: dir}
		if behind {
			job.Tell = c.stage(s.Done)
		}
		got, err = job.Run(ctx)
	}
	c.mu.Lock()
	c.now, c.cut = "", nil
	if err != nil {
		c.failed[s.ID] = err
	}
	c.mu.Unlock()
	switch {
	case err == nil:
		c.r.tell(Event{Kind: DownloadEvent, Done: s.Done, Text: fmt.Sprintf("inference %s in %s (%d files, %d bytes)", s.ID, dir, got.Files, got.Size)})
	case ctx.Err() == nil && !behind:
		c.r.tell(Event{Kind: WarnEvent, Done: s.Done, Text: fmt.Sprintf("download the inference checkpoint of step %d: %v; it is tried again behind the last step", s.Done, err)})
	}
}

// replaceCopy makes room where a copy of another checkpoint of these steps stands, which a rollback has taken out of the
// lineage.
func replaceCopy(dir string, label download.Label) error {
	was, _, _, err := download.Read(dir)
	if err != nil || was == (download.Label{}) || was == label {
		return err
	}
	return download.Remove(dir)
}

// stageEvery is how often a download that is waited for tells how far it is.
const stageEvery = 10 * time.Second

// stage tells how far a download that is waited for has come.
func (c *copies) stage(done int) func(download.State) {
	name, last := fmt.Sprintf("downloading the checkpoint of step %d", done), time.Now()
	c.r.tell(Event{Kind: StageEvent, Done: c.r.doneSteps(), Text: name})
	return func(s download.State) {
		if time.Since(last) < stageEvery || s.Size == 0 {
			return
		}
		last = time.Now()
		c.r.tell(Event{Kind: StageEvent, Done: c.r.doneSteps(), Text: fmt.Sprintf("%s (%d %%)", name, s.Bytes*100/s.Size)})
	}
}

// sweep removes the copies of checkpoints that are forgotten, or that a rollback has taken out of the lineage: only what a
// record in the folder says is ours. What cannot be removed stays, and does no harm.
func (c *copies) sweep() {
	if c.r.in.Recipe.Checkpoint.Download != downloadKept {
		return
	}
	dirs, err := filepath.Glob(filepath.Join(c.r.world.Dir, copiesName, "step-*"))
	if err != nil {
		return
	}
	for _, dir := range dirs {
		label, _, _, err := download.Read(dir)
		if err == nil && label.Checkpoint != "" && !c.r.keepsCopy(label.Checkpoint) {
			_ = download.Remove(dir)
		}
	}
}

func (r *run) keepsCopy(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := slices.ContainsFunc(r.past.saves, func(s checkpointRecord) bool { return s.ID == id })
	return known && r.past.forgotten[id] == ""
}
