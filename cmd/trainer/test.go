package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"trainer/internal/diag"
	"trainer/internal/wire"
	"trainer/recipe"
	"trainer/runner"
)

func (a *app) test() *cli.Command {
	return &cli.Command{
		Name: "test", Usage: "train recipes on the sandbox and hold them to test.expect", ArgsUsage: "recipe.yaml…",
		Description: "Trains test.steps steps of each recipe on the sandbox, whatever its base model, then compares the metrics with\ntest.expect. Made for CI: no key, no GPU, no cost.\n\n" +
			"Examples:\n  trainer test recipes/*.yaml\n  trainer test recipe.yaml --set test.steps=50",
		Flags: append([]cli.Flag{setFlag, jsonFlag, wireFlag, lockedFlag, offlineFlag, &cli.StringFlag{Name: "runs-dir", Usage: "keep the run folders in `DIR`; without it they are removed"}}, outsideFlags...),
		Action: func(c *cli.Context) error {
			if c.NArg() == 0 {
				return &usage{"trainer test: give a recipe"}
			}
			shape, err := shapeOf(c)
			if err != nil {
				return err
			}
			out := a.outside(c)
			defer out.Close()
			var failed int
			for _, path := range recipes(c) {
				from, err := a.source(c, path)
				if err != nil {
					return err
				}
				v, err := a.testRecipe(c.Context, path, from, c.StringSlice("set"), c.String("runs-dir"), shape, out)
				if err != nil {
					return err
				}
				if !v.OK {
					failed++
				}
				if err := a.printTest(v, c.Bool("json")); err != nil {
					return err
				}
			}
			if failed > 0 {
				return fmt.Errorf("%d of %d recipes failed", failed, c.NArg())
			}
			return nil
		},
	}
}

// tested is how a recipe did.
type tested struct {
	Recipe string    `json:"recipe"`
	OK     bool      `json:"ok"`
	Steps  int       `json:"steps"`
	Checks []checked `json:"checks"`
}

// checked is one expectation; Got is nil when the metric was never there.
type checked struct {
	Key  string   `json:"key"`
	Want string   `json:"want"`
	Got  *float64 `json:"got"`
	OK   bool     `json:"ok"`
	Why  string   `json:"why,omitempty"`
}

func (a *app) testRecipe(ctx context.Context, path string, from source, sets []string, runs string, shape wire.Shape, out *outside) (v tested, err error) {
	hard, stop, done := signals(ctx)
	defer done()
	sets = append(slices.Clone(sets), "model_resources_id=null") // a resource of the service, which is not asked here
	r, err := recipe.Load(path, sets...)
	if err != nil {
		return v, err
	}
	if err := sayable(r, shape); err != nil {
		return v, err
	}
	if n := r.Test.Steps; n != nil {
		if r, err = recipe.Load(path, append(sets, "limits.max_steps="+strconv.Itoa(*n))...); err != nil {
			return v, err
		}
	}
	// The checkpoint of an init_from is at the service, which is not asked here.
	maps.DeleteFunc(from.lock, func(name, _ string) bool { return name == "start" || strings.HasPrefix(name, "start.") })
	in, p, err := prepare(stop, r, from, true, nil, out, false)
	if err != nil {
		return v, err
	}
	w := where{sandbox: true, embedded: true, key: anyKey, shape: shape}
	if err := a.check(stop, in, p, w); err != nil {
		return v, err
	}
	if runs == "" {
		if runs, err = os.MkdirTemp("", "trainer-test-"); err != nil {
			return v, err
		}
		defer func() { _ = os.RemoveAll(runs) }()
	}
	dir, err := runner.NewFolder(runs, r, time.Now())
	if err != nil {
		return v, err
	}
	s, err := a.quietLife(hard, stop, in, p, w, dir)
	if err != nil && !(exitCode(err) == exitBudget && s.Done == until(r, p)) {
		return v, fmt.Errorf("%s: %w", path, err)
	}
	lines, err := runner.ReadMetrics(dir)
	if err != nil {
		return v, err
	}
	v = tested{Recipe: path, OK: true, Steps: s.Done}
	for _, e := range r.Test.Expect {
		c := expect(e, lines)
		if !c.OK {
			v.OK = false
			c.Why = diag.Problem{Pos: r.At("test.expect." + e.Key), Key: "test.expect", Msg: c.Why}.String()
		}
		v.Checks = append(v.Checks, c)
	}
	return v, nil
}

func until(r *recipe.Recipe, p *runner.Plan) int {
	if n := r.Limits.MaxSteps; n != nil {
		return min(*n, len(p.Rates))
	}
	return len(p.Rates)
}

// quietLife runs with the files of the run folder alone being told.
func (a *app) quietLife(hard, stop context.Context, in *runner.Inputs, p *runner.Plan, w where, dir string) (runner.Summary, error) {
	quiet := *a
	quiet.out, quiet.err, quiet.tty, quiet.outTTY = nil, nil, false, false
	w.remember(p)
	store := sandboxDir(dir)
	if err := os.MkdirAll(store, 0o700); err != nil {
		return runner.Summary{}, err
	}
	l, err := a.connect(w, store)
	if err != nil {
		return runner.Summary{}, err
	}
	s, err := runner.Run(hard, stop, in, p, quiet.world(w, l, dir, false))
	if cerr := l.close(); err == nil {
		err = cerr
	}
	return s, err
}

func (a *app) printTest(v tested, asJSON bool) error {
	if asJSON {
		return a.printLine(v)
	}
	word := "ok"
	if !v.OK {
		word = "FAIL"
	}
	fmt.Fprintf(a.out, "%s %s: %d steps\n", word, v.Recipe, v.Steps)
	for _, c := range v.Checks {
		if c.OK {
			fmt.Fprintf(a.out, "  %s %s: %.4g\n", c.Key, c.Want, *c.Got)
		} else {
			fmt.Fprintf(a.out, "  %s\n", c.Why)
		}
	}
	return nil
}
