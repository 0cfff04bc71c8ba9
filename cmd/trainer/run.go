package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"trainer/internal/diag"
	"trainer/internal/journal"
	"trainer/internal/report"
	"trainer/internal/wire"
	"trainer/recipe"
	"trainer/runner"
)

// Flags that several commands share.
var (
	setFlag     = &cli.StringSliceFlag{Name: "set", Usage: "replace a value of the recipe, as `KEY=VALUE`; can be repeated, the last wins"}
	sandboxFlag = &cli.BoolFlag{Name: "sandbox", Usage: "run on the built-in sandbox, for free, with a stand-in for the base model"}
	jsonFlag    = &cli.BoolFlag{Name: "json", Usage: "print JSON on stdout"}
	runsFlag    = &cli.StringFlag{Name: "runs-dir", Usage: "make run folders in `DIR`", Value: "runs"}
)

func (a *app) run() *cli.Command {
	return &cli.Command{
		Name: "run", Usage: "train a recipe", ArgsUsage: "recipe.yaml",
		Description: "Checks the recipe and all it names, provisions, trains, saves, releases. Ctrl-C ends in order: the open step is\nfinished, saved, and everything is released; a second Ctrl-C releases at once.\n\n" +
			"Examples:\n  trainer run recipes/quickstart.yaml\n  trainer run recipe.yaml --sandbox --set train.num_steps=20\n  TOGETHER_API_KEY=… trainer run recipe.yaml",
		Flags: append([]cli.Flag{setFlag, sandboxFlag, runsFlag, jsonFlag, wireFlag, lockedFlag, offlineFlag,
			&cli.BoolFlag{Name: "yes", Usage: "do not ask before a run that costs money"},
			&cli.StringFlag{Name: "attach", Usage: "train on the running resource `ID`, which is not stopped afterwards"}}, outsideFlags...),
		Action: func(c *cli.Context) error {
			path, err := one(c, "a recipe")
			if err != nil {
				return err
			}
			sets := c.StringSlice("set")
			if c.IsSet("attach") {
				if c.String("attach") == "" {
					return &usage{"trainer run: --attach: give the id of a resource; see `trainer resources list`"}
				}
				sets = append(sets, "model_resources_id="+c.String("attach"))
			}
			shape, err := shapeOf(c)
			if err != nil {
				return err
			}
			from, err := a.source(c, path)
			if err != nil {
				return err
			}
			out := a.outside(c)
			defer out.Close()
			return a.runRecipe(c.Context, path, sets, c.String("runs-dir"), c.Bool("sandbox"), manner{source: from, json: c.Bool("json"), yes: c.Bool("yes"), out: out}, shape)
		},
	}
}

// one returns the single argument of a command.
func one(c *cli.Context, what string) (string, error) {
	if c.NArg() != 1 {
		return "", &usage{fmt.Sprintf("%s: give %s, one; got %d arguments", c.Command.HelpName, what, c.NArg())}
	}
	return c.Args().First(), nil
}

func (a *app) runRecipe(ctx context.Context, path string, sets []string, runs string, sandbox bool, how manner, shape wire.Shape) error {
	hard, stop, done := signals(ctx)
	defer done()
	r, err := recipe.Load(path, sets...)
	if err != nil {
		return err
	}
	if err := sayable(r, shape); err != nil {
		return err
	}
	w, err := a.place(r.BaseModel, sandbox)
	if err != nil {
		return err
	}
	w.shape = shape
	start, err := runner.StartOf(r)
	if err != nil {
		return err
	}
	return a.begin(hard, stop, r, start, w, runs, how)
}

// begin runs a recipe from its first life on.
func (a *app) begin(hard, stop context.Context, r *recipe.Recipe, start *runner.Start, w where, runs string, how manner) error {
	in, p, err := prepare(stop, r, how.source, w.sandbox, start, how.out, false)
	if err != nil {
		return err
	}
	free, err := w.lend(start, in.Teacher)
	if err != nil {
		return err
	}
	defer free()
	if err := a.check(stop, in, p, w); err != nil {
		return err
	}
	if err := a.agree(stop, w, r, p, how.yes); err != nil {
		return err
	}
	dir, err := runner.NewFolder(runs, r, time.Now())
	if err != nil {
		return err
	}
	if err := w.borrow(dir); err != nil {
		return err
	}
	free()
	for _, h := range hints(in) {
		fmt.Fprintln(a.err, h)
	}
	return a.live(hard, stop, in, p, w, dir, how)
}

// prepare opens what the recipe names, holds its rewards to their tests, tries a loss that is a program, and plans. What out does
// not let ask outside is refused, or with lenient left unchecked.
func prepare(ctx context.Context, r *recipe.Recipe, from source, sandbox bool, start *runner.Start, out *outside, lenient bool) (*runner.Inputs, *runner.Plan, error) {
	in, err := opened(ctx, r, from, sandbox, start, out, lenient)
	if err != nil {
		return nil, nil, err
	}
	if err := in.TryLoss(ctx); err != nil {
		return nil, nil, err
	}
	p, err := runner.NewPlan(in)
	if err != nil {
		return nil, nil, err
	}
	p.Lock["binary"] = versionText()
	if from.lock != nil {
		err = from.lock.Hold(from.path, in, p)
	}
	return in, p, err
}

// opened opens what the recipe names, and holds its rewards to their tests.
func opened(ctx context.Context, r *recipe.Recipe, from source, sandbox bool, start *runner.Start, out *outside, lenient bool) (*runner.Inputs, error) {
	in, err := runner.Open(ctx, r, from.hub, sandbox)
	var problems diag.List
	if err != nil && !errors.As(err, &problems) {
		return nil, err
	}
	graders, err := runner.OpenGraders(ctx, r, tokensOf(in), out, lenient)
	var more diag.List
	if err != nil && !errors.As(err, &more) {
		return nil, err
	}
	unchecked, err := runner.OpenLoss(r, out, lenient)
	var ofLoss diag.List
	if err != nil && !errors.As(err, &ofLoss) {
		return nil, err
	}
	if err := slices.Concat(problems, more, ofLoss).Err(); err != nil {
		return nil, err
	}
	if unchecked != "" {
		graders.Unchecked = append(graders.Unchecked, unchecked)
	}
	in.Start, in.Graders = start, graders
	if from.past != nil {
		in.Teacher, err = from.past.Teacher()
	} else {
		in.Teacher, err = runner.TeacherOf(r)
	}
	if err != nil {
		return nil, err
	}
	if err := in.OpenEnv(ctx, out, lenient); err != nil {
		return nil, err
	}
	if err := in.CheckTargets(); err != nil {
		return nil, err
	}
	return in, fitsStandIn(ctx, in)
}

// tokensOf counts tokens as the recipe's tokenizer does; nil where there is none.
func tokensOf(in *runner.Inputs) func(string) []int32 {
	if in == nil || in.Tokenizer == nil {
		return nil
	}
	return func(s string) []int32 {
		ids, _ := in.Tokenizer.Encode(s)
		return ids
	}
}

// check asks the service, for free, what it would refuse, before a run folder is made. It completes the plan's cost.
func (a *app) check(ctx context.Context, in *runner.Inputs, p *runner.Plan, w where) error {
	l, err := a.connect(w, w.lent)
	if err != nil {
		return err
	}
	defer func() { _ = l.close() }()
	return in.Ask(ctx, p, l.client, l.client)
}

// live runs a life in dir and prints how it ended.
func (a *app) live(hard, stop context.Context, in *runner.Inputs, p *runner.Plan, w where, dir string, how manner) error {
	began := time.Now()
	s, err := a.life(hard, stop, in, p, w, dir, how)
	if !how.json {
		a.conclude(s, err, time.Since(began), w.sandbox)
	}
	return err
}

// life runs a life in dir.
func (a *app) life(hard, stop context.Context, in *runner.Inputs, p *runner.Plan, w where, dir string, how manner) (s runner.Summary, err error) {
	if err := journal.Free(dir); err != nil { // before the sandbox, whose own lock would speak of another folder
		return s, err
	}
	w.remember(p)
	store := ""
	if w.embedded {
		store = sandboxDir(dir)
		if err := os.MkdirAll(store, 0o700); err != nil {
			return s, err
		}
	}
	w.patience = in.Recipe.InactiveTimeout / 2
	l, err := a.connect(w, store)
	if err != nil {
		return s, err
	}
	world := a.world(w, l, dir, how.json)
	world.TakeOver, world.Restart, world.Salvage, world.SkipStep, world.Resolved = how.takeOver, how.restart, how.salvage, how.skipStep, how.resolved
	s, err = runner.Run(hard, stop, in, p, world)
	err = errors.Join(err, l.close())
	if s.Idle {
		err = errors.Join(err, report.Restore(dir))
	}
	return s, err
}
