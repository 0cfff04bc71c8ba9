package main

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/urfave/cli/v2"

	"trainer/internal/report"
	"trainer/runner"
)

// minTimeout is the shortest inactive_timeout, for bodies that only ask for a price.
const minTimeout = 5 * time.Minute

func (a *app) resources() *cli.Command {
	return &cli.Command{
		Name: "resources", Usage: "what is billing now",
		Subcommands: []*cli.Command{
			{
				Name: "list", Usage: "list your resources that have not ended: since when they bill, how much, whose they are",
				Description: "Examples:\n  trainer resources list\n  trainer resources list --all --json",
				Flags:       []cli.Flag{jsonFlag, lookFlag, &cli.BoolFlag{Name: "all", Usage: "those that have ended too"}},
				Action: func(c *cli.Context) error {
					return a.listResources(c.Context, c.Bool("all"), c.Bool("json"), c.String("runs-dir"))
				},
			},
			a.gc(),
			{
				Name: "stop", Usage: "stop resources and release their GPUs", ArgsUsage: "ID…",
				Description: "Without --force a resource with active sessions is refused.",
				Flags:       []cli.Flag{jsonFlag, &cli.BoolFlag{Name: "force", Usage: "also stop the sessions on it"}},
				Action: func(c *cli.Context) error {
					if c.NArg() == 0 {
						return &usage{"trainer resources stop: give the id of a resource; see `trainer resources list`"}
					}
					l, err := a.service()
					if err != nil {
						return err
					}
					var all error
					var done []runner.Resource
					for _, id := range c.Args().Slice() {
						r, err := l.client.Stop(c.Context, id, c.Bool("force"))
						if err != nil {
							all = errors.Join(all, fmt.Errorf("stop %s: %w", id, err))
							continue
						}
						done = append(done, r)
					}
					return errors.Join(all, a.printResources(done, c.Bool("json")))
				},
			},
		},
	}
}

// service is the client of the service, or of a sandbox that runs at a loopback TOGETHER_BASE_URL.
func (a *app) service() (*link, error) {
	w, err := a.place("", loopback(a.getenv("TOGETHER_BASE_URL")))
	if errors.Is(err, errNoKey) {
		return nil, &usage{"TOGETHER_API_KEY is not set, so the service cannot be asked; for a running `trainer sandbox serve`, set TOGETHER_BASE_URL to its address"}
	}
	if err != nil {
		return nil, err
	}
	return a.connect(w, "")
}

func (a *app) printResources(rs []runner.Resource, asJSON bool) error {
	type row struct {
		ID         string `json:"id"`
		Status     string `json:"status"`
		BaseModel  string `json:"base_model"`
		GPUType    string `json:"gpu_type"`
		Generators int    `json:"num_generator_replicas"`
		CreatedAt  string `json:"created_at"`
		ExpiresAt  string `json:"expires_at,omitempty"`
	}
	rows, table := []row{}, [][]string{}
	for _, r := range rs {
		w := row{r.ID, r.Status, r.BaseModel, r.GPUType, r.Generators, stamp(r.CreatedAt), stamp(r.ExpiresAt)}
		rows = append(rows, w)
		table = append(table, []string{w.ID, w.Status, w.BaseModel, w.GPUType, strconv.Itoa(w.Generators), w.CreatedAt, w.ExpiresAt})
	}
	if asJSON {
		return a.printJSON(rows)
	}
	if len(rows) == 0 {
		fmt.Fprintln(a.out, "no resources")
		return nil
	}
	return report.Table(a.out, []string{"ID", "STATUS", "MODEL", "GPU", "GENERATORS", "CREATED", "EXPIRES"}, table)
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}
