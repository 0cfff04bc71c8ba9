package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"trainer/internal/sandbox"
	"trainer/internal/sandbox/fault"
)

func (a *app) sandbox() *cli.Command {
	return &cli.Command{
		Name: "sandbox", Usage: "the API on this machine, with a small model that really trains",
		Subcommands: []*cli.Command{{
			Name: "serve", Usage: "serve the API to any client",
			Description: "Serves until Ctrl-C. State is kept in --dir, in memory without it. Where TRAINER_SANDBOX_KEY is set, clients must\nsend it as their bearer key.\n\n" +
				"Examples:\n  trainer sandbox serve --dir sandbox-state\n  TOGETHER_BASE_URL=http://127.0.0.1:8431 TOGETHER_API_KEY=any python loop.py\n" +
				"  trainer sandbox serve --fault drop:when=after,rate=0.1 --fault fail:on=optim-step,at=3 --fault-seed 7\n\n" +
				sandboxTables(),
			Flags: []cli.Flag{
				&cli.StringFlag{Name: "addr", Usage: "listen on `HOST:PORT`", Value: "127.0.0.1:8431"},
				&cli.StringFlag{Name: "dir", Usage: "keep the state in `DIR`"},
				&cli.DurationFlag{Name: "provision", Usage: "how long a resource waits for its GPUs"},
				&cli.Float64Flag{Name: "speed", Usage: "let time run `N` times as fast: queues, billing, expiry, --gpu-profile", Value: 1},
				&cli.StringFlag{Name: "gpu-profile", Usage: "let operations take as long as by the profile `NAME`"},
				&cli.StringSliceFlag{Name: "op-time", Usage: "let operations take `KIND=BASE+PER_TOKEN`,…, over the profile's: forward-backward=50ms+40us,optim-step=100ms"},
				&cli.StringSliceFlag{Name: "choice", Usage: "decide `NAME=VALUE` where the API's contract says nothing"},
				&cli.StringSliceFlag{Name: "fault", Usage: "let go wrong `NAME[:key=value,…]`"},
				&cli.Uint64Flag{Name: "fault-seed", Usage: "decide the faults from `N`; drawn, and printed, where it is not given"},
				&cli.BoolFlag{Name: "allow-fault-headers", Usage: "let requests ask for faults of their own by " + sandbox.FaultHeader},
			},
			Action: func(c *cli.Context) error {
				hard, stop, done := signals(c.Context)
				defer done()
				o, err := a.sandboxOptions(c)
				if err != nil {
					return err
				}
				return a.serve(hard, stop, c.String("addr"), o)
			},
		}, a.probe()},
	}
}

// sandboxOptions reads the flags of serve, and tells the seed that repeats its faults.
func (a *app) sandboxOptions(c *cli.Context) (o sandbox.Options, err error) {
	o = sandbox.Options{
		Dir: c.String("dir"), Key: a.getenv("TRAINER_SANDBOX_KEY"), Provision: c.Duration("provision"), Speed: c.Float64("speed"),
		Choices: sandbox.Choices{}, FaultSeed: c.Uint64("fault-seed"), FaultHeaders: c.Bool("allow-fault-headers"),
		Log: func(format string, v ...any) { fmt.Fprintf(a.err, format+"\n", v...) },
	}
	if !(o.Speed > 0 && o.Speed <= sandbox.MaxSpeed) {
		return o, wrongFlag("speed", fmt.Errorf("%v is not above 0 and at most %v", o.Speed, sandbox.MaxSpeed))
	}
	if name := c.String("gpu-profile"); name != "" {
		if o.OpTime, err = sandbox.FindGPUProfile(name); err != nil {
			return o, wrongFlag("gpu-profile", err)
		}
	}
	for _, text := range c.StringSlice("op-time") {
		if o.OpTime, err = o.OpTime.With(text); err != nil {
			return o, wrongFlag("op-time", err)
		}
	}
	for _, text := range c.StringSlice("choice") {
		if err := o.Choices.Set(text); err != nil {
			return o, wrongFlag("choice", err)
		}
	}
	for _, text := range c.StringSlice("fault") {
		rule, err := sandbox.ParseFault(text)
		if err != nil {
			return o, wrongFlag("fault", err)
		}
		o.Faults = append(o.Faults, rule)
	}
	if !c.IsSet("fault-seed") {
		o.FaultSeed = rand.Uint64()
	}
	if len(o.Faults) > 0 {
		fmt.Fprintf(a.err, "faults are decided from the seed %d; --fault-seed %d repeats them\n", o.FaultSeed, o.FaultSeed)
	}
	return o, nil
}

func wrongFlag(name string, err error) error {
	return &usage{fmt.Sprintf("--%s: %v; see `trainer sandbox serve --help`", name, err)}
}

// sandboxTables lists what --fault, --choice and --gpu-profile take.
func sandboxTables() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "Faults, each with its keys, besides rate, at, times, on, except:")
	for _, k := range fault.Kinds() {
		fmt.Fprintf(w, "  %s\t%s\n", k.Kind, strings.Join(k.Keys, " "))
	}
	fmt.Fprintln(w, "\nChoices, the first value being the default:")
	for _, c := range sandbox.AllChoices() {
		fmt.Fprintf(w, "  %s\t%s\n", c.Choice, strings.Join(c.Values, " "))
	}
	fmt.Fprintln(w, "\nGPU profiles:")
	for _, p := range sandbox.GPUProfiles() {
		fmt.Fprintf(w, "  %s\t%s\n", p.Name, p.Does)
	}
	_ = w.Flush()
	return b.String() + "\ndocs/sandbox.md says what each of them does."
}

// serve answers until stop ends, then lets running requests finish.
func (a *app) serve(hard, stop context.Context, addr string, o sandbox.Options) (err error) {
	s, err := sandbox.Open(o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	srv := &http.Server{Handler: s, ReadHeaderTimeout: 30 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(ln) }()
	fmt.Fprintf(a.err, "sandbox at http://%s (set TOGETHER_BASE_URL to it)\n", ln.Addr())
	select {
	case err := <-failed:
		return err
	case <-stop.Done():
	}
	ctx, cancel := context.WithTimeout(hard, 10*time.Second)
	defer cancel()
	_ = srv.Shutdown(ctx)
	return nil
}
