package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"

	"github.com/urfave/cli/v2"
	"golang.org/x/sync/errgroup"

	"trainer/internal/chat"
	"trainer/internal/dataset"
	"trainer/recipe"
	"trainer/runner"
)

func (a *app) data() *cli.Command {
	return &cli.Command{
		Name: "data", Usage: "look at rows as they will train",
		Subcommands: []*cli.Command{a.dataShow(), a.dataStats(), a.dataTokenize()},
	}
}

var splitFlag = &cli.StringFlag{Name: "split", Value: "train", Usage: "`SET` of rows: train or validation"}

// openData opens the rows of a recipe, with sets beside those of the command line, and plans nothing.
func (a *app) openData(c *cli.Context, path string, sets ...string) (*runner.Inputs, error) {
	r, err := recipe.Load(path, append(c.StringSlice("set"), sets...)...)
	if err != nil {
		return nil, err
	}
	own := strings.HasPrefix(r.BaseModel, runner.SandboxPrefix)
	return runner.Open(c.Context, r, a.hub(c), own || c.Bool("sandbox"))
}

// setOf is the set that --split names.
func setOf(c *cli.Context, in *runner.Inputs) (*dataset.Set, error) {
	switch split := c.String("split"); {
	case split == "train":
		return in.Train, nil
	case split != "validation":
		return nil, &usage{fmt.Sprintf("%s: --split %q: give train or validation", c.Command.HelpName, split)}
	case in.Held == nil:
		return nil, &usage{fmt.Sprintf("%s: --split validation: %s holds no rows out; see dataset.validation and dataset.validation_split", c.Command.HelpName, in.Recipe.Path())}
	}
	return in.Held, nil
}

// chunk is the rows that one goroutine renders at a time: enough to be worth handing over.
const chunk = 256

// eachRow reads the first n rows of a set on all cores, and hands what work makes of each to take, in order and from one
// goroutine. A few chunks are in memory at a time.
func eachRow[T any](ctx context.Context, set *dataset.Set, n int, work func(i int, exs []chat.Example) (T, error), take func(T) error) error {
	g, ctx := errgroup.WithContext(ctx)
	type made struct {
		of  []T
		err error
	}
	order := make(chan chan made, 2*runtime.GOMAXPROCS(0))
	g.Go(func() error {
		defer close(order)
		busy := make(chan struct{}, runtime.GOMAXPROCS(0))
		for from := 0; from < n; from += chunk {
			done := make(chan made, 1)
			select {
			case order <- done:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			busy <- struct{}{}
			g.Go(func() error {
				defer func() { <-busy }()
				of, err := rowsOf(set, from, min(from+chunk, n), work)
				done <- made{of, err}
				return nil
			})
		}
		return nil
	})
	g.Go(func() error {
		for done := range order {
			m := <-done
			for _, t := range m.of {
				if err := take(t); err != nil {
					return err
				}
			}
			if m.err != nil {
				return m.err
			}
		}
		return nil
	})
	return g.Wait()
}

// rowsOf is what work makes of the rows [from, to), up to the first error.
func rowsOf[T any](set *dataset.Set, from, to int, work func(int, []chat.Example) (T, error)) ([]T, error) {
	out := make([]T, 0, to-from)
	for i := from; i < to; i++ {
		exs, err := set.Examples(i)
		if errors.Is(err, dataset.ErrChanged) {
			return out, fmt.Errorf("%w; run the command again", err)
		}
		if err != nil {
			return out, err
		}
		t, err := work(i, exs)
		if err != nil {
			return out, err
		}
		out = append(out, t)
	}
	return out, nil
}
