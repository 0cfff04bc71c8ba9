// Command trainer runs post-training experiments that are files. Each subcommand is a file of this package and a line in
// commands; the packages beside it neither read flags, nor print, nor exit.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime/debug"

	"github.com/urfave/cli/v2"

	"trainer/runner"
)

// app is the outside world of every command; tests make their own.
type app struct {
	in       io.Reader
	inTTY    bool // in is a terminal, whose person can be asked
	out, err io.Writer
	getenv   func(string) string
	tty      bool // err is a terminal that a bar can be drawn on
	width    int  // its columns, 0 when unknown
	outTTY   bool // out is a terminal too
}

func main() {
	a := &app{in: os.Stdin, out: os.Stdout, err: os.Stderr, getenv: os.Getenv}
	a.tty, a.width = terminal(os.Stderr)
	a.outTTY, _ = terminal(os.Stdout)
	a.inTTY = asks(os.Stdin)
	os.Exit(a.main(context.Background(), os.Args))
}

// commands is the table; a new one is a file and a line here.
func (a *app) commands() []*cli.Command {
	return []*cli.Command{
		a.init(), a.models(), a.validate(), a.plan(), a.data(), a.test(), a.run(), a.resume(), a.eval(), a.sample(),
		a.resolve(), a.lock(), a.diff(), a.schema(), a.runs(), a.checkpoints(), a.resources(), a.sandbox(), a.completion(), a.man(), a.version(),
	}
}

// main runs one command line and returns its exit code. A panic is caught here, behind every release that the runner
// has made on the way.
func (a *app) main(ctx context.Context, args []string) (code int) {
	defer func() {
		if p := recover(); p != nil {
			code = a.fail(&runner.Panic{Value: p, Stack: debug.Stack()})
		}
	}()
	c := &cli.App{
		Name:                      "trainer",
		Usage:                     "post-training runs from a recipe",
		UsageText:                 "trainer run recipe.yaml",
		Writer:                    a.out,
		ErrWriter:                 a.err,
		HideVersion:               true,
		DisableSliceFlagSeparator: true,
		Suggest:                   true,
		ExitErrHandler:            func(*cli.Context, error) {}, // exit.go alone prints and decides
		OnUsageError:              usageError,
		Commands:                  a.commands(),
		Action: func(c *cli.Context) error {
			if name := c.Args().First(); name != "" {
				return unknownCommand("trainer", c.App.Commands, name)
			}
			return cli.ShowAppHelp(c)
		},
	}
	for _, cmd := range c.Commands {
		strict(cmd)
	}
	return a.fail(c.RunContext(ctx, flagsFirst(c.Commands, args)))
}

// strict makes a command and those below it report wrong usage through exit.go, and ignore no word of it.
func strict(c *cli.Command) {
	c.OnUsageError = usageError
	if len(c.Subcommands) == 0 {
		c.Before = noMore
		c.HideHelpCommand = true // a file may be called help, or h; --help stays
		return
	}
	c.Action = func(ctx *cli.Context) error {
		if name := ctx.Args().First(); name != "" {
			return unknownCommand(c.HelpName, c.Subcommands, name)
		}
		return cli.ShowSubcommandHelp(ctx)
	}
	for _, sub := range c.Subcommands {
		strict(sub)
	}
}

// fail prints an error and returns the exit code.
func (a *app) fail(err error) int {
	if err != nil {
		fmt.Fprintln(a.err, message(err))
	}
	return exitCode(err)
}
