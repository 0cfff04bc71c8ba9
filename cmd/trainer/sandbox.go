package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/urfave/cli/v2"

	"trainer/internal/sandbox"
)

func (a *app) sandbox() *cli.Command {
	return &cli.Command{
		Name: "sandbox", Usage: "the API on this machine, with a small model that really trains",
		Subcommands: []*cli.Command{{
			Name: "serve", Usage: "serve the API to any client",
			Description: "Serves until Ctrl-C. State is kept in --dir, in memory without it. Where TRAINER_SANDBOX_KEY is set, clients must\nsend it as their bearer key.\n\n" +
				"Examples:\n  trainer sandbox serve --dir sandbox-state\n  TOGETHER_BASE_URL=http://127.0.0.1:8431 TOGETHER_API_KEY=any python loop.py",
			Flags: []cli.Flag{
				&cli.StringFlag{Name: "addr", Usage: "listen on `HOST:PORT`", Value: "127.0.0.1:8431"},
				&cli.StringFlag{Name: "dir", Usage: "keep the state in `DIR`"},
				&cli.DurationFlag{Name: "provision", Usage: "how long a resource waits for its GPUs"},
			},
			Action: func(c *cli.Context) error {
				hard, stop, done := signals(c.Context)
				defer done()
				o := sandbox.Options{Dir: c.String("dir"), Key: a.getenv("TRAINER_SANDBOX_KEY"), Provision: c.Duration("provision")}
				return a.serve(hard, stop, c.String("addr"), o)
			},
		}},
	}
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
