package main

import (
	"fmt"

	"github.com/urfave/cli/v2"
)

func (a *app) man() *cli.Command {
	return &cli.Command{
		Name: "man", Usage: "print the manual page",
		Description: "Examples:\n  trainer man | man -l -\n  trainer man > ~/.local/share/man/man1/trainer.1",
		Action: func(c *cli.Context) error {
			explained(c.App.Name, c.App.Commands)
			page, err := c.App.ToManWithSection(1)
			if err != nil {
				return fmt.Errorf("write the manual page: %w", err)
			}
			_, err = fmt.Fprint(a.out, page)
			return err
		},
	}
}

// explained gives every command its whole synopsis and its description, which the page would leave out.
func explained(parent string, cmds []*cli.Command) {
	for _, cmd := range cmds {
		name := parent + " " + cmd.Name
		line := name
		if len(cmd.VisibleFlags()) > 0 {
			line += " [FLAGS]"
		}
		if cmd.ArgsUsage != "" {
			line += " " + cmd.ArgsUsage
		}
		if len(cmd.Subcommands) > 0 {
			line = name + " COMMAND"
		}
		cmd.UsageText = line + "\n"
		if cmd.Description != "" {
			cmd.UsageText += "\n" + cmd.Description
		}
		explained(name, cmd.Subcommands)
	}
}
