package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"trainer/internal/hub"
	"trainer/recipe"
	"trainer/runner"
)

var lockedFlag = &cli.BoolFlag{Name: "locked", Usage: "hold all inputs to the lock beside the recipe, as trainer lock wrote it"}

// source is where the inputs of a command come from, and what they are held to.
type source struct {
	hub  *hub.Hub
	lock runner.Lock // nil: to nothing
	path string      // of the lock
	past runner.Lock // of the run that goes on, whose checkpoints are named there; nil: by the recipe
}

// source is of the recipe at path. Under --locked the hub's revisions are the commits of the lock.
func (a *app) source(c *cli.Context, path string) (source, error) {
	from := source{hub: a.hub(c)}
	if !c.Bool(lockedFlag.Name) {
		return from, nil
	}
	var err error
	from.path = runner.LockPath(path)
	if from.lock, err = runner.ReadLockFile(from.path); err != nil {
		return from, &usage{fmt.Sprintf("%s: --locked: %v", c.Command.HelpName, err)}
	}
	from.hub.Pins = from.lock.Pins()
	return from, nil
}

// recipes are the arguments, less the locks that a pattern such as *.yaml takes along.
func recipes(c *cli.Context) []string {
	if c.NArg() == 1 {
		return c.Args().Slice()
	}
	return slices.DeleteFunc(c.Args().Slice(), runner.IsLockFile)
}

func (a *app) lock() *cli.Command {
	return &cli.Command{
		Name: "lock", Usage: "write down what decides a run: data, tokenizer, template, seeds, first rows", ArgsUsage: "recipe.yaml",
		Description: "Opens all that the recipe names, fetches what is not here, and writes the hashes and the commits of it into\nrecipe.lock.yaml beside the recipe. `trainer run --locked` takes the same commits and refuses, with exit code 6, what differs.\n\n" +
			"Examples:\n  trainer lock recipe.yaml\n  trainer run recipe.yaml --locked\n  trainer lock recipe.yaml --out ci/recipe.lock.yaml && trainer diff ci/recipe.lock.yaml recipe.yaml",
		Flags: []cli.Flag{setFlag, sandboxFlag, jsonFlag, offlineFlag, &cli.StringFlag{Name: "out", Usage: "write to `FILE`"}},
		Action: func(c *cli.Context) error {
			path, err := one(c, "a recipe")
			if err != nil {
				return err
			}
			l, err := a.lockOf(c, path)
			if err != nil {
				return err
			}
			out := or(c.String("out"), runner.LockPath(path))
			if err := l.Save(out); err != nil {
				return err
			}
			if c.Bool("json") {
				return a.printJSON(l)
			}
			fmt.Fprintf(a.out, "%s: %d entries\n", out, len(l))
			inputs := l.Inputs()
			for _, name := range slices.Sorted(maps.Keys(inputs)) {
				fmt.Fprintf(a.out, "  %s: %s\n", name, inputs[name])
			}
			return nil
		},
	}
}

// lockOf opens a recipe's inputs and locks them.
func (a *app) lockOf(c *cli.Context, path string) (runner.Lock, error) {
	r, err := recipe.Load(path, c.StringSlice("set")...)
	if err != nil {
		return nil, err
	}
	start, err := runner.StartOf(r)
	if err != nil {
		return nil, err
	}
	in, p, err := prepare(c.Context, r, source{hub: a.hub(c)}, onSandbox(r, c.Bool("sandbox")), start, &outside{}, true)
	if err != nil {
		return nil, err
	}
	for _, text := range standIn(in) {
		fmt.Fprintln(a.err, text)
	}
	return in.LockFile(p), nil
}

// onSandbox says whether a recipe is of the sandbox, asked for or by the name of its model.
func onSandbox(r *recipe.Recipe, asked bool) bool {
	return asked || strings.HasPrefix(r.BaseModel, runner.SandboxPrefix)
}
