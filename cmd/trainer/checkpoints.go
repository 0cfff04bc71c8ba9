package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"trainer/internal/journal"
	"trainer/internal/report"
	"trainer/runner"
)

func (a *app) checkpoints() *cli.Command {
	return &cli.Command{
		Name: "checkpoints", Usage: "what a run has saved",
		Subcommands: []*cli.Command{
			{
				Name: "list", Usage: "list the checkpoints of a run, or of a session", ArgsUsage: "[RUN]",
				Description: "What the run's journal says, and what the service still has. Without the service, or with --offline, the journal alone.\n\n" +
					"Examples:\n  trainer checkpoints list runs/quickstart-20260101-120000\n  trainer checkpoints list --session 6f1d… --json",
				Flags: []cli.Flag{jsonFlag,
					&cli.StringFlag{Name: "session", Usage: "those of session `ID`, as the service lists them"},
					&cli.BoolFlag{Name: "offline", Usage: "do not ask the service"}},
				Action: a.listCheckpoints,
			},
			a.downloadCheckpoint(),
		},
	}
}

// listed is a row of a list: what the journal says, and whether the service has it.
type listed struct {
	runner.Made
	AtService *bool `json:"at_service"` // nil: not asked
}

func (a *app) listCheckpoints(c *cli.Context) error {
	session := c.String("session")
	switch {
	case session == "" && c.NArg() == 0:
		return &usage{"trainer checkpoints list: give a run folder, or --session ID"}
	case session != "" && (c.NArg() > 0 || c.Bool("offline")):
		return &usage{"trainer checkpoints list: --session stands alone: the service is asked, and no run folder is read"}
	case session != "":
		l, err := a.service()
		if err != nil {
			return err
		}
		rows, err := served(c.Context, l, []string{session})
		if err != nil {
			return err
		}
		return a.printCheckpoints(runner.Checkpoints{Sessions: []string{session}}, rows, "", c.Bool("json"))
	}
	dir := c.Args().First()
	if !runner.IsRun(dir) {
		return notRun(dir)
	}
	made, err := runner.ReadCheckpoints(dir)
	if err != nil {
		return err
	}
	if c.Bool("offline") {
		return a.printCheckpoints(made, unasked(made), "as --offline says", c.Bool("json"))
	}
	rows, err := a.compared(c.Context, dir, made)
	if err != nil { // what the journal says is worth as much
		return a.printCheckpoints(made, unasked(made), err.Error(), c.Bool("json"))
	}
	return a.printCheckpoints(made, rows, "", c.Bool("json"))
}

func notRun(dir string) error {
	return &usage{fmt.Sprintf("%s is not a run folder: it has no %s", dir, runner.ResolvedName)}
}

func unasked(made runner.Checkpoints) (rows []listed) {
	for _, m := range made.Made {
		rows = append(rows, listed{Made: m})
	}
	return rows
}

// compared holds the journal to what the service lists.
func (a *app) compared(ctx context.Context, dir string, made runner.Checkpoints) ([]listed, error) {
	l, err := a.serverOf(dir, made.BaseModel)
	if err != nil {
		return nil, err
	}
	theirs, err := served(ctx, l, made.Sessions)
	if err = errors.Join(err, l.close()); err != nil {
		return nil, err
	}
	var rows []listed
	for _, m := range made.Made {
		at := slices.ContainsFunc(theirs, func(s listed) bool { return s.ID == m.ID })
		rows = append(rows, listed{Made: m, AtService: &at})
	}
	for _, s := range theirs {
		if !slices.ContainsFunc(made.Made, func(m runner.Made) bool { return m.ID == s.ID }) {
			s.Why = "not in the journal"
			rows = append(rows, s)
		}
	}
	slices.SortStableFunc(rows, func(a, b listed) int { return cmp.Compare(a.Done, b.Done) })
	return rows, nil
}

// served are the service's rows of sessions, in order of their steps.
func served(ctx context.Context, l *link, sessions []string) ([]listed, error) {
	rows, yes := []listed{}, true
	for _, session := range sessions {
		list, err := l.client.Checkpoints(ctx, session)
		if err != nil {
			return nil, fmt.Errorf("list the checkpoints of session %s: %w", session, err)
		}
		for _, c := range list {
			m := runner.Made{Done: int(c.Step), Kind: "training", ID: c.ID, Session: c.Session, Registered: c.Registered, Revision: c.Revision,
				State: runner.StateUnverified, CreatedAt: c.CreatedAt}
			if c.Inference {
				m.Kind, m.Variant = "inference", runner.Variant(c.SavedCheckpoint, c.LoRARank > 0)
			}
			rows = append(rows, listed{Made: m, AtService: &yes})
		}
	}
	slices.SortStableFunc(rows, func(a, b listed) int { return cmp.Compare(a.Done, b.Done) })
	return rows, nil
}

// serverOf is the client of the service, or the sandbox, that a run folder's run was on.
func (a *app) serverOf(dir, model string) (*link, error) {
	w, err := a.placeOf(dir, model)
	if err != nil {
		return nil, err
	}
	if !w.embedded {
		return a.connect(w, "")
	}
	if err := journal.Free(dir); err != nil {
		return nil, fmt.Errorf("the run goes on, and its sandbox with it: %w", err)
	}
	return a.connect(w, sandboxDir(dir))
}

func (a *app) printCheckpoints(made runner.Checkpoints, rows []listed, unseen string, asJSON bool) error {
	if asJSON {
		return a.printJSON(struct {
			RunID    string   `json:"run_id,omitempty"`
			Sessions []string `json:"sessions"`
			Metric   string   `json:"metric_name,omitempty"`
			Asked    bool     `json:"asked_service"`
			Unseen   string   `json:"not_asked,omitempty"` // why
			Rows     []listed `json:"checkpoints"`
		}{made.RunID, append([]string{}, made.Sessions...), made.Metric, unseen == "", unseen, append([]listed{}, rows...)})
	}
	if len(rows) == 0 {
		fmt.Fprintln(a.out, "no checkpoints")
	} else if err := tableOf(a.out, made.Metric, rows); err != nil {
		return err
	}
	if unseen != "" {
		fmt.Fprintf(a.err, "trainer: the service was not asked, so what it still has, and what the journal does not know, is not seen: %s\n", unseen)
	}
	return nil
}

func tableOf(w io.Writer, metric string, rows []listed) error {
	head := []string{"STEP", "KIND", "ID", "MODEL", "STATE", strings.ToUpper(cmp.Or(metric, "metric")), "CREATED", "COPY"}
	var table [][]string
	for _, r := range rows {
		state := r.State
		if r.Why != "" {
			state += " (" + r.Why + ")"
		}
		if r.AtService != nil && !*r.AtService {
			state += ", gone from the service"
		}
		value := ""
		if r.Metric != nil {
			value = report.Loss(*r.Metric)
		}
		held := r.Copy
		if held != "" && r.Whole {
			held += ", " + report.Bytes(r.Size)
		} else if held != "" {
			held += ", not whole"
		}
		table = append(table, []string{strconv.Itoa(r.Done), cmp.Or(r.Kind+variantText(r.Variant), "?"), r.ID, r.Registered, state, value, stamp(r.CreatedAt), held})
	}
	return report.Table(w, head, table)
}

func variantText(v string) string {
	if v == "" {
		return ""
	}
	return " (" + v + ")"
}
