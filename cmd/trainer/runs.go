package main

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"trainer/internal/report"
	"trainer/runner"
)

func (a *app) runs() *cli.Command {
	return &cli.Command{
		Name: "runs", Usage: "what runs have done, by their folders",
		Subcommands: []*cli.Command{
			{
				Name: "list", Usage: "list runs: how they stand, how far, where, at what cost",
				Description: "Reads the run folders alone; nobody is asked. Newest first.\n\nExamples:\n  trainer runs list\n  trainer runs list --runs-dir /data/runs --json",
				Flags:       []cli.Flag{jsonFlag, &cli.StringFlag{Name: "runs-dir", Usage: "list the run folders in `DIR`", Value: "runs"}},
				Action:      func(c *cli.Context) error { return a.listRuns(c.String("runs-dir"), c.Bool("json")) },
			},
			{
				Name: "show", Usage: "show a run: how it stands, its newest figures, what it saved and holds", ArgsUsage: "RUN",
				Description: "Examples:\n  trainer runs show runs/quickstart-20260101-120000\n  trainer runs show runs/x --json",
				Flags:       []cli.Flag{jsonFlag},
				Action: func(c *cli.Context) error {
					dir, err := one(c, "a run folder")
					if err != nil {
						return err
					}
					if !runner.IsRun(dir) {
						return notRun(dir)
					}
					s, err := runner.ReadState(filepath.Clean(dir))
					if err != nil {
						return fmt.Errorf("%s: %w", dir, err)
					}
					return a.showRun(s, c.Bool("json"))
				},
			},
		},
	}
}

// stands is a run in JSON.
type stands struct {
	Dir        string             `json:"dir"`
	RunID      string             `json:"run_id"`
	Name       string             `json:"name"`
	Status     string             `json:"status"`
	Evaluates  bool               `json:"evaluates"`
	BaseModel  string             `json:"base_model"`
	Loss       string             `json:"loss"`
	Backend    string             `json:"backend"`
	Done       int                `json:"done"`
	Steps      int                `json:"steps"`
	Lives      int                `json:"lives"`
	Began      string             `json:"began,omitempty"`
	Told       string             `json:"last_record,omitempty"`
	CostUSD    float64            `json:"cost_usd"`
	Metrics    map[string]float64 `json:"metrics"`
	Checkpoint string             `json:"checkpoint,omitempty"`
	Saved      int                `json:"checkpoint_step,omitempty"`
	Registered string             `json:"registered,omitempty"`
	Held       []string           `json:"resources_held"`
	Problem    string             `json:"problem,omitempty"` // why the folder cannot be read
}

func standing(s runner.State) stands {
	out := stands{s.Dir, s.RunID, s.Name, s.Status, s.Evaluates, s.BaseModel, s.Loss, s.Backend, s.Done, s.Steps, s.Lives, stamp(s.Began), stamp(s.Told),
		s.CostUSD, s.Metrics, s.Checkpoint, s.Saved, s.Registered, []string{}, ""}
	for _, h := range s.Holdings.Held {
		out.Held = append(out.Held, h.ID)
	}
	return out
}

func (a *app) listRuns(dir string, asJSON bool) error {
	found, err := filepath.Glob(filepath.Join(dir, "*", runner.ResolvedName))
	if err != nil {
		return err
	}
	type row struct {
		runner.State
		problem error
	}
	rows := []row{}
	for _, path := range found {
		s, err := runner.ReadState(filepath.Dir(path))
		rows = append(rows, row{s, err})
	}
	slices.SortStableFunc(rows, func(x, y row) int { return y.Began.Compare(x.Began) })
	lines, table := []stands{}, [][]string{}
	for _, r := range rows {
		line := standing(r.State)
		if r.problem != nil {
			line.Status, line.Problem = "unreadable", r.problem.Error()
			fmt.Fprintf(a.err, "trainer: %s: %v\n", r.Dir, r.problem)
		}
		lines = append(lines, line)
		table = append(table, []string{r.Dir, line.Status, far(r.State), cmp.Or(r.BaseModel, "-"), headline(r.Metrics), report.USD(r.CostUSD), cmp.Or(stamp(r.Began), "-")})
	}
	if asJSON {
		return a.printJSON(lines)
	}
	if len(lines) == 0 {
		fmt.Fprintf(a.out, "no runs in %s\n", dir)
		return nil
	}
	return report.Table(a.out, []string{"RUN", "STATUS", "STEPS", "MODEL", "NEWEST", "COST", "BEGAN"}, table)
}

// far is how far a run has come.
func far(s runner.State) string {
	if s.Evaluates {
		return "evaluation"
	}
	return report.Count(s.Done) + "/" + report.Count(s.Steps)
}

// headline is the figure that a run is followed by, the first of these that it has.
func headline(m map[string]float64) string {
	for _, name := range []string{"eval/pass@1", "eval/reward", "reward/mean", "eval/rewards/accuracy", "eval/loss", "train/loss"} {
		if v, ok := m[name]; ok {
			return name + " " + report.Loss(v)
		}
	}
	return "-"
}

func (a *app) showRun(s runner.State, asJSON bool) error {
	if asJSON {
		return a.printJSON(standing(s))
	}
	status := s.Status
	if h := s.Holdings.Alive; h != nil {
		status += fmt.Sprintf(", process %d", h.PID)
	}
	rows := [][2]string{{"run", s.Dir}, {"id", s.RunID}, {"status", status}, {"steps", far(s)}, {"model", strings.TrimPrefix(s.BaseModel+", "+s.Loss, ", ")},
		{"where", s.Backend}, {"began", stamp(s.Began)}, {"last record", stamp(s.Told)}, {"lives", report.Count(s.Lives)}, {"cost", report.USD(s.CostUSD)}}
	if s.Checkpoint != "" {
		rows = append(rows, [2]string{"checkpoint", fmt.Sprintf("%s (step %s)", s.Checkpoint, report.Count(s.Saved))})
	}
	rows = append(rows, [2]string{"registered", s.Registered}, [2]string{"report", filepath.Join(s.Dir, "report.html")})
	for _, h := range s.Holdings.Held {
		rows = append(rows, [2]string{"holds", fmt.Sprintf("resource %s at %s an hour (%s)", h.ID, report.USD(h.USDPerH), s.Holdings.Owner(h.ID))})
	}
	for _, name := range slices.Sorted(maps.Keys(s.Metrics)) {
		if !strings.HasPrefix(name, "time/") && !strings.HasPrefix(name, "cost/") {
			rows = append(rows, [2]string{name, strconv.FormatFloat(s.Metrics[name], 'g', 5, 64)})
		}
	}
	for _, r := range rows {
		if r[1] != "" {
			fmt.Fprintf(a.out, "%s: %s\n", r[0], r[1])
		}
	}
	if way := s.Way(); way != "" {
		fmt.Fprintf(a.out, "next: %s\n", way)
	}
	return nil
}
