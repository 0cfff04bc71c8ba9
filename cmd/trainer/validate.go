package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"trainer/internal/diag"
	"trainer/internal/report"
	"trainer/loss"
	"trainer/recipe"
	"trainer/runner"
)

func (a *app) validate() *cli.Command {
	return &cli.Command{
		Name: "validate", Usage: "check recipes and all they name; costs nothing", ArgsUsage: "recipe.yaml…",
		Description: "Checks the file, every row of the data, the tests of the rewards, the plan, and the limits of a sandbox model. It is\noffline: what the recipe names on the hub is taken from the cache, and what is not there is named as not checked. With --online it\nis fetched, and what the service would refuse is checked too.\n\n" +
			"Examples:\n  trainer validate recipe.yaml\n  trainer validate recipes/*.yaml --sandbox\n  TOGETHER_API_KEY=… trainer validate recipe.yaml --online\n  trainer validate recipes/custom-loss/loss.yaml --allow-exec --check-loss",
		Flags: append([]cli.Flag{setFlag, sandboxFlag, jsonFlag, wireFlag, lockedFlag, &cli.BoolFlag{Name: "online", Usage: "fetch what is not in the cache, and ask the service too; free"},
			&cli.BoolFlag{Name: "check-loss", Usage: "hold the gradient of a command loss to finite differences of its value; needs --allow-exec"}}, outsideFlags...),
		Action: func(c *cli.Context) error {
			if c.NArg() == 0 {
				return &usage{"trainer validate: give a recipe"}
			}
			var all diag.List
			for _, path := range recipes(c) {
				v, err := a.validateOne(c, path)
				if c.Bool("json") {
					if jerr := a.printLine(v); jerr != nil {
						return jerr
					}
				}
				var list diag.List
				switch {
				case errors.As(err, &list):
					all = append(all, list...)
				case err != nil:
					return fmt.Errorf("%s: %w", path, err)
				case !c.Bool("json"):
					fmt.Fprintln(a.out, v.text())
				}
			}
			return all.Err()
		},
	}
}

// verdict is what validate found of one recipe.
type verdict struct {
	Recipe    string   `json:"recipe"`
	OK        bool     `json:"ok"`
	Problems  []string `json:"problems,omitempty"`
	Steps     int      `json:"steps,omitempty"`
	Rows      int      `json:"rows,omitempty"`
	Skipped   int      `json:"skipped_rows,omitempty"`
	Identical []string `json:"identical_pairs,omitempty"` // where they stand, the first 1000
	Dropped   int      `json:"dropped_rows,omitempty"`
	Cut       int      `json:"cut_rows,omitempty"`
	Held      int      `json:"validation_rows,omitempty"`
	Tokens    int64    `json:"tokens,omitempty"`
	Trained   int64    `json:"trained_tokens,omitempty"`
	Sampled   int64    `json:"max_sampled_tokens,omitempty"`
	Unchecked []string `json:"unchecked,omitempty"`
	Notes     []string `json:"notes,omitempty"`
}

func (v verdict) text() string {
	var b strings.Builder
	held := ""
	if v.Held > 0 {
		held = fmt.Sprintf(" and %s held out", report.Count(v.Held))
	}
	if v.Steps == 0 {
		fmt.Fprintf(&b, "%s: ok as far as it can be checked", v.Recipe)
	} else if v.Sampled > 0 {
		fmt.Fprintf(&b, "%s: ok: %s prompts%s, %s steps, at most %s tokens sampled", v.Recipe, report.Count(v.Rows), held, report.Count(v.Steps), report.Count(v.Sampled))
	} else {
		fmt.Fprintf(&b, "%s: ok: %s rows%s, %s steps, %s tokens, %s of them trained", v.Recipe, report.Count(v.Rows), held, report.Count(v.Steps), report.Count(v.Tokens), report.Count(v.Trained))
	}
	for _, n := range v.Notes {
		fmt.Fprintf(&b, "\n  %s", n)
	}
	for _, u := range v.Unchecked {
		fmt.Fprintf(&b, "\n  not checked: %s", u)
	}
	return b.String()
}

func (a *app) validateOne(c *cli.Context, path string) (verdict, error) {
	v := verdict{Recipe: path}
	err := a.examine(c, path, &v)
	var list diag.List
	if errors.As(err, &list) {
		for _, p := range list.Sorted() {
			v.Problems = append(v.Problems, p.String())
		}
	} else if err != nil {
		v.Problems = []string{err.Error()}
	}
	v.OK = err == nil
	return v, err
}

func (a *app) examine(c *cli.Context, path string, v *verdict) error {
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
	own := strings.HasPrefix(r.BaseModel, runner.SandboxPrefix)
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
	in, p, err := prepare(c.Context, r, from, own || c.Bool("sandbox"), start, out, !c.Bool("check-loss"))
	var away *runner.Unfetched
	if errors.As(err, &away) {
		v.Unchecked = append(away.Missing, "the plan, which needs them")
		if c.Bool("check-loss") {
			v.Unchecked = append(v.Unchecked, "the gradient of the loss, which needs rows")
		}
		return nil
	}
	if err != nil {
		return err
	}
	v.Steps, v.Rows, v.Held, v.Tokens, v.Trained = len(p.Rates), p.Rows, p.Held, p.Tokens, p.Trained
	v.Sampled = p.Sampled
	v.Skipped, v.Dropped, v.Cut = in.Data.SkippedRows, in.Data.Dropped, in.Data.Cut
	for _, p := range in.Data.Identical {
		v.Identical = append(v.Identical, p.Pos.String())
	}
	v.Notes, v.Unchecked = notes(in), in.Graders.Unchecked
	if c.Bool("check-loss") {
		s, err := in.CheckLoss(c.Context)
		if err != nil {
			return err
		}
		v.Notes = append(v.Notes, slopes(s)...)
	}
	if !own && !c.Bool("sandbox") && !c.Bool("online") {
		v.Unchecked = append(v.Unchecked, "what the service allows and asks for "+r.BaseModel+" (--online)")
		if start != nil {
			v.Unchecked = append(v.Unchecked, "whether the service has checkpoint "+start.CheckpointID+" (--online)")
		}
		if in.Teacher != nil {
			v.Unchecked = append(v.Unchecked, "whether the service has the teacher's checkpoint "+in.Teacher.CheckpointID+" (--online)")
		}
		return nil
	}
	w, err := a.place(r.BaseModel, c.Bool("sandbox"))
	if err != nil {
		return err
	}
	free, err := w.lend(start, in.Teacher)
	if err != nil {
		return err
	}
	defer free()
	return a.check(c.Context, in, p, w)
}

// notes are what was decided on the rows: nothing is left out in silence.
func notes(in *runner.Inputs) []string {
	var out []string
	for _, s := range in.Train.Sources() {
		out = append(out, fmt.Sprintf("%s: %s rows as %s, told %s", s.Name, report.Count(s.Rows), s.Format, s.Told))
	}
	out = append(out, in.LeftOut()...)
	if leaks := in.Leaks(); leaks != "" {
		out = append(out, leaks)
	}
	out = append(out, standIn(in)...)
	if in.Start != nil {
		out = append(out, "begins from "+in.Start.String())
	}
	if in.Teacher != nil {
		out = append(out, "the teacher has "+in.Teacher.String())
	}
	return append(append(out, passes(in)...), hints(in)...)
}

// passes are the forward passes that a loss which is computed here asks for beside its steps.
func passes(in *runner.Inputs) []string {
	if in.Recipe.Loop() != loss.Preference {
		return nil
	}
	who := in.Recipe.Loss.Type
	if _, ok := in.Recipe.Loss.Params.(*loss.Command); ok {
		who = "a loss by a program"
	}
	text := who + " is computed here: each step is first scored, a forward pass over its tokens"
	if l, ok := in.Recipe.Loss.Params.(loss.Referenced); ok && l.UsesReference() {
		text += "; the reference is one over all rows, before the first step, unless this machine has it"
	}
	return []string{text}
}

// slopes are what a check of the gradient has found.
func slopes(s loss.Slopes) []string {
	out := []string{fmt.Sprintf("the gradient of the loss is that of its value: worst relative error %.1e at %d positions, at most %.0e is right", s.Worst, s.Positions, loss.Tolerance)}
	if s.Same {
		return append(out, "asked twice, the loss gives the same answer to the bit")
	}
	return append(out, "asked twice, the loss gives two answers: a run that is killed and resumed ends with other weights than one that is not")
}

// standIn says what the sandbox has in place of the base model and, where it cannot be had, of its tokenizer.
func standIn(in *runner.Inputs) []string {
	if !in.StandIn {
		return nil
	}
	text := "sandbox: a small model stands in for " + in.Recipe.BaseModel
	switch {
	case in.Instead != "":
		text += ", and the byte vocabulary for its tokenizer: " + in.Instead
	case in.Tokenizer != nil:
		text += ", under the tokenizer " + in.Tokenizer.Name()
	}
	return []string{text}
}

// hints are what a newcomer would wonder about later: with the default rate, which suits real models, the sandbox's tiny
// one hardly moves in a short run.
func hints(in *runner.Inputs) []string {
	if !in.Sandbox || in.Recipe.Given("optimizer.learning_rate") || in.Recipe.LoRA == nil {
		return nil
	}
	return []string{fmt.Sprintf("hint: optimizer.learning_rate is left at %s, the default for real models; on the sandbox the loss falls faster with --set optimizer.learning_rate=3e-3",
		report.Rate(in.Recipe.Optimizer.LearningRate))}
}
