package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"

	"trainer/internal/report"
	"trainer/runner"
)

func (a *app) gc() *cli.Command {
	return &cli.Command{
		Name: "gc", Usage: "stop what dead runs of this machine have left",
		Description: "Stops only what a run's journal says is its own, where nobody works in the run's folder and the run has not left it on purpose\n" +
			"(keep_resources). Folders are those in --runs-dir, and those that this machine remembers. Shows what it is about to stop, and asks.\n\n" +
			"Examples:\n  trainer resources gc\n  trainer resources gc --yes --json",
		Flags: []cli.Flag{jsonFlag, lookFlag, &cli.BoolFlag{Name: "yes", Usage: "do not ask"}},
		Action: func(c *cli.Context) error {
			_, stop, done := signals(c.Context)
			defer done()
			return a.collect(stop, c.String("runs-dir"), c.Bool("yes"), c.Bool("json"))
		},
	}
}

// lookFlag is where runs are looked for, beside those that the machine remembers.
var lookFlag = &cli.StringFlag{Name: "runs-dir", Usage: "look for run folders in `DIR` too", Value: "runs"}

// collected is a resource that gc has, or has not, stopped.
type collected struct {
	billed
	Stopped bool   `json:"stopped"`
	Error   string `json:"error,omitempty"`
}

func (a *app) collect(ctx context.Context, dir string, yes, asJSON bool) error {
	l, err := a.service()
	if err != nil {
		return err
	}
	mine, _, err := l.client.Mine(ctx, false)
	if err != nil {
		return err
	}
	held, notes := a.knownRuns(dir)
	for _, n := range append(notes, unsure(mine, held)...) {
		fmt.Fprintf(a.err, "trainer: %s\n", n)
	}
	left := slices.DeleteFunc(bills(ctx, l, mine, held), func(b billed) bool { return b.Why == "" })
	if len(left) == 0 {
		if asJSON {
			return a.printJSON([]collected{})
		}
		fmt.Fprintln(a.out, "nothing is left by dead runs")
		return nil
	}
	if !asJSON || !yes {
		out := a.out
		if asJSON {
			out = a.err
		}
		if err := report.Table(out, []string{"ID", "STATUS", "MODEL", "GPU", "GENERATORS", "USD/HOUR", "SINCE", "SO FAR", "RUN", "EXPIRES"}, billedRows(left)); err != nil {
			return err
		}
	}
	if !yes {
		if err := a.confirm(ctx, fmt.Sprintf("stop %s?", plural(len(left), "resource"))); err != nil {
			return err
		}
	}
	return a.stopLeft(ctx, l, left, asJSON)
}

// unsure names what a journal speaks of that cannot tell whether its run lives.
func unsure(mine []runner.Resource, held []runner.Holdings) (notes []string) {
	for _, h := range held {
		for _, o := range h.Held {
			there := slices.ContainsFunc(mine, func(r runner.Resource) bool { return r.ID == o.ID })
			if there && h.Elsewhere != nil && h.Alive == nil && !o.Attached {
				notes = append(notes, fmt.Sprintf("%s is left alone: %v; where its run is dead, `trainer resources stop %s`", o.ID, h.Elsewhere, o.ID))
			}
		}
	}
	return notes
}

func (a *app) stopLeft(ctx context.Context, l *link, left []billed, asJSON bool) error {
	var rows []collected
	var all error
	for _, b := range left {
		c := collected{billed: b}
		err := runner.Collect(ctx, b.Run, b.resource, l.client)
		if c.Stopped = err == nil; err != nil {
			c.Error = err.Error()
			all = errors.Join(all, err)
		}
		rows = append(rows, c)
		if !asJSON && err == nil {
			fmt.Fprintf(a.out, "stopped %s\n", b.ID)
		}
	}
	if asJSON {
		return errors.Join(all, a.printJSON(rows))
	}
	return all
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
