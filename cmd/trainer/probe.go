package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"trainer/internal/probe"
	"trainer/internal/report"
)

func (a *app) probe() *cli.Command {
	return &cli.Command{
		Name: "probe", Usage: "find out what a service does where the API's contract is silent",
		Description: "Asks by a few small operations in a session of its own, on a resource of yours that is READY and has room for one\n" +
			"more session, and prints the --choice flags that make a sandbox do the same. It buys nothing and creates no resource;\n" +
			"the session is stopped on every way out.\n\n" +
			"Examples:\n  TOGETHER_API_KEY=… trainer sandbox probe --resource ID\n" +
			"  TOGETHER_BASE_URL=http://127.0.0.1:8431 trainer sandbox probe --resource ID --json",
		Flags: []cli.Flag{jsonFlag, &cli.StringFlag{Name: "resource", Usage: "probe on the model resource `ID`; `trainer resources list` has yours"}},
		Action: func(c *cli.Context) error {
			id := c.String("resource")
			if id == "" {
				return &usage{"trainer sandbox probe: give --resource ID, the id of a model resource that is READY; see `trainer resources list`"}
			}
			_, stop, done := signals(c.Context)
			defer done()
			return a.runProbe(stop, id, c.Bool("json"))
		},
	}
}

func (a *app) runProbe(ctx context.Context, id string, asJSON bool) error {
	l, err := a.service()
	if err != nil {
		return err
	}
	target, err := probe.Find(ctx, l.client, id)
	if err != nil {
		return err
	}
	fmt.Fprintf(a.err, "probing model resource %s (%s): up to about %d operations of %d tokens in all, in a session of its own;\n"+
		"nothing is bought, but the resource bills by the minute as long as it is READY\n", id, target, probe.Operations, probe.Tokens)
	r, err := probe.Run(ctx, l.client, target, func(name string) { fmt.Fprintf(a.err, "asking: %s\n", name) })
	if r == nil {
		return err
	}
	fmt.Fprintf(a.err, "done: %d operations, %d tokens\n", r.Operations, r.Tokens)
	if asJSON {
		return cmp.Or(err, a.printJSON(probeJSON(r)))
	}
	return cmp.Or(err, a.printProbe(r))
}

// probed is a report for scripts, with the findings by their names.
type probed struct {
	*probe.Report
	Choices map[string]probe.Finding `json:"choices"`
	Facts   map[string]probe.Finding `json:"facts"`
	Known   []string                 `json:"known"` // what --choice takes
}

func probeJSON(r *probe.Report) probed {
	by := func(list []probe.Finding) map[string]probe.Finding {
		m := map[string]probe.Finding{}
		for _, f := range list {
			m[f.Name] = f
		}
		return m
	}
	return probed{r, by(r.Choices), by(r.Facts), r.Known()}
}

func (a *app) printProbe(r *probe.Report) error {
	rows := [][]string{}
	for _, f := range append(r.Choices[:len(r.Choices):len(r.Choices)], r.Facts...) {
		rows = append(rows, []string{f.Name, f.Value, f.How})
	}
	if err := report.Table(a.out, []string{"WHAT", "VALUE", "HOW IT WAS SEEN"}, rows); err != nil {
		return err
	}
	if known := r.Known(); len(known) > 0 {
		fmt.Fprintf(a.out, "\na sandbox that does the same:\n  trainer sandbox serve --choice %s\n", strings.Join(known, " --choice "))
	}
	return nil
}
