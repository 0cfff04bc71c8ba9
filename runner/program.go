package runner

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"trainer/internal/diag"
	"trainer/loss"
	"trainer/recipe"
)

// Programs lets the loss of a recipe be a program of the user's.
type Programs interface {
	// ConnectLoss sets what l asks with; dir is the folder that it runs in. The error is an ErrNotAllowed, or says what is
	// missing.
	ConnectLoss(l *loss.Command, dir string) error
}

// OpenLoss lets a loss that is a program ask it, where out does: every other loss is ready as it is. unchecked says that it may
// not, with lenient; else that is refused. The error is a diag.List.
func OpenLoss(r *recipe.Recipe, out Programs, lenient bool) (unchecked string, err error) {
	l, ok := r.Loss.Params.(*loss.Command)
	if !ok {
		return "", nil
	}
	err = ErrNotAllowed
	if out != nil {
		err = out.ConnectLoss(l, folderOf(r, l))
	}
	switch {
	case err == nil:
		return "", nil
	case !errors.Is(err, ErrNotAllowed):
		return "", programFault(r, "%v", err)
	}
	text := fmt.Sprintf("runs %q on this machine; read it, then allow it with --allow-exec", l.Command)
	if lenient {
		return "loss.params.command, which " + text, nil
	}
	return "", programFault(r, "%s", text)
}

func folderOf(r *recipe.Recipe, l *loss.Command) string { return r.ProgramDir("loss.params", l.Dir) }

func programFault(r *recipe.Recipe, format string, a ...any) error {
	return diag.List{{Pos: r.At("loss.params.command"), Key: "loss.params.command", Msg: fmt.Sprintf(format, a...)}}
}

// program is the loss of the recipe, where it is one that may ask; nil: it is another.
func (in *Inputs) program() *loss.Command {
	l, ok := in.Recipe.Loss.Params.(*loss.Command)
	if !ok || l.Call == nil {
		return nil
	}
	return l
}

// triedRows are what a program is tried with.
const triedRows = 4

// firstRows are those of the training set, as a step.
func (in *Inputs) firstRows() ([]loss.Datum, error) {
	var step []loss.Datum
	for i := range min(triedRows, in.Train.Len()) {
		row, err := in.Train.Row(i)
		if err != nil {
			return nil, drifted(err)
		}
		step = append(step, row.Data...)
	}
	return step, nil
}

// TryLoss asks a loss that is a program once, about the first rows under made-up log-probabilities, so that one which does not
// answer is found before anything is paid. A loss that may not ask, or asks nobody, is left alone. The error is a diag.List, or
// that of ctx.
func (in *Inputs) TryLoss(ctx context.Context) error {
	l := in.program()
	if l == nil {
		return nil
	}
	step, err := in.firstRows()
	if err != nil {
		return err
	}
	now, step := loss.MadeUp(step)
	_, err = l.Ask(ctx, loss.Question{Use: loss.ToCheck}, now, step)
	return in.refusal(ctx, err)
}

// CheckLoss holds the gradient of a loss that is a program to finite differences of its value, on the first rows under made-up
// log-probabilities. The error is a diag.List, also where the recipe's loss is no program, or that of ctx.
func (in *Inputs) CheckLoss(ctx context.Context) (loss.Slopes, error) {
	l := in.program()
	if l == nil {
		r := in.Recipe
		return loss.Slopes{}, diag.List{{Pos: r.At("loss.type"), Key: "loss.type", Msg: fmt.Sprintf("%q is built in, and its gradient is checked by its own tests; a loss of type command can be checked", r.Loss.Type)}}
	}
	step, err := in.firstRows()
	if err != nil {
		return loss.Slopes{}, err
	}
	now, step := loss.MadeUp(step)
	s, err := loss.Compare(func(now [][]float64) (loss.Result, error) {
		return l.Ask(ctx, loss.Question{Use: loss.ToCheck}, now, step)
	}, now, step)
	if err == nil && !s.Right() {
		err = fmt.Errorf("the gradient is not that of the value: sequence %d, position %d: grads has %.9g, and moving the log-probability changes the loss by %.9g a nat, a relative error of %.1e; at most %.0e is right for a loss in float64",
			s.Sequence, s.Position, s.Grad, s.Slope, s.Worst, loss.Tolerance)
	}
	return s, in.refusal(ctx, err)
}

// refusal puts what a program did wrong at its place in the recipe.
func (in *Inputs) refusal(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return programFault(in.Recipe, "tried on the first rows: %v", err)
}

// lockPrograms enters the files that the arguments of a program name, by their bytes. A program that is found by PATH is of the
// machine, as the libraries that it loads are.
func lockPrograms(r *recipe.Recipe, l Lock) error {
	c, ok := r.Loss.Params.(*loss.Command)
	if !ok {
		return nil
	}
	for i, arg := range c.Command {
		if i == 0 && !strings.ContainsRune(filepath.ToSlash(arg), '/') {
			continue
		}
		path := arg
		if !filepath.IsAbs(path) {
			path = filepath.Join(folderOf(r, c), path)
		}
		if at, err := os.Stat(path); err != nil || !at.Mode().IsRegular() {
			continue // an argument that is no file
		}
		sum, err := hashFile(path)
		if err != nil {
			return fmt.Errorf("read the program of the loss: %w", err)
		}
		l["loss.params.command."+strconv.Itoa(i)] = sum
	}
	return nil
}

func hashFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// compares says that rows are compared: pairs, or labelled.
func compares(r *recipe.Recipe) bool {
	return slices.ContainsFunc(r.Formats(), func(f string) bool { return f == "preference" || f == "labelled" })
}
