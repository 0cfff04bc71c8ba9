package loss

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// What a step of a Command is made of; the words of its rows.
const (
	Examples = "supervised" // rows as cross_entropy takes them
	Pairs    = "pairs"      // a chosen and a rejected sequence of one Group, in this order
	Labelled = "labelled"   // sequences that are Desirable or not
)

// Command is a loss of the user's own. A program is told the log-probabilities of a step, and answers with the value and its
// derivative by each of them: JSON objects on its stdin and stdout, a line each. It runs only where the person allows it.
type Command struct {
	// Command is the program and its arguments, without a shell.
	Command []string `yaml:"command" validate:"required"`
	// Dir is the folder it runs in, relative to the recipe's.
	Dir string `yaml:"dir"`
	// Rows is what it is told of: supervised takes rows as cross_entropy does, pairs those of dpo, labelled those of kto.
	Rows string `yaml:"rows" validate:"oneof=supervised pairs labelled"`
	// Reference also tells it the log-probabilities under the frozen reference.
	Reference bool `yaml:"reference" default:"false"`
	// Params are handed to the program when it starts.
	Params map[string]any `yaml:"params"`
	// Env are the names of variables that are passed on; else it has PATH, HOME, LANG and TMPDIR alone.
	Env []string `yaml:"env"`
	// Timeout of a step; then the program is killed and started again.
	Timeout time.Duration `yaml:"timeout" validate:"gte=1s,lte=3600s"`
	// StartTimeout is how long the program may take until it is ready.
	StartTimeout time.Duration `yaml:"start_timeout" validate:"gte=1s,lte=3600s"`
	// Retries of a step whose program died, hung or talked out of turn, before the run stops.
	Retries int `yaml:"retries" validate:"gte=0,lte=10"`

	// Call sends a question, a JSON object, and returns the answer, one too. It is safe for concurrent use; nil means that it
	// is not allowed.
	Call func(ctx context.Context, question []byte) (answer []byte, err error) `yaml:"-"`
}

func newCommand() *Command {
	return &Command{Dir: ".", Rows: Examples, Timeout: 5 * time.Minute, StartTimeout: 2 * time.Minute, Retries: 2}
}

// serviceKey is the API key of the training service, which no program gets.
const serviceKey = "TOGETHER_API_KEY"

// Check implements Checker.
func (l *Command) Check() error {
	if len(l.Command) == 0 || strings.TrimSpace(l.Command[0]) == "" {
		return fault("command", "names no program; write it as [python3, loss.py]")
	}
	for _, name := range l.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") {
			return fault("env", "%q is not the name of a variable; values are never in a recipe", name)
		}
		if name == serviceKey {
			return fault("env", "%s pays for GPUs and is for nobody else; leave it out", name)
		}
	}
	return oneOf("rows", l.Rows, Examples, Pairs, Labelled)
}

// UsesReference implements Referenced.
func (l *Command) UsesReference() bool { return l.Reference }

// Why a program is asked, as it is told.
const (
	ToTrain    = "train" // the step's gradient is applied
	ToEvaluate = "eval"  // rows that are held out: the gradient is not used
	ToCheck    = "check" // made-up log-probabilities
)

// Question is what a program is asked beside the frame of the protocol: Use is one of the constants, Step the 0-based step, or
// how many were done at an evaluation.
type Question struct {
	Use  string
	Step int
}

var errNotAllowed = errors.New("its program is not allowed to run")

// Ask is Eval with what the program is told of the step. The metrics are those that it names. ErrInvalid as DPO.Eval where
// step is not what Rows says, for an error that the program reports, and for an answer of another shape; ErrNonFinite for
// one with a number that float32 cannot hold; else the error is that of Call.
func (l *Command) Ask(ctx context.Context, q Question, now [][]float64, step []Datum) (Result, error) {
	r, err := l.ask(ctx, q, now, step)
	return named("command", r, err)
}

// Eval implements Loss: Ask without a step.
func (l *Command) Eval(now [][]float64, step []Datum) (Result, error) {
	return l.Ask(context.Background(), Question{Use: ToCheck}, now, step)
}

func (l *Command) ask(ctx context.Context, q Question, now [][]float64, step []Datum) (Result, error) {
	var columns []column
	if l.Reference {
		columns = referenced
	}
	if err := ready(l, now, step, columns...); err != nil {
		return Result{}, err
	}
	if err := l.paired(step); err != nil {
		return Result{}, err
	}
	if l.Call == nil {
		return Result{}, errNotAllowed
	}
	question, err := l.question(q, now, step)
	if err != nil {
		return Result{}, err
	}
	answer, err := l.Call(ctx, question)
	if err != nil {
		return Result{}, err
	}
	return answerOf(answer, step)
}

// paired holds a step of pairs to what its order says.
func (l *Command) paired(step []Datum) error {
	if l.Rows != Pairs {
		return nil
	}
	if len(step)%2 != 0 {
		return fmt.Errorf("%d sequences, which are not pairs: %w", len(step), ErrInvalid)
	}
	for c := 0; c < len(step); c += 2 {
		if step[c].Group != step[c+1].Group {
			return fmt.Errorf("sequences %d and %d are of groups %d and %d, not of one pair: %w", c, c+1, step[c].Group, step[c+1].Group, ErrInvalid)
		}
	}
	return nil
}
