package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"trainer/internal/report"
	"trainer/recipe"
	"trainer/runner"
)

// weightsFlags say whose weights are looked at, where not the recipe's start.
var weightsFlags = []cli.Flag{
	&cli.StringFlag{Name: "run", Usage: "take the weights that the run in `DIR` has saved, the newest unless --step says otherwise"},
	&cli.IntFlag{Name: "step", Usage: "with --run: its training checkpoint of step `N`"},
	&cli.StringFlag{Name: "checkpoint", Usage: "take the weights of checkpoint `ID` of the service"},
}

// costFlags are of commands that need GPUs for a while.
var costFlags = []cli.Flag{sandboxFlag, runsFlag, wireFlag, offlineFlag,
	&cli.BoolFlag{Name: "yes", Usage: "do not ask before what costs money"},
	&cli.StringFlag{Name: "attach", Usage: "use the running resource `ID`, which is not stopped afterwards"}}

func (a *app) eval() *cli.Command {
	return &cli.Command{
		Name: "eval", Usage: "score what a recipe holds out, without training", ArgsUsage: "[recipe.yaml]",
		Description: "Provisions, opens a session, scores the held-out rows or samples the held-out prompts as an evaluation of a run does, and\nreleases everything. The weights are those that the recipe begins from, or of a run, or of a checkpoint; a run brings its\nown recipe, which another one may replace. Nothing is trained and nothing is saved.\n\n" +
			"Examples:\n  trainer eval recipes/quickstart.yaml\n  trainer eval --run runs/letters-grpo-20260101-120000 --set eval.group_size=4 --set eval.sampling_params.temperature=1\n" +
			"  trainer eval recipe.yaml --checkpoint 8eda0b57-2ff6-402a-a893-7e39248ecc07 --out samples.jsonl --json",
		Flags: slices.Concat([]cli.Flag{setFlag}, weightsFlags, costFlags, outsideFlags,
			[]cli.Flag{jsonFlag, &cli.StringFlag{Name: "out", Usage: "write the completions that were sampled to `FILE`, JSON lines"}}),
		Action: func(c *cli.Context) error {
			hard, stop, done := signals(c.Context)
			defer done()
			job, err := a.evalJob(c)
			if err != nil {
				return err
			}
			out := a.outside(c)
			defer out.Close()
			job.how.out = out
			v, err := a.look(hard, stop, job)
			if err != nil {
				return err
			}
			return errors.Join(a.printEval(v, c.Bool("json")), copyTo(c.String("out"), v.Samples))
		},
	}
}

// job is an evaluation before anything is opened.
type job struct {
	recipe *recipe.Recipe
	start  *runner.Start
	place  where
	runs   string
	how    manner
	ready  func(*runner.Inputs) // what is done to the inputs before the plan; nil: nothing
}

// evalJob reads the flags of eval.
func (a *app) evalJob(c *cli.Context) (*job, error) {
	start, err := weightsOf(c)
	if err != nil {
		return nil, err
	}
	r, err := a.evalRecipe(c, start)
	if err != nil {
		return nil, err
	}
	if c.IsSet("out") && r.Rollout == nil && r.Eval.SamplingParams == nil {
		return nil, &usage{fmt.Sprintf("trainer eval: --out: an evaluation of the %s loop samples nothing that could be written there unless eval.sampling_params says so; leave it out", r.Loop())}
	}
	if start == nil {
		if start, err = runner.StartOf(r); err != nil {
			return nil, err
		}
	}
	return a.jobOf(c, r, start)
}

// jobOf says where a job runs.
func (a *app) jobOf(c *cli.Context, r *recipe.Recipe, start *runner.Start) (*job, error) {
	shape, err := shapeOf(c)
	if err == nil {
		err = sayable(r, shape)
	}
	if err != nil {
		return nil, err
	}
	j := &job{recipe: r, start: start, runs: c.String("runs-dir"), how: manner{source: source{hub: a.hub(c)}, yes: c.Bool("yes")}}
	if dir := c.String("run"); dir != "" && !c.Bool("sandbox") {
		j.place, err = a.placeOf(dir, r.BaseModel)
	} else {
		j.place, err = a.place(r.BaseModel, c.Bool("sandbox"))
	}
	if err != nil {
		return nil, err
	}
	if c.IsSet("checkpoint") && j.place.embedded {
		return nil, &usage{fmt.Sprintf("%s: --checkpoint: a sandbox in this process has no checkpoint yet: name the folder of its run, with --run; or start a server with `trainer sandbox serve`, and set TOGETHER_BASE_URL to its address", c.Command.HelpName)}
	}
	j.place.shape = shape
	return j, nil
}

// weightsOf is what --run and --checkpoint name; nil for neither.
func weightsOf(c *cli.Context) (*runner.Start, error) {
	name := c.Command.HelpName
	for _, f := range []string{"run", "checkpoint", "attach"} {
		if c.IsSet(f) && c.String(f) == "" {
			return nil, &usage{fmt.Sprintf("%s: --%s: empty", name, f)}
		}
	}
	switch {
	case c.IsSet("run") && c.IsSet("checkpoint"):
		return nil, &usage{name + ": --run and --checkpoint both say whose weights; give one of them"}
	case c.IsSet("step") && !c.IsSet("run"):
		return nil, &usage{name + ": --step is of a run; give --run too"}
	case c.IsSet("step") && c.Int("step") < 1:
		return nil, &usage{fmt.Sprintf("%s: --step %d: steps count from 1", name, c.Int("step"))}
	case c.IsSet("checkpoint"):
		return runner.AtCheckpoint(c.String("checkpoint")), nil
	case !c.IsSet("run"):
		return nil, nil
	}
	var step *int
	if c.IsSet("step") {
		step = new(c.Int("step"))
	}
	return runner.AtRun(c.String("run"), step)
}

// evalRecipe is the recipe of an evaluation: the one that is given, or that of the run; with nothing in it that would be left
// behind, or cost without being used.
func (a *app) evalRecipe(c *cli.Context, start *runner.Start) (*recipe.Recipe, error) {
	path := c.Args().First()
	if path == "" {
		if !c.IsSet("run") {
			return nil, &usage{"trainer eval: give a recipe, or a run with --run"}
		}
		path = filepath.Join(c.String("run"), runner.ResolvedName)
	}
	given := c.StringSlice("set")
	r, err := recipe.Load(path, given...)
	if err != nil {
		return nil, err
	}
	sets := []string{"keep_resources=never", "checkpoint.download=none", "name=" + evalName(r)}
	if start != nil {
		sets = append(sets, "init_from=null")
	}
	switch {
	case c.IsSet("attach"):
		sets = append(sets, "model_resources_id="+c.String("attach"))
	case r.Rollout == nil && r.Eval.SamplingParams == nil && r.ModelResourcesID == nil:
		sets = append(sets, "compute_config.num_generator_replicas=0")
	}
	return recipe.Load(path, append(slices.Clone(given), sets...)...)
}

// evalName is a name for the folder, which is no longer than a name may be.
func evalName(r *recipe.Recipe) string {
	name := []rune(r.RunName())
	for len(name) > 95 || len(string(name)) > 195 {
		name = name[:len(name)-1]
	}
	return string(name) + "-eval"
}

// evaluated is what an evaluation has found.
type evaluated struct {
	Recipe     string             `json:"recipe"`
	BaseModel  string             `json:"base_model"`
	StandIn    bool               `json:"stand_in"`
	Checkpoint string             `json:"checkpoint,omitempty"` // empty: the base model
	Step       int                `json:"step"`                 // steps in the weights, as its run counts
	Metrics    map[string]float64 `json:"metrics"`
	CostUSD    float64            `json:"cost_usd"`
	Dir        string             `json:"dir"`
	Samples    string             `json:"samples,omitempty"` // the file in dir
}

// look runs a job, from the question what it costs to the release of everything.
func (a *app) look(hard, stop context.Context, j *job) (v evaluated, err error) {
	w, r := j.place, j.recipe
	in, err := opened(stop, r, j.how.source, w.sandbox, j.start, j.how.out, false)
	if err != nil {
		return v, err
	}
	if j.ready != nil {
		j.ready(in)
	}
	p, err := runner.NewEvaluation(in)
	if err != nil {
		return v, err
	}
	p.Lock["binary"] = versionText()
	free, err := w.lend(j.start, in.Teacher)
	if err != nil {
		return v, err
	}
	defer free()
	if err := a.check(stop, in, p, w); err != nil {
		return v, err
	}
	if err := a.agree(stop, w, r, p, j.how.yes); err != nil {
		return v, err
	}
	dir, err := runner.NewFolder(j.runs, r, time.Now())
	if err != nil {
		return v, err
	}
	if err := w.borrow(dir); err != nil {
		return v, err
	}
	free()
	s, err := a.life(hard, stop, in, p, w, dir, j.how)
	for _, left := range s.Unreleased {
		fmt.Fprintf(a.err, "trainer: still there: %s\n", left)
	}
	for _, id := range s.Twins {
		fmt.Fprintf(a.err, "trainer: still there: resource %s, which a create of this evaluation seems to have made beside its own; stop it with `trainer resources stop %s`\n", id, id)
	}
	if err != nil {
		return v, err
	}
	v = evaluated{Recipe: r.Path(), BaseModel: r.BaseModel, StandIn: in.StandIn, Step: s.Done, CostUSD: s.CostUSD, Dir: dir}
	if j.start != nil {
		v.Checkpoint = j.start.CheckpointID
	}
	v.Samples = runner.EvalSamples(dir, s.Done)
	v.Metrics, err = measuredIn(dir)
	return v, err
}

// measuredIn are the figures of an evaluation in its folder.
func measuredIn(dir string) (map[string]float64, error) {
	lines, err := runner.ReadMetrics(dir)
	if err != nil {
		return nil, err
	}
	m := map[string]float64{}
	for _, l := range lines {
		for name, v := range l {
			if strings.HasPrefix(name, "eval/") {
				m[name] = v
			}
		}
	}
	return m, nil
}

func (a *app) printEval(v evaluated, asJSON bool) error {
	if asJSON {
		return a.printJSON(v)
	}
	for _, name := range slices.Sorted(maps.Keys(v.Metrics)) {
		fmt.Fprintf(a.out, "%s: %s\n", name, report.Loss(v.Metrics[name]))
	}
	if v.Samples != "" {
		fmt.Fprintf(a.out, "samples: %s\n", v.Samples)
	}
	return nil
}

// copyTo copies a file; to nowhere where the name of the copy is empty.
func copyTo(to, from string) (err error) {
	if to == "" {
		return nil
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
