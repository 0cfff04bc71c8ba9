package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"trainer/internal/report"
	"trainer/internal/runs"
	"trainer/runner"
)

// billed is a resource with what it costs and whose it is.
type billed struct {
	ID         string  `json:"id"`
	Status     string  `json:"status"`
	BaseModel  string  `json:"base_model"`
	GPUType    string  `json:"gpu_type"`
	Generators int     `json:"num_generator_replicas"`
	CreatedAt  string  `json:"created_at"`
	ExpiresAt  string  `json:"expires_at,omitempty"`
	USDPerHour float64 `json:"usd_per_hour"` // 0: it bills nothing, or the price is not known
	Since      string  `json:"bills_since,omitempty"`
	AtMost     bool    `json:"at_most,omitempty"` // Since is its create, since nothing here saw it READY
	CostUSD    float64 `json:"cost_usd"`          // so far; while READY
	Run        string  `json:"run,omitempty"`     // folder
	RunState   string  `json:"run_state,omitempty"`
	Why        string  `json:"left_because,omitempty"` // gc may stop it

	resource runner.Resource
}

// bills joins resources with prices and with the runs of this machine. A price that is refused is left out.
func bills(ctx context.Context, l *link, mine []runner.Resource, held []runner.Holdings) []billed {
	prices := map[runner.ResourceSpec]float64{}
	var rows []billed
	for _, r := range mine {
		b := billed{ID: r.ID, Status: r.Status, BaseModel: r.BaseModel, GPUType: r.GPUType, Generators: r.Generators,
			CreatedAt: stamp(r.CreatedAt), ExpiresAt: stamp(r.ExpiresAt), resource: r}
		since := b.owner(r, held)
		if r.Status == runner.Ready {
			if b.USDPerHour == 0 {
				b.USDPerHour = price(ctx, l, r, prices)
			}
			b.meter(r, since)
		}
		rows = append(rows, b)
	}
	return rows
}

// owner finds the run of a resource, and since when it was READY where the run has seen that.
func (b *billed) owner(r runner.Resource, held []runner.Holdings) (since time.Time) {
	known := false
	for i := range held {
		h := &held[i]
		state, why := h.Owner(r.ID), h.Reason(r)
		if state == "" && why == "" {
			continue
		}
		// Of two journals the one whose run lives decides, and then the one that knows the resource: the other only has a create
		// that asked for such a one.
		if b.RunState != "" && h.Alive == nil && (known || state == "") {
			continue
		}
		known = state != ""
		b.Run, b.RunState, b.Why = h.Dir, state, why
		if b.RunState == "" {
			b.RunState = "dead"
		}
		for _, o := range h.Held {
			if o.ID == r.ID {
				since = o.ReadyAt
				b.USDPerHour = o.USDPerH
			}
		}
		if h.Alive != nil {
			b.Why = ""
			break
		}
	}
	return since
}

func price(ctx context.Context, l *link, r runner.Resource, known map[runner.ResourceSpec]float64) float64 {
	spec := runner.ResourceSpec{BaseModel: r.BaseModel, BaseWeightsRef: r.BaseWeightsRef, GPUType: r.GPUType, Generators: r.Generators, LoRA: r.LoRA, InactiveTimeout: minTimeout}
	usd, ok := known[spec]
	if !ok {
		usd, _ = l.client.Price(ctx, spec) // a list without a price is better than none
		known[spec] = usd
	}
	return usd
}

// meter is what READY has cost, in minutes that have begun.
func (b *billed) meter(r runner.Resource, since time.Time) {
	if since.IsZero() {
		since, b.AtMost = r.CreatedAt, true
	}
	now := r.ServerTime
	if now.IsZero() {
		now = time.Now()
	}
	b.Since = stamp(since)
	b.CostUSD = max(1, math.Ceil(now.Sub(since).Minutes())) / 60 * b.USDPerHour
}

// knownRuns are the run folders of this machine: those that were about to ask for something that bills, and those in dir.
// What cannot be read is said in notes.
func (a *app) knownRuns(dir string) (held []runner.Holdings, notes []string) {
	var dirs []string
	if path, err := runs.Path(a.getenv); err == nil {
		list, err := runs.List(path)
		if err != nil {
			notes = append(notes, err.Error())
		}
		for _, e := range list {
			dirs = append(dirs, e.Dir)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		notes = append(notes, err.Error())
	}
	for _, e := range entries {
		if at, err := filepath.Abs(filepath.Join(dir, e.Name())); err == nil && runner.IsRun(at) {
			dirs = append(dirs, at)
		}
	}
	slices.Sort(dirs)
	for _, d := range slices.Compact(dirs) {
		if !runner.IsRun(d) {
			continue // removed, or moved
		}
		h, err := runner.ReadHoldings(d)
		if err != nil {
			notes = append(notes, fmt.Sprintf("%s: %v; what it has left is not seen here: look with `trainer resources list`, and stop it with `trainer resources stop`", d, err))
			continue
		}
		held = append(held, h)
	}
	return held, notes
}

// listResources prints what there is, what it costs, and whose it is.
func (a *app) listResources(ctx context.Context, all, asJSON bool, dir string) error {
	l, err := a.service()
	if err != nil {
		return err
	}
	mine, _, err := l.client.Mine(ctx, all)
	if err != nil {
		return err
	}
	held, notes := a.knownRuns(dir)
	rows := bills(ctx, l, mine, held)
	for _, n := range notes {
		fmt.Fprintf(a.err, "trainer: %s\n", n)
	}
	if asJSON {
		return a.printJSON(append([]billed{}, rows...))
	}
	if len(rows) == 0 {
		fmt.Fprintln(a.out, "no resources")
		return nil
	}
	if err := report.Table(a.out, []string{"ID", "STATUS", "MODEL", "GPU", "GENERATORS", "USD/HOUR", "SINCE", "SO FAR", "RUN", "EXPIRES"}, billedRows(rows)); err != nil {
		return err
	}
	for _, r := range rows {
		if r.Why != "" {
			fmt.Fprintln(a.err, "trainer: `trainer resources gc` stops what dead runs have left")
			break
		}
	}
	return nil
}

func billedRows(rows []billed) [][]string {
	var table [][]string
	for _, r := range rows {
		perHour, since, cost := "", "", ""
		if r.Since != "" {
			since = r.Since
			if r.USDPerHour > 0 {
				perHour, cost = fmt.Sprintf("%.2f", r.USDPerHour), report.USD(r.CostUSD)
			}
			if r.AtMost {
				since, cost = since+" at the earliest", cost+" at most"
			}
		}
		run := r.Run
		if r.RunState != "" {
			run += " (" + r.RunState + ")"
		}
		if r.Why != "" {
			run += ": " + r.Why
		}
		table = append(table, []string{r.ID, r.Status, r.BaseModel, r.GPUType, strconv.Itoa(r.Generators), perHour, since, cost, run, r.ExpiresAt})
	}
	return table
}
