package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/google/uuid"
	"github.com/urfave/cli/v2"

	"trainer/internal/grader"
	"trainer/internal/worker"
	"trainer/runner"
)

// outsideFlags let the rewards of a recipe, which may be a stranger's, ask outside of the program.
var outsideFlags = []cli.Flag{
	&cli.BoolFlag{Name: "allow-exec", Usage: "let the recipe run its own programs (command rewards and environments, a command loss)"},
	&cli.StringSliceFlag{Name: "allow-host", Usage: "let the recipe send completions and rows to `HOST` (http and judge rewards, http environments)"},
}

// Where the judge is; a recipe can't say it.
const (
	judgeURL = "TRAINER_JUDGE_BASE_URL"
	judgeKey = "TRAINER_JUDGE_API_KEY"
)

// outside connects rewards, and a loss that is a program, as far as the flags allow. Close ends the programs that it started.
type outside struct {
	ctx     context.Context
	cancel  context.CancelFunc
	getenv  func(string) string
	log     func(line string) // told what rewards print
	lossLog func(line string) // and what a loss does
	exec    bool
	life    string // a part of the name that strangers know the run by: two lives never ask under one key
	hosts   []string

	mu    sync.Mutex
	pools []*worker.Pool
	told  map[string]bool // troubles, by reward and reason
}

func (a *app) outside(c *cli.Context) *outside {
	o := &outside{getenv: a.getenv, life: uuid.NewString(), exec: c.Bool("allow-exec"), hosts: c.StringSlice("allow-host")}
	o.ctx, o.cancel = context.WithCancel(context.WithoutCancel(c.Context))
	var mu sync.Mutex
	tell := func(who string) func(string) {
		return func(line string) {
			mu.Lock()
			defer mu.Unlock()
			if a.err != nil {
				fmt.Fprintln(a.err, who+": "+line)
			}
		}
	}
	o.log, o.lossLog = tell("grader"), tell("loss")
	return o
}

// trouble tells the first of each kind of trouble that a reward meets: with a grader that hangs, or breaks at every other
// completion, a person learns what it is, once; how many there are stands in the metrics.
func (o *outside) trouble(key string) func(reason, msg string) {
	return func(reason, msg string) {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.log == nil || o.told[key+" "+reason] {
			return
		}
		if o.told == nil {
			o.told = map[string]bool{}
		}
		o.told[key+" "+reason] = true
		o.log(fmt.Sprintf("%s: an attempt without a score (%s): %s; more of this kind are counted in the metrics alone", key, reason, msg))
	}
}

// Close ends what was started and waits for it.
func (o *outside) Close() {
	o.cancel()
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, p := range o.pools {
		p.Close()
	}
}

// Connect implements runner.Outside.
func (o *outside) Connect(g grader.Outside, key, dir string) error {
	switch g := g.(type) {
	case *grader.Command:
		return o.command(g, key, dir)
	case *grader.HTTP:
		return o.http(g, key)
	case *grader.Judge:
		return o.judge(g, key)
	}
	return runner.ErrNotAllowed
}

func (o *outside) command(g *grader.Command, key, dir string) error {
	if !o.exec {
		return runner.ErrNotAllowed
	}
	env, secrets, missing := worker.Environment(o.getenv, g.Env)
	if len(missing) > 0 {
		return fmt.Errorf("needs the environment variable %s, which is not set", strings.Join(missing, ", "))
	}
	p := worker.Start(o.ctx, worker.Command{Args: g.Command, Dir: dir, Env: env, Secrets: secrets, Kind: "reward", Params: g.Params, Run: o.life + "." + key,
		Timeout: g.Timeout, StartTimeout: g.StartTimeout, Workers: g.Workers, Retries: g.Retries, Log: o.log, Trouble: o.trouble(key)})
	o.mu.Lock()
	o.pools = append(o.pools, p)
	o.mu.Unlock()
	g.Ready = p.Ready
	g.Call = func(ctx context.Context, r grader.Request) (grader.Score, error) {
		return scoreBy(r, func(body []byte) (json.RawMessage, error) { return p.Ask(ctx, "score", body) })
	}
	return nil
}

func (o *outside) http(g *grader.HTTP, key string) error {
	if !o.allowed(g.URL) {
		return runner.ErrNotAllowed
	}
	s := worker.Dial(worker.Address{URL: g.URL, Headers: g.Headers, Getenv: o.getenv, Params: g.Params, Run: o.life + "." + key, Timeout: g.Timeout,
		Retries: g.Retries, Concurrency: g.Concurrency, Trouble: o.trouble(key)})
	g.Call = func(ctx context.Context, r grader.Request) (grader.Score, error) {
		return scoreBy(r, func(body []byte) (json.RawMessage, error) { return s.Ask(ctx, "score", r.Sample, body) })
	}
	return nil
}

func (o *outside) judge(g *grader.Judge, key string) error {
	base := o.getenv(judgeURL)
	if base == "" {
		if len(o.hosts) == 0 {
			return runner.ErrNotAllowed
		}
		return fmt.Errorf("needs the address of the judge in %s", judgeURL)
	}
	if msg := grader.CheckAddress(base); msg != "" {
		return fmt.Errorf("%s %s", judgeURL, msg)
	}
	if !o.allowed(base) {
		return runner.ErrNotAllowed
	}
	a := worker.Address{URL: base, Getenv: o.getenv, Timeout: g.Timeout, Retries: g.Retries, Concurrency: judges, Trouble: o.trouble(key)}
	if o.getenv(judgeKey) != "" {
		a.Headers = map[string]string{"Authorization": "Bearer ${env:" + judgeKey + "}"}
	}
	chat := worker.DialChat(a, g.Model, g.MaxTokens)
	g.Chat = func(ctx context.Context, message string) (reply, why string, err error) {
		reply, err = chat.Reply(ctx, message)
		var lost *worker.Lost
		if errors.As(err, &lost) {
			return "", lost.Reason, nil
		}
		return reply, "", err
	}
	return nil
}

// judges are asked at a time.
const judges = 8

// allowed says whether the host of an address was named.
func (o *outside) allowed(address string) bool {
	u, err := url.Parse(address)
	return err == nil && slices.ContainsFunc(o.hosts, func(h string) bool { return strings.EqualFold(h, u.Hostname()) || strings.EqualFold(h, u.Host) })
}

// scoreBy asks for a score; a request without a reply is unscored.
func scoreBy(r grader.Request, ask func([]byte) (json.RawMessage, error)) (grader.Score, error) {
	body, err := json.Marshal(r)
	if err != nil {
		return grader.Score{}, err
	}
	reply, err := ask(body)
	var lost *worker.Lost
	switch {
	case errors.As(err, &lost):
		return grader.Score{Unscored: true, Why: lost.Reason}, nil
	case err != nil:
		return grader.Score{}, err
	}
	return grader.ScoreOf(reply), nil
}
