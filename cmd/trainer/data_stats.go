package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"

	"trainer/internal/chat"
	"trainer/internal/dataset"
	"trainer/internal/report"
	"trainer/recipe"
	"trainer/runner"
)

func (a *app) dataStats() *cli.Command {
	return &cli.Command{
		Name: "stats", Usage: "count rows, tokens and roles, and find what is doubled or bad", ArgsUsage: "recipe.yaml",
		Description: "Counts, a source and a set at a time: rows, how their format was told, tokens, trained tokens, lengths, tokens by role, rows that\n" +
			"are bad, overlong or train nothing, with places, and rows that render to the same tokens as another: within train, and between\n" +
			"train and validation, where they make eval/loss look better than it is. Bad and overlong rows end nothing here: they are counted.\n\n" +
			"Examples:\n  trainer data stats recipes/quickstart.yaml\n  trainer data stats recipe.yaml --json",
		Flags: []cli.Flag{setFlag, sandboxFlag, jsonFlag, onlineFlag},
		Action: func(c *cli.Context) error {
			path, err := one(c, "a recipe")
			if err != nil {
				return err
			}
			stats, err := a.gather(c, path)
			if err != nil {
				return err
			}
			if c.Bool("json") {
				return a.printJSON(stats)
			}
			return report.Stats(a.out, stats, a.width)
		},
	}
}

// shownBad bounds the bad rows that are listed.
const shownBad = 20

// gather opens the rows so that none of them ends it, and counts.
func (a *app) gather(c *cli.Context, path string) (report.RowStats, error) {
	asked, err := recipe.Load(path, c.StringSlice("set")...)
	if err != nil {
		return report.RowStats{}, err
	}
	sets := []string{"dataset.on_bad_row=skip"}
	if asked.Dataset.Overlong == "error" {
		sets = append(sets, "dataset.overlong=drop")
	}
	in, err := a.openData(c, path, sets...)
	if err != nil {
		return report.RowStats{}, err
	}
	out := report.RowStats{Recipe: path, MaxLength: asked.Dataset.MaxLength, Overlong: asked.Dataset.Overlong, OnBadRow: asked.Dataset.OnBadRow}
	for _, s := range in.Data.Sources() {
		out.Sources = append(out.Sources, report.SourceStats{Name: s.Name, Format: s.Format, Told: s.Told, Read: s.Counts.Seen, Kept: s.Rows,
			Bad: s.Counts.Bad, Untrained: s.Counts.Untrained, Dropped: s.Counts.Overlong, Cut: s.Counts.Cut, Tokens: s.Counts.Tokens, Trained: s.Counts.Trained})
	}
	for _, p := range in.Data.Skipped[:min(shownBad, len(in.Data.Skipped))] {
		out.BadRows = append(out.BadRows, p.String())
	}
	n := 0
	var prints []print
	for _, s := range setsOf(in) {
		stats, ps, err := countSet(c.Context, s.name, s.set, n)
		if err != nil {
			return out, err
		}
		out.Sets = append(out.Sets, stats)
		prints = append(prints, ps...)
		n += s.set.Len()
	}
	out.Doubled, out.Leaked = doubled(prints, in)
	return out, nil
}

// namedSet is a set of rows with its name.
type namedSet struct {
	name string
	set  *dataset.Set
}

func setsOf(in *runner.Inputs) []namedSet {
	out := []namedSet{{"train", in.Train}}
	if in.Held != nil {
		out = append(out, namedSet{"validation", in.Held})
	}
	return out
}

// counted is what is kept of a row.
type counted struct {
	tokens  map[string]report.RoleStats
	print   [16]byte
	lengths []int // of the examples
}

// countSet counts a set, and fingerprints its rows, whose numbers begin at base.
func countSet(ctx context.Context, name string, set *dataset.Set, base int) (report.SetStats, []print, error) {
	out := report.SetStats{Name: name, Rows: set.Len(), Roles: map[string]report.RoleStats{}}
	lengths := make([]int, 0, set.Len())
	prints := make([]print, 0, set.Len())
	err := eachRow(ctx, set, set.Len(), func(_ int, exs []chat.Example) (counted, error) {
		return counted{byRole(exs), fingerprint(exs), lengthsOf(exs)}, nil
	}, func(r counted) error {
		for role, n := range r.tokens {
			sum := out.Roles[role]
			sum.Tokens += n.Tokens
			sum.Trained += n.Trained
			out.Roles[role] = sum
			out.Tokens += n.Tokens
			out.Trained += n.Trained
		}
		lengths = append(lengths, r.lengths...)
		prints = append(prints, print{r.print, base + len(prints)})
		return nil
	})
	slices.Sort(lengths)
	out.Examples, out.Lengths = len(lengths), runner.NewHistogram(lengths)
	if n := len(lengths); n > 0 {
		out.Shortest, out.Median, out.P99 = lengths[0], lengths[(n-1)/2], lengths[(99*n+99)/100-1]
	}
	return out, prints, err
}

func lengthsOf(exs []chat.Example) []int {
	out := make([]int, len(exs))
	for i, ex := range exs {
		out[i] = len(ex.IDs)
	}
	return out
}

// byRole counts the tokens of a row's examples; those of the template, and of rows without roles, under "".
func byRole(exs []chat.Example) map[string]report.RoleStats {
	out := map[string]report.RoleStats{}
	for _, ex := range exs {
		for i, role := range rolesOf(ex) {
			n := out[role]
			n.Tokens++
			if i > 0 && ex.Weights[i] > 0 {
				n.Trained++
			}
			out[role] = n
		}
	}
	return out
}

// doubled finds the rows that have the same tokens as an earlier row of train, apart for those of train and of validation.
func doubled(prints []print, in *runner.Inputs) (train, leaked report.Doubles) {
	n := in.Train.Len()
	at := func(i int) string {
		if i < n {
			return in.Train.At(i).String()
		}
		return in.Held.At(i - n).String()
	}
	for _, pair := range repeats(prints) {
		to := &train
		switch {
		case pair.again >= n && pair.first >= n:
			continue // both are validation's
		case pair.again >= n:
			to = &leaked
		}
		if to.Rows++; len(to.First) < shownBad {
			to.First = append(to.First, fmt.Sprintf("%s is %s", at(pair.again), at(pair.first)))
		}
	}
	return train, leaked
}
