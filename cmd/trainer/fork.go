package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"trainer/internal/diag"
	"trainer/internal/journal"
	"trainer/recipe"
	"trainer/runner"
)

// fork begins a new run from a checkpoint of the run in dir: a folder and a name of its own beside it, the run's recipe with
// what --set changes, or another one. Steps, rates and rows go on where the checkpoint stands.
func (a *app) fork(c *cli.Context, dir string) error {
	hard, stop, done := signals(c.Context)
	defer done()
	for _, other := range []string{"salvage", "restart", "skip-step", "take-over"} {
		if c.IsSet(other) {
			return &usage{fmt.Sprintf("trainer resume: --%s is about the run itself, --from begins another one: give one of them", other)}
		}
	}
	start, err := runner.Fork(dir, c.Int("from"))
	if err != nil {
		return err
	}
	r, err := forked(dir, c.String("recipe"), c.StringSlice("set"))
	if err != nil {
		return err
	}
	w, err := a.placeOf(dir, r.BaseModel)
	if err != nil {
		return err
	}
	lock, err := runner.ReadLock(dir)
	if err != nil {
		return err
	}
	if w.shape, err = shapeOn(c.String("wire"), lock); err != nil {
		return err
	}
	if err := sayable(r, w.shape); err != nil {
		return err
	}
	from := source{hub: a.hub(c)}
	from.hub.Pins = lock.Pins()
	out := a.outside(c)
	defer out.Close()
	return a.begin(hard, stop, r, start, w, filepath.Dir(dir), manner{source: from, json: c.Bool("json"), yes: c.Bool("yes"), out: out})
}

// forked is the recipe of a fork. Where it begins is said by --from alone.
func forked(dir, path string, sets []string) (*recipe.Recipe, error) {
	if path == "" {
		return recipe.Load(filepath.Join(dir, runner.ResolvedName), append([]string{"init_from=null"}, sets...)...)
	}
	r, err := recipe.Load(path, sets...)
	if err == nil && r.InitFrom != nil {
		return nil, diag.List{{Pos: r.At("init_from"), Key: "init_from", Msg: "stands beside --from, which says where the run begins; leave one out"}}
	}
	return r, err
}

// lend copies the sandbox of the run that another one begins from, or that its teacher is a checkpoint of, since a sandbox in a
// run's own process knows the checkpoints of its own folder alone, and leaves the folder as it is. free removes the copy, and may
// be called twice.
func (w *where) lend(start, teacher *runner.Start) (free func(), err error) {
	const way = "; start a server with `trainer sandbox serve`, and set TOGETHER_BASE_URL to its address for both runs"
	const none = ": a sandbox in the run's own process has no checkpoint of another run: name the run's folder, with init_from.run and step" + way
	switch {
	case !w.embedded || start == nil && teacher == nil:
		return func() {}, nil
	case start != nil && start.Dir == "":
		return nil, &usage{"init_from.checkpoint_id" + none}
	case start == nil && teacher.Dir == "":
		return nil, &usage{"teacher.init_from.checkpoint_id" + strings.Replace(none, "with init_from", "with teacher.init_from", 1)}
	case start != nil && teacher != nil && teacher.Dir != "" && start.Dir != teacher.Dir && !lentTo(start.Dir, teacher):
		return nil, &usage{fmt.Sprintf("the student begins from %s and the teacher is of %s, and a sandbox in the run's own process is that of one run%s", start.Dir, teacher.Dir, way)}
	case start == nil:
		start = teacher
	}
	from := sandboxDir(start.Dir)
	if _, err := os.Stat(from); err != nil {
		return nil, &usage{fmt.Sprintf("%s was not trained on a sandbox of its own, so that its checkpoint is not here%s", start.Dir, way)}
	}
	release, err := journal.Hold(start.Dir)
	if err != nil {
		return nil, err
	}
	defer release()
	if w.lent, err = os.MkdirTemp("", "trainer-sandbox-"); err != nil {
		return nil, err
	}
	lent := w.lent
	free = func() { _ = os.RemoveAll(lent) }
	if err := os.CopyFS(lent, os.DirFS(from)); err != nil {
		free()
		return nil, fmt.Errorf("copy the sandbox of %s: %w", start.Dir, err)
	}
	return free, nil
}

// lentTo says that the run in dir has had the same teacher, whose checkpoint its sandbox then has.
func lentTo(dir string, teacher *runner.Start) bool {
	lock, err := runner.ReadLock(dir)
	if err != nil {
		return false
	}
	was, err := lock.Teacher()
	return err == nil && was != nil && was.CheckpointID == teacher.CheckpointID
}

// borrow brings the copy into the folder of the new run.
func (w *where) borrow(dir string) error {
	if w.lent == "" {
		return nil
	}
	part := sandboxDir(dir) + ".part"
	if err := os.CopyFS(part, os.DirFS(w.lent)); err != nil {
		return fmt.Errorf("copy the sandbox of the run that this one begins from: %w", err)
	}
	return os.Rename(part, sandboxDir(dir))
}

// mayFork is what --recipe and --yes need.
func mayFork(c *cli.Context) error {
	for _, only := range []string{"recipe", "yes"} {
		if c.IsSet(only) && !c.IsSet("from") {
			return &usage{fmt.Sprintf("trainer resume: --%s is for a fork; give --from too", only)}
		}
	}
	if c.IsSet("from") && c.Int("from") < 1 {
		return &usage{fmt.Sprintf("trainer resume: --from %d: steps count from 1; to begin at the first one, `trainer run`", c.Int("from"))}
	}
	return nil
}

var forkFlags = []cli.Flag{
	&cli.IntFlag{Name: "from", Usage: "fork: begin a new run behind step `N`, from the checkpoint there; its recipe may differ"},
	&cli.StringFlag{Name: "recipe", Usage: "with --from: the recipe `FILE` of the new run, in place of this run's"},
	&cli.BoolFlag{Name: "yes", Usage: "with --from: do not ask before a run that costs money"},
}
