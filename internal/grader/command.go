package grader

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Call asks a stranger's grader for the score of a completion. It is safe for concurrent use; what goes wrong on the way is an
// unscored Score, an error that the run can't go on.
type Call func(ctx context.Context, r Request) (Score, error)

// Request is what a stranger's grader is asked, beside the frame of the protocol.
type Request struct {
	Sample     string          `json:"sample"`
	Prompt     json.RawMessage `json:"prompt"`     // as Completion.Prompt
	Completion string          `json:"completion"` // as sampled
	Answer     string          `json:"answer"`     // after the reasoning
	Target     json.RawMessage `json:"target"`     // as in the row, or null
	Row        json.RawMessage `json:"row"`
	Tokens     int             `json:"tokens"` // how many were sampled
	StopReason string          `json:"stop_reason"`
}

// Command asks a program: JSON objects on its stdin and stdout, a line each. It runs only where the person allows it.
type Command struct {
	// Command is the program and its arguments, without a shell.
	Command []string `yaml:"command" validate:"required"`
	// Dir is the folder it runs in, relative to the recipe's.
	Dir string `yaml:"dir"`
	// Timeout of a request; then the program is killed and started again.
	Timeout time.Duration `yaml:"timeout" validate:"gte=1s,lte=3600s"`
	// StartTimeout is how long the program may take until it is ready.
	StartTimeout time.Duration `yaml:"start_timeout" validate:"gte=1s,lte=3600s"`
	// Workers is how many of it run.
	Workers int `yaml:"workers" validate:"gte=1,lte=256"`
	// Retries of a request on another worker before it is unscored.
	Retries int `yaml:"retries" validate:"gte=0,lte=10"`
	// Env are the names of variables that are passed on; else it has PATH, HOME, LANG and TMPDIR alone.
	Env []string `yaml:"env"`
	// Params are handed to the program when it starts.
	Params map[string]any `yaml:"params"`

	// Call asks; nil means that it is not allowed.
	Call Call `yaml:"-"`
	// Ready, set with Call, starts the program and waits until it can be asked; nil: the first Call does.
	Ready func(context.Context) error `yaml:"-"`
}

func newCommand() *Command {
	return &Command{Dir: ".", Timeout: 30 * time.Second, StartTimeout: time.Minute, Workers: 4, Retries: 2}
}

// Check implements Checker.
func (g *Command) Check() error {
	if len(g.Command) == 0 || strings.TrimSpace(g.Command[0]) == "" {
		return fault("command", "names no program; write it as [python3, grade.py]")
	}
	for _, name := range g.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") {
			return fault("env", "%q is not the name of a variable; values are never in a recipe", name)
		}
		if name == ownKey {
			return fault("env", "%s pays for GPUs and is for nobody else; leave it out", name)
		}
	}
	return nil
}

// ownKey is the API key of the training service, which no grader gets.
const ownKey = "TOGETHER_API_KEY"

// Allowed implements Outside.
func (g *Command) Allowed() bool { return g.Call != nil }

// Start implements Starter.
func (g *Command) Start(ctx context.Context) error {
	if g.Ready == nil {
		return nil
	}
	return g.Ready(ctx)
}

// Grade implements Grader.
func (g *Command) Grade(ctx context.Context, c Completion) (Score, error) { return ask(ctx, g.Call, c) }

// HTTP asks an address: a JSON object posted, one back. It is asked only where the person allows its host.
type HTTP struct {
	// URL of the grader: https, or http to this machine.
	URL string `yaml:"url" validate:"required"`
	// Timeout of a request.
	Timeout time.Duration `yaml:"timeout" validate:"gte=1s,lte=3600s"`
	// Retries of a request before it is unscored.
	Retries int `yaml:"retries" validate:"gte=0,lte=10"`
	// Concurrency bounds the requests in flight.
	Concurrency int `yaml:"concurrency" validate:"gte=1,lte=256"`
	// Headers of every request; ${env:NAME} is read from the environment when it is sent, and never written anywhere.
	Headers map[string]string `yaml:"headers"`
	// Params stand in every request.
	Params map[string]any `yaml:"params"`

	// Call asks; nil means that it is not allowed.
	Call Call `yaml:"-"`
}

func newHTTP() *HTTP { return &HTTP{Timeout: 30 * time.Second, Retries: 2, Concurrency: 8} }

// Allowed implements Outside.
func (g *HTTP) Allowed() bool { return g.Call != nil }

// Grade implements Grader.
func (g *HTTP) Grade(ctx context.Context, c Completion) (Score, error) { return ask(ctx, g.Call, c) }

var errNotAllowed = errors.New("asks outside without leave")

func ask(ctx context.Context, call Call, c Completion) (Score, error) {
	if call == nil {
		return Score{}, errNotAllowed
	}
	answer, _ := newScope(AfterReasoning).of(c)
	return call(ctx, Request{
		Sample: c.Sample, Prompt: orNull(c.Prompt), Completion: c.Text, Answer: answer, Target: orNull(c.Target), Row: orNull(c.Row),
		Tokens: len(c.Tokens), StopReason: c.StopReason,
	})
}

func orNull(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("null")
	}
	return raw
}

// maxInfo bounds what is kept with a sample, and maxReason why there is no score.
const (
	maxInfo   = 64 << 10
	maxReason = 200
)

// ScoreOf reads the reply of a stranger's grader, a JSON object: a finite number is a score, anything else is none.
func ScoreOf(reply []byte) Score {
	var r struct {
		Score  json.RawMessage `json:"score"`
		Reason string          `json:"reason"`
		Error  json.RawMessage `json:"error"`
		Info   json.RawMessage `json:"info"`
	}
	if err := json.Unmarshal(reply, &r); err != nil {
		return unscored(BadReply)
	}
	s := scoreOf(r.Score, r.Reason)
	if len(r.Error) > 0 && string(r.Error) != "null" {
		s = unscored(Failed)
	}
	if len(r.Info) > 0 && r.Info[0] == '{' && len(r.Info) <= maxInfo {
		s.Info = r.Info
	}
	return s
}

func scoreOf(raw json.RawMessage, reason string) Score {
	switch {
	case len(raw) == 0:
		return unscored(Missing)
	case string(raw) == "null" && reason != "":
		return unscored(strings.ToValidUTF8(reason[:min(len(reason), maxReason)], ""))
	case string(raw) == "null":
		return unscored(Null)
	case raw[0] != '-' && (raw[0] < '0' || raw[0] > '9'):
		return unscored(NotANumber)
	}
	v, err := strconv.ParseFloat(string(raw), 64)
	if err != nil && !math.IsInf(v, 0) {
		return unscored(NotANumber)
	}
	return finite(v)
}

// Refused says what a person has to allow for a kind that asks outside.
func Refused(g Outside) string {
	switch g := g.(type) {
	case *Command:
		return fmt.Sprintf("runs %q on this machine; read it, then allow it with --allow-exec", g.Command)
	case *HTTP:
		return fmt.Sprintf("sends completions and rows to %s; allow it with --allow-host %s", hostOf(g.URL), hostOf(g.URL))
	}
	return "sends completions to a model of others, at TRAINER_JUDGE_BASE_URL; allow it with --allow-host and its host"
}
