package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"trainer/internal/chat"
	"trainer/internal/dataset"
	"trainer/internal/diag"
	"trainer/internal/report"
	"trainer/recipe"
	"trainer/runner"
)

// compared is what came of reading the same rows in two ways.
type compared struct {
	Rows int     `json:"rows"` // compared, up to the first difference
	Same bool    `json:"same"`
	Diff *parted `json:"difference,omitempty"`
}

// parted is the first token at which two ways of reading a row differ.
type parted struct {
	At      string            `json:"at"`                // of the row
	Example int               `json:"example,omitempty"` // of the row, from 1; 0 where that is not it
	Token   int               `json:"token,omitempty"`   // of the example, from 1
	What    string            `json:"what"`
	Sides   []report.Excerpts `json:"sides,omitempty"`
}

// around is how many tokens are shown before the difference, and from it on.
const around = 12

// against compares rows with what another template, tokenizer or recipe makes of them.
func (a *app) against(c *cli.Context, in *runner.Inputs, set *dataset.Set, first int) error {
	if err := notWith(c, "shows rows, and --against compares them", "html"); err != nil {
		return err
	}
	name := c.String("against")
	other, err := a.otherwise(c, in.Recipe.Path(), name)
	if err != nil {
		return ofAgainst(err, name)
	}
	theirs, err := setOf(c, other)
	if err != nil {
		return err
	}
	n := set.Len()
	if c.IsSet("limit") {
		n = min(n, first+c.Int("limit"))
	}
	sides := [2]reading{{filepath.Base(in.Recipe.Path()), in, set}, {name, other, theirs}}
	out := compared{}
	for i := first; i < n && out.Diff == nil; i++ {
		if out.Diff, err = differ(sides, i); err != nil {
			return err
		}
		out.Rows++
	}
	if out.Diff == nil && !c.IsSet("limit") && theirs.Len() != n {
		out.Diff = &parted{At: set.At(n - 1).String(), What: fmt.Sprintf("it is the last of %d rows, and %s has %d", n, name, theirs.Len())}
	}
	out.Same = out.Diff == nil
	return a.printCompared(c, out, name)
}

func (a *app) printCompared(c *cli.Context, out compared, name string) error {
	switch {
	case c.Bool("json"):
		if err := a.printJSON(out); err != nil {
			return err
		}
	case out.Same:
		fmt.Fprintf(a.out, "the same, token for token and weight for weight: %s rows\n", report.Count(out.Rows))
	default:
		if err := report.Difference(a.out, out.Diff.At, out.Diff.Example, out.Diff.Token, out.Diff.What, out.Diff.Sides); err != nil {
			return err
		}
	}
	if !out.Same {
		return fmt.Errorf("%s: %s gives something else", out.Diff.At, name)
	}
	return nil
}

// otherwise opens the rows in the other way that name says: as another recipe has them, or with another template or tokenizer.
func (a *app) otherwise(c *cli.Context, path, name string) (*runner.Inputs, error) {
	switch ext := filepath.Ext(name); {
	case ext == ".yaml" || ext == ".yml":
		return a.openData(c, name)
	case name == "auto" || name == "none" || recipe.Chat{Template: name}.IsFile():
		return a.openData(c, path, "chat.template="+name)
	}
	return a.openData(c, path, "tokenizer="+name)
}

// ofAgainst says of faults that the recipe by itself does not have where they come from.
func ofAgainst(err error, name string) error {
	var faults diag.List
	if !errors.As(err, &faults) {
		return fmt.Errorf("--against %s: %w", name, err)
	}
	told := slices.Clone(faults)
	for i := range told {
		if strings.HasPrefix(told[i].Pos.File, "--set ") { // of ours, not of the user's: those have been taken once
			told[i].Pos = diag.Pos{File: "--against"}
		}
	}
	told.Add(diag.Pos{}, "", "so it is with --against %s; the recipe by itself has no fault", name)
	return told
}

// reading is one of two ways of reading rows.
type reading struct {
	name string
	in   *runner.Inputs
	set  *dataset.Set
}

// differ finds the first token of row i at which the sides differ; nil where they do not.
func differ(sides [2]reading, i int) (*parted, error) {
	at := sides[0].set.At(i)
	if n := sides[1].set.Len(); i >= n {
		return &parted{At: at.String(), What: fmt.Sprintf("%s has %d rows, and this is row %d", sides[1].name, n, i+1)}, nil
	}
	if sides[1].set.At(i).Line != at.Line {
		return &parted{At: at.String(), What: fmt.Sprintf("row %d of %s is another one: the two do not have the same rows", i+1, sides[1].name)}, nil
	}
	var exs [2][]chat.Example
	for k, s := range sides {
		var err error
		if exs[k], err = s.set.Examples(i); err != nil {
			return nil, err
		}
	}
	for k := range min(len(exs[0]), len(exs[1])) {
		token, what := parting(exs[0][k], exs[1][k])
		if what == "" {
			continue
		}
		d := &parted{At: at.String(), Token: token + 1, What: what}
		if len(exs[0]) > 1 || len(exs[1]) > 1 {
			d.Example = k + 1
		}
		for n, s := range sides {
			d.Sides = append(d.Sides, excerpts(s, exs[n][k], token))
		}
		return d, nil
	}
	if len(exs[0]) != len(exs[1]) {
		return &parted{At: at.String(), What: fmt.Sprintf("%d examples, and %d", len(exs[0]), len(exs[1]))}, nil
	}
	return nil, nil
}

// parting is the first token that differs, and in what; "" where none does.
func parting(x, y chat.Example) (token int, what string) {
	for i := range min(len(x.IDs), len(y.IDs)) {
		switch {
		case x.IDs[i] != y.IDs[i]:
			return i, "ids differ"
		case x.Weights[i] != y.Weights[i]:
			return i, "weights differ"
		}
	}
	if len(x.IDs) != len(y.IDs) {
		return min(len(x.IDs), len(y.IDs)), "one ends"
	}
	return 0, ""
}

// excerpts are the tokens around the one at which a side parts from the other.
func excerpts(s reading, ex chat.Example, token int) report.Excerpts {
	pieces := shownPieces(s.in.Tokenizer, ex)
	n := 0
	k := slices.IndexFunc(pieces, func(p report.ShownPiece) bool { n += len(p.IDs); return n > token })
	if k < 0 {
		k = len(pieces)
	}
	return report.Excerpts{Name: s.name, Before: pieces[max(0, k-around):k], From: pieces[k:min(len(pieces), k+around)], Cut: k > around}
}
