package main

import (
	_ "embed" // the scripts
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// What a shell is told to do with the words that `trainer completion words` prints.
var (
	//go:embed completion/bash
	bashScript string
	//go:embed completion/zsh
	zshScript string
	//go:embed completion/fish
	fishScript string
)

func (a *app) completion() *cli.Command {
	script := func(shell, text, install string) *cli.Command {
		return &cli.Command{
			Name: shell, Usage: "print the script for " + shell,
			Description: "Example:\n  " + install,
			Action: func(*cli.Context) error {
				_, err := fmt.Fprint(a.out, text)
				return err
			},
		}
	}
	return &cli.Command{
		Name: "completion", Usage: "print what makes a shell complete commands and flags",
		Subcommands: []*cli.Command{
			script("bash", bashScript, "trainer completion bash > ~/.local/share/bash-completion/completions/trainer"),
			script("zsh", zshScript, "trainer completion zsh > \"${fpath[1]}/_trainer\""),
			script("fish", fishScript, "trainer completion fish > ~/.config/fish/completions/trainer.fish"),
			{
				Name: "words", Usage: "print what the last word can become", ArgsUsage: "WORD…", Hidden: true,
				Action: func(c *cli.Context) error {
					for _, word := range candidates(c.App.Commands, c.Args().Slice()) {
						fmt.Fprintln(a.out, word)
					}
					return nil
				},
			},
		},
	}
}

// candidates are what the last word of a command line can become: commands, or flags where it begins with a dash. There are none
// where a file is due, or the value of a flag.
func candidates(cmds []*cli.Command, words []string) []string {
	if len(words) == 0 {
		return nil
	}
	last := words[len(words)-1]
	var cmd *cli.Command
	for i, word := range words[:len(words)-1] {
		if cmd != nil && strings.HasPrefix(word, "-") {
			if i == len(words)-2 && takesValue(cmd, word) {
				return nil
			}
			continue
		}
		if next := find(cmds, word); next != nil {
			cmd, cmds = next, next.Subcommands
		} else if len(cmds) > 0 {
			return nil // a word that is no command: what follows it is not known
		}
	}
	var all []string
	if strings.HasPrefix(last, "-") {
		all = flagWords(cmd)
	} else {
		for _, c := range cmds {
			if !c.Hidden {
				all = append(all, c.Name)
			}
		}
	}
	return slices.DeleteFunc(all, func(word string) bool { return !strings.HasPrefix(word, last) })
}

// flagWords are the flags of a command as they are written; the program's own where it is nil.
func flagWords(cmd *cli.Command) []string {
	out := []string{"--help"}
	if cmd == nil {
		return out
	}
	for _, f := range cmd.Flags {
		for _, name := range f.Names() {
			if len(name) > 1 && name != "help" {
				out = append(out, "--"+name)
			}
		}
	}
	slices.Sort(out)
	return out
}
