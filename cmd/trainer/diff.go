package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"trainer/internal/diag"
	"trainer/recipe"
	"trainer/runner"
)

func (a *app) diff() *cli.Command {
	return &cli.Command{
		Name: "diff", Usage: "say what differs between two locks, runs or recipes", ArgsUsage: "A B",
		Description: "Compares the values of the recipes, the hashes of data, tokenizer and template, and, where both datasets are at hand, names\nthe first row that differs. A and B are recipes, locks or run folders, in any mixture.\n\n" +
			"The exit code is 0 where nothing differs, 1 where something does, and 2 where that cannot be told: a side cannot be read, or nothing\n" +
			"differs but not all could be compared.\n\n" +
			"Examples:\n  trainer diff recipe.lock.yaml recipe.yaml\n  trainer diff runs/a-20260101-120000 runs/b-20260102-120000 --json",
		Flags: []cli.Flag{jsonFlag, onlineFlag},
		Action: func(c *cli.Context) error {
			if c.NArg() != 2 {
				return &usage{fmt.Sprintf("%s: give two locks, runs or recipes; got %d arguments", c.Command.HelpName, c.NArg())}
			}
			d, err := a.differences(c, c.Args().Get(0), c.Args().Get(1))
			if err != nil {
				return &untold{err}
			}
			if c.Bool("json") {
				err = a.printJSON(d)
			} else {
				_, err = a.out.Write([]byte(d.text()))
			}
			if err != nil {
				return &untold{err}
			}
			return d.verdict()
		},
	}
}

// untold is of a comparison that cannot say whether its sides differ: for a script that is another answer than that they do.
type untold struct{ err error }

func (u *untold) Error() string { return u.err.Error() }
func (u *untold) Unwrap() error { return u.err }

func (a *app) differences(c *cli.Context, one, other string) (difference, error) {
	x, err := a.side(c, one)
	if err != nil {
		return difference{}, err
	}
	y, err := a.side(c, other)
	if err != nil {
		return difference{}, err
	}
	return compare(x, y)
}

// side is one of the two that are compared.
type side struct {
	name   string
	recipe *recipe.Recipe // nil of a lock
	lock   runner.Lock    // nil where the inputs of a recipe cannot be opened
	in     *runner.Inputs // nil where the rows are not at hand
	why    string         // they are not
}

func (a *app) side(c *cli.Context, path string) (side, error) {
	s := side{name: path}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return s, &usage{fmt.Sprintf("%s: %s: is neither a recipe, nor a lock, nor a run folder: it is not there", c.Command.HelpName, path)}
	case info.IsDir():
		return a.runSide(c, s)
	case runner.IsLockFile(path) || filepath.Base(path) == "lock.yaml":
		s.why = "a lock has no rows"
		if s.lock, err = runner.ReadLockFile(path); err != nil {
			return s, &usage{err.Error()}
		}
		return s, nil
	}
	if s.recipe, err = recipe.Load(path); err != nil {
		return s, err
	}
	err = s.open(c.Context, source{hub: a.hub(c)}, onSandbox(s.recipe, false))
	return s, err
}

// runSide is a run folder: its recipe and its lock, and the rows where they are still those of the lock.
func (a *app) runSide(c *cli.Context, s side) (side, error) {
	var err error
	if s.recipe, err = reload(s.name, nil); err != nil {
		return s, err
	}
	was, err := runner.ReadLock(s.name)
	if err != nil {
		return s, err
	}
	if was == nil {
		return s, &usage{s.name + ": the run has no lock yet"}
	}
	from := source{hub: a.hub(c)}
	from.hub.Pins = was.Pins()
	if err := s.open(c.Context, from, strings.HasPrefix(was["backend"], "sandbox")); err != nil {
		return s, err
	}
	if s.in != nil && (s.lock["dataset.train"] != was["dataset.train"] || s.lock["first_rows"] != was["first_rows"]) {
		s.in, s.why = nil, "its rows are no longer those that it trained on"
	}
	s.lock = was
	return s, nil
}

// open gets the rows and the lock of a side that has a recipe. Inputs that are at fault are a reason not to compare them, and no
// error.
func (s *side) open(ctx context.Context, from source, sandbox bool) error {
	start, err := runner.StartOf(s.recipe)
	var in *runner.Inputs
	var p *runner.Plan
	if err == nil {
		in, p, err = prepare(ctx, s.recipe, from, sandbox, start, &outside{}, true)
	}
	var list diag.List
	var away *runner.Unfetched
	switch {
	case errors.As(err, &list), errors.As(err, &away):
		first, _, more := strings.Cut(err.Error(), "\n")
		if more {
			first += " …"
		}
		s.why = first
		return nil
	case err != nil:
		return err
	}
	s.in, s.lock = in, p.Lock
	return nil
}

// difference is what two sides do not have alike.
type difference struct {
	A           string                `json:"a"`
	B           string                `json:"b"`
	Same        bool                  `json:"same"` // as far as it was compared
	Recipe      []runner.Difference   `json:"recipe"`
	Inputs      []runner.Difference   `json:"inputs"`
	FirstRow    *runner.RowDifference `json:"first_row"`
	NotCompared []string              `json:"not_compared"`
}

func compare(x, y side) (difference, error) {
	d := difference{A: x.name, B: y.name, Recipe: []runner.Difference{}, Inputs: []runner.Difference{}, NotCompared: []string{}}
	d.values(x, y)
	if x.lock == nil || y.lock == nil {
		d.NotCompared = append(d.NotCompared, why("the inputs", x, y)...)
	} else {
		for _, e := range x.lock.Inputs().Compare(y.lock.Inputs()) {
			if e.Name != "recipe" {
				d.Inputs = append(d.Inputs, e)
			}
		}
	}
	rows := slices.ContainsFunc(d.Inputs, func(e runner.Difference) bool {
		return strings.HasPrefix(e.Name, "dataset.train") || e.Name == "first_rows" || e.Name == "tokenizer" || e.Name == "template"
	})
	var err error
	switch {
	case rows && x.in != nil && y.in != nil:
		d.FirstRow, err = runner.FirstRow(x.in, y.in)
	case rows:
		d.NotCompared = append(d.NotCompared, why("row by row", x, y)...)
	}
	d.Same = len(d.Recipe)+len(d.Inputs) == 0 && d.FirstRow == nil
	return d, err
}

// values compares the recipes: every key where both are at hand, else what the locks have of them.
func (d *difference) values(x, y side) {
	if x.recipe != nil && y.recipe != nil {
		for _, c := range recipe.Diff(x.recipe, y.recipe) {
			d.Recipe = append(d.Recipe, runner.Difference{Name: c.Key, A: c.A, B: c.B})
		}
		return
	}
	a, b := x.values(), y.values()
	for _, e := range a.Compare(b) {
		e.Name = strings.TrimPrefix(e.Name, "recipe.")
		d.Recipe = append(d.Recipe, e)
	}
}

// values are what a lock says of the recipe: its values where it has them, and their hash.
func (s side) values() runner.Lock {
	if s.recipe == nil {
		return s.lock.Recipe()
	}
	return runner.RecipeLock(s.recipe)
}

func why(what string, sides ...side) (out []string) {
	for _, s := range sides {
		if s.why != "" {
			out = append(out, fmt.Sprintf("%s: %s: %s", what, s.name, s.why))
		}
	}
	return out
}

// verdict is nil where nothing differs, for the exit code.
func (d difference) verdict() error {
	switch {
	case !d.Same:
		return fmt.Errorf("%s and %s differ", d.A, d.B)
	case len(d.NotCompared) > 0:
		return &untold{fmt.Errorf("%s and %s: nothing differs, but not all could be compared: %s", d.A, d.B, strings.Join(d.NotCompared, "; "))}
	}
	return nil
}

func (d difference) text() string {
	var b strings.Builder
	if d.Same {
		fmt.Fprintf(&b, "%s and %s: no difference\n", d.A, d.B)
	} else {
		fmt.Fprintf(&b, "A %s\nB %s\n", d.A, d.B)
	}
	for _, part := range []struct {
		name string
		all  []runner.Difference
	}{{"recipe", d.Recipe}, {"inputs", d.Inputs}} {
		if len(part.all) > 0 {
			fmt.Fprintf(&b, "\n%s\n", part.name)
		}
		for _, e := range part.all {
			fmt.Fprintf(&b, "  %s\n", e.Text("A", "B"))
		}
	}
	if r := d.FirstRow; r != nil {
		fmt.Fprintf(&b, "\nfirst row that differs\n  row %d: A %s, B %s: %s\n", r.Row, or(r.A, "none"), or(r.B, "none"), r.What)
	}
	for _, n := range d.NotCompared {
		fmt.Fprintf(&b, "\nnot compared %s\n", n)
	}
	return b.String()
}
