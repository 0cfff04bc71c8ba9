package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"

	"trainer/internal/diag"
	"trainer/recipe"
	"trainer/runner"
)

func (a *app) resume() *cli.Command {
	return &cli.Command{
		Name: "resume", Usage: "continue a run after anything", ArgsUsage: "runs/NAME",
		Description: "Continues from the run's journal: in its session while that lives, else from its newest checkpoint. --set may change\n" +
			"limits, logging, eval, checkpoint, keep_resources, inactive_timeout, train.lookahead, train.epochs and train.num_steps.\n" +
			"What the run sent is sent again as it was; --wire changes the shape of what comes after.\n\n" +
			"Examples:\n  trainer resume runs/quickstart-20260101-120000\n  trainer resume runs/x --set limits.max_cost_usd=50\n" +
			"  trainer resume runs/x --skip-step 40     # which failed for what is in its rows",
		Flags: append([]cli.Flag{setFlag, jsonFlag, wireFlag, offlineFlag,
			&cli.BoolFlag{Name: "take-over", Usage: "continue a copy of a run folder, or one from another machine"},
			&cli.BoolFlag{Name: "salvage", Usage: "where the journal is damaged, go on from what stands before the damage"},
			&cli.BoolFlag{Name: "restart", Usage: "begin again at the first step where no checkpoint is left"},
			&cli.IntFlag{Name: "skip-step", Usage: "leave out step `K`, which failed; it keeps its number, its rows and its rate"}}, slices.Concat(forkFlags, outsideFlags)...),
		Action: func(c *cli.Context) error {
			dir, err := one(c, "a run folder")
			if err != nil {
				return err
			}
			if c.IsSet("skip-step") && c.Int("skip-step") < 1 {
				return &usage{fmt.Sprintf("trainer resume: --skip-step %d: steps count from 1; give the one that failed", c.Int("skip-step"))}
			}
			if _, err := shapeOf(c); err != nil {
				return err
			}
			if err := mayFork(c); err != nil {
				return err
			}
			if c.IsSet("from") {
				return a.fork(c, filepath.Clean(dir))
			}
			out := a.outside(c)
			defer out.Close()
			how := manner{source: source{hub: a.hub(c)}, out: out, json: c.Bool("json"), takeOver: c.Bool("take-over"), restart: c.Bool("restart"), salvage: c.Bool("salvage"), skipStep: c.Int("skip-step"), shape: c.String("wire")}
			return a.resumeRun(c.Context, filepath.Clean(dir), c.StringSlice("set"), how)
		},
	}
}

// manner is how a life is lived: what its flags say that its recipe does not.
type manner struct {
	source source

	json, yes, takeOver, restart, salvage bool

	out *outside // what the rewards ask with

	resolved []byte // the recipe, where --set changes it
	skipStep int
	shape    string // --wire of a resume; empty: as before
}

func (a *app) resumeRun(ctx context.Context, dir string, sets []string, how manner) error {
	hard, stop, done := signals(ctx)
	defer done()
	in, p, w, err := a.again(stop, dir, sets, &how)
	if err != nil {
		a.stillHeld(dir)
		return err
	}
	return a.live(hard, stop, in, p, w, dir, how)
}

// again opens what the run of a folder opened.
func (a *app) again(ctx context.Context, dir string, sets []string, how *manner) (in *runner.Inputs, p *runner.Plan, w where, err error) {
	r, err := reload(dir, sets)
	if err != nil {
		return nil, nil, w, err
	}
	if len(sets) > 0 {
		how.resolved = r.Resolved()
	}
	if w, err = a.placeOf(dir, r.BaseModel); err != nil {
		return nil, nil, w, err
	}
	lock, err := runner.ReadLock(dir)
	if err != nil {
		return nil, nil, w, err
	}
	if w.shape, err = shapeOn(how.shape, lock); err != nil {
		return nil, nil, w, err
	}
	if err := sayable(r, w.shape); err != nil {
		return nil, nil, w, err
	}
	start, err := lock.Start()
	if err != nil {
		return nil, nil, w, err
	}
	how.source.hub.Pins, how.source.past = lock.Pins(), lock
	in, p, err = prepare(ctx, r, how.source, w.sandbox, start, how.out, false)
	return in, p, w, err
}

// stillHeld names what the run did not see end, where it cannot go on as it is: it may bill.
func (a *app) stillHeld(dir string) {
	if _, err := os.Stat(filepath.Join(dir, runner.ResolvedName)); err != nil {
		return
	}
	h, err := runner.ReadHoldings(dir)
	if err != nil || h.Alive != nil {
		return
	}
	for _, o := range h.Held {
		if !o.Attached {
			fmt.Fprintf(a.err, "trainer: the run did not see its resource %s end: at $%.2f an hour it may bill until its inactive_timeout; stop it with `trainer resources stop %s`\n", o.ID, o.USDPerH, o.ID)
		}
	}
}

// placeOf is where the run of a folder was: at the service, on a sandbox server, or on the sandbox in the folder.
func (a *app) placeOf(dir, model string) (where, error) {
	lock, err := runner.ReadLock(dir)
	if err != nil {
		return where{}, err
	}
	w, err := a.place(model, strings.HasPrefix(lock["backend"], "sandbox"))
	if err != nil {
		return where{}, err
	}
	if _, err := os.Stat(sandboxDir(dir)); w.sandbox {
		w.embedded = err == nil
		if !w.embedded && w.base == "" {
			return where{}, fmt.Errorf("%s ran on a sandbox server; start it again on its folder and set TOGETHER_BASE_URL to its address", dir)
		}
	}
	return w, nil
}

// free are the keys that may change on resume, with all below them.
var free = []string{"limits", "logging", "eval", "checkpoint", "keep_resources", "inactive_timeout", "train.lookahead", "train.epochs", "train.num_steps", "test"}

// reload loads the run's own recipe with what resume may change.
func reload(dir string, sets []string) (*recipe.Recipe, error) {
	path := filepath.Join(dir, runner.ResolvedName)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, &usage{fmt.Sprintf("%s is not a run folder: it has no %s", dir, runner.ResolvedName)}
	}
	if err := runner.Rebind(dir, hashOf); err != nil {
		return nil, err
	}
	was, err := recipe.Load(path)
	if err != nil {
		return nil, err
	}
	lock, err := runner.ReadLock(dir)
	if err != nil {
		return nil, err
	}
	if lock.Evaluates() {
		return nil, &usage{fmt.Sprintf("%s is of an evaluation, which is not continued: ask for it again; `trainer resources gc` stops what it may have left", dir)}
	}
	if h, ok := lock["recipe"]; ok && h != was.Hash() {
		return nil, &runner.Drift{Dir: dir, Diff: []string{fmt.Sprintf("recipe: %s hashes to %s, the lock has %s", runner.ResolvedName, was.Hash(), h)}}
	}
	if len(sets) == 0 {
		return was, nil
	}
	now, err := recipe.Load(path, sets...)
	if err != nil {
		return nil, err
	}
	var l diag.List
	for _, c := range recipe.Diff(was, now) {
		if !mayChange(c.Key) {
			l.Add(diag.Pos{File: "--set " + c.Key}, c.Key, "a resumed run cannot change it (from %s to %s); start anew with `trainer run`", c.A, c.B)
		}
	}
	return now, l.Err()
}

func hashOf(path string) (string, error) {
	r, err := recipe.Load(path)
	if err != nil {
		return "", err
	}
	return r.Hash(), nil
}

func mayChange(key string) bool {
	for _, f := range free {
		if key == f || strings.HasPrefix(key, f+".") {
			return true
		}
	}
	return false
}
