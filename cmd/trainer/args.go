package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"trainer/internal/diag"
	"trainer/recipe"
)

// usage is a wrong command line.
type usage struct{ text string }

func (u *usage) Error() string { return u.text }

func usageError(c *cli.Context, err error, _ bool) error {
	text := err.Error()
	if name, ok := strings.CutPrefix(text, "flag provided but not defined: -"); ok {
		text = unknownFlag(c, strings.TrimLeft(name, "-"))
	}
	return &usage{fmt.Sprintf("%s: %s; see `%s --help`", c.Command.HelpName, text, c.Command.HelpName)}
}

// unknownFlag names the flag, and what it may have meant: another flag, or a key of the recipe.
func unknownFlag(c *cli.Context, name string) string {
	text := fmt.Sprintf("--%s is not a flag", name)
	key := strings.ReplaceAll(name, "-", "_")
	var flags []string
	for _, f := range c.Command.Flags {
		flags = append(flags, f.Names()...)
	}
	if path := recipeKey(recipe.Keys(), key); path != "" && slices.Contains(flags, "set") {
		return fmt.Sprintf("%s; a value of the recipe is set with --set %s=VALUE", text, path)
	}
	if c.Command.Name == "" || c.Command.Name == "trainer" {
		if slices.Contains(names(c.App.Commands), name) {
			return fmt.Sprintf("%s; it is a command: `trainer %s`", text, name)
		}
	}
	if n := diag.Nearest(name, flags); n != "" {
		text += fmt.Sprintf("; did you mean --%s?", n)
	}
	return text
}

// recipeKey finds the first key of the recipe whose last name is key; "" when there is none.
func recipeKey(k *recipe.Key, key string) string {
	for _, sub := range k.Keys {
		if sub.Name == key {
			return sub.Path
		}
		if path := recipeKey(sub, key); path != "" {
			return path
		}
	}
	return ""
}

func unknownCommand(parent string, cmds []*cli.Command, name string) error {
	return &usage{fmt.Sprintf("%s: %q is not a command%s; see `%s --help`", parent, name, diag.DidYouMean(name, names(cmds)), parent)}
}

func names(cmds []*cli.Command) []string {
	out := make([]string, len(cmds))
	for i, c := range cmds {
		out[i] = c.Name
	}
	return out
}

// noMore refuses arguments beyond those that ArgsUsage names: an ignored word is a run that was not asked for.
func noMore(c *cli.Context) error {
	takes := c.Command.ArgsUsage
	most := len(strings.Fields(takes))
	if strings.HasSuffix(takes, "…") || c.NArg() <= most {
		return nil
	}
	if most == 0 {
		takes = "nothing"
	}
	return &usage{fmt.Sprintf("%s: takes %s; %q is too much", c.Command.HelpName, takes, c.Args().Get(most))}
}

// flagsFirst moves the flags of a command in front of its arguments, since the library stops at the first argument:
// `trainer run recipe.yaml --sandbox` means what it says. Behind "--" nothing is moved.
func flagsFirst(cmds []*cli.Command, args []string) []string {
	for i := 1; i < len(args); i++ {
		if strings.HasPrefix(args[i], "-") {
			continue
		}
		cmd := find(cmds, args[i])
		if cmd == nil {
			return args
		}
		if len(cmd.Subcommands) > 0 {
			rest := flagsFirst(cmd.Subcommands, args[i:])
			return append(slices.Clone(args[:i]), rest...)
		}
		flags, plain := split(cmd, args[i+1:])
		if asksHelp(flags) { // of the command, not of a subject that an argument names
			return append(slices.Clone(args[:i+1]), "--help")
		}
		return slices.Concat(args[:i+1], flags, plain)
	}
	return args
}

// asksHelp says whether --help is among the flags.
func asksHelp(flags []string) bool {
	return slices.ContainsFunc(flags, func(f string) bool { return f == "--help" || f == "-help" || f == "-h" || f == "--h" })
}

func find(cmds []*cli.Command, name string) *cli.Command {
	for _, c := range cmds {
		if c.HasName(name) {
			return c
		}
	}
	return nil
}

// split tells flags, with their values, from arguments.
func split(cmd *cli.Command, args []string) (flags, plain []string) {
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if arg == "--" {
			return flags, append(append(plain, "--"), args[i+1:]...)
		}
		if !strings.HasPrefix(arg, "-") || arg == "-" {
			plain = append(plain, arg)
			continue
		}
		flags = append(flags, arg)
		if !takesValue(cmd, arg) {
			continue
		}
		if i++; i == len(args) {
			return flags, nil // it stays last, so that the library sees that its value is missing
		}
		flags = append(flags, args[i])
	}
	return flags, plain
}

// takesValue says whether the value of a flag is the next word. An unknown flag is left to the library to refuse.
func takesValue(cmd *cli.Command, arg string) bool {
	name, _, inline := strings.Cut(strings.TrimLeft(arg, "-"), "=")
	if inline {
		return false
	}
	for _, f := range cmd.Flags {
		if !slices.Contains(f.Names(), name) {
			continue
		}
		_, isBool := f.(*cli.BoolFlag)
		return !isBool
	}
	return false
}
