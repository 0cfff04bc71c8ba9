package main

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"trainer/internal/hub"
	"trainer/internal/report"
)

// Flags of commands that need what the hub has: those that run fetch it unless they are told not to, those that look fetch nothing
// unless they are told to.
var (
	offlineFlag = &cli.BoolFlag{Name: "offline", Usage: "fetch nothing from the hub: what is not in the cache is an error"}
	onlineFlag  = &cli.BoolFlag{Name: "online", Usage: "fetch what the recipe names and the cache does not have"}
)

// hub is where the inputs of a command come from, by its flags and the environment. The commands without --offline fetch only
// under --online.
func (a *app) hub(c *cli.Context) *hub.Hub {
	h := hub.New(a.getenv)
	switch {
	case h.Offline != "": // the environment has the last word
	case c.Bool(offlineFlag.Name):
		h.Offline = "--offline fetches nothing"
	case !knows(c, offlineFlag.Name) && !c.Bool(onlineFlag.Name):
		h.Offline = "--online fetches it"
	}
	f := &report.Fetching{Out: a.err, TTY: a.tty}
	h.Progress = f.Move
	h.Retried = func(text string) { fmt.Fprintf(a.err, "trainer: %s\n", text) }
	return h
}

func knows(c *cli.Context, flag string) bool {
	for _, f := range c.Command.Flags {
		for _, n := range f.Names() {
			if n == flag {
				return true
			}
		}
	}
	return false
}
