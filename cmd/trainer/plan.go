package main

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"trainer/internal/report"
	"trainer/recipe"
	"trainer/runner"
)

func (a *app) plan() *cli.Command {
	return &cli.Command{
		Name: "plan", Usage: "say what a run would do and cost", ArgsUsage: "recipe.yaml",
		Description: "Prints steps, rows, tokens, lengths, the learning rate of every step, and what the service would refuse or charge.\nWithout a key the service is not asked, and the plan says so. What the recipe names on the hub is taken from the cache; --online fetches it.\n\n" +
			"Examples:\n  trainer plan recipes/quickstart.yaml\n  trainer plan recipe.yaml --sandbox --json",
		Flags: append([]cli.Flag{setFlag, sandboxFlag, jsonFlag, wireFlag, lockedFlag, onlineFlag}, outsideFlags...),
		Action: func(c *cli.Context) error {
			path, err := one(c, "a recipe")
			if err != nil {
				return err
			}
			r, err := recipe.Load(path, c.StringSlice("set")...)
			if err != nil {
				return err
			}
			shape, err := shapeOf(c)
			if err == nil {
				err = sayable(r, shape)
			}
			if err != nil {
				return err
			}
			w, err := a.place(r.BaseModel, c.Bool("sandbox"))
			offline := errors.Is(err, errNoKey)
			if err != nil && !offline {
				return err
			}
			start, err := runner.StartOf(r)
			if err != nil {
				return err
			}
			from, err := a.source(c, path)
			if err != nil {
				return err
			}
			out := a.outside(c)
			defer out.Close()
			in, p, err := prepare(c.Context, r, from, w.sandbox, start, out, true)
			if err != nil {
				return err
			}
			free, err := w.lend(start, in.Teacher)
			if err != nil {
				return err
			}
			defer free()
			if !offline {
				if err := a.check(c.Context, in, p, w); err != nil {
					return err
				}
			}
			return a.printPlan(r, in, p, offline, c.Bool("json"))
		},
	}
}

func (a *app) printPlan(r *recipe.Recipe, in *runner.Inputs, p *runner.Plan, offline, asJSON bool) error {
	if asJSON {
		return a.printJSON(struct {
			Recipe    string       `json:"recipe"`
			BaseModel string       `json:"base_model"`
			StandIn   bool         `json:"stand_in"`
			Asked     bool         `json:"asked_service"`
			Plan      *runner.Plan `json:"plan"`
		}{r.Path(), r.BaseModel, in.StandIn, !offline, p})
	}
	fmt.Fprintf(a.out, "%s: %s, %s loop, %s\n", r.Path(), r.BaseModel, r.Loop(), weights(r))
	for _, n := range notes(in) {
		fmt.Fprintln(a.out, n)
	}
	fmt.Fprintln(a.out)
	if err := report.Plan(a.out, p, a.width); err != nil {
		return err
	}
	fmt.Fprintln(a.out)
	for _, line := range saves(r.Checkpoint, len(p.Rates)) {
		fmt.Fprintln(a.out, line)
	}
	for _, u := range in.Graders.Unchecked {
		fmt.Fprintln(a.out, "\nnot checked: "+u)
	}
	if offline {
		fmt.Fprintln(a.out, "\nnot asked: the service's limits and price, since TOGETHER_API_KEY is not set")
	}
	return nil
}

func weights(r *recipe.Recipe) string {
	if r.LoRA == nil {
		return "full weights"
	}
	return fmt.Sprintf("LoRA rank %d", r.LoRA.Rank)
}

// printJSON prints v as one indented value.
func (a *app) printJSON(v any) error { return a.encode(v, "  ") }

// printLine prints v on one line: commands that take several recipes print one a recipe.
func (a *app) printLine(v any) error { return a.encode(v, "") }

func (a *app) encode(v any, indent string) error {
	e := json.NewEncoder(a.out)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	return e.Encode(v)
}
