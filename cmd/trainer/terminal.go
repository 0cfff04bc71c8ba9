package main

import (
	"os"

	"golang.org/x/term"
)

// terminal says whether f is one, and how many columns it has.
func terminal(f *os.File) (bool, int) {
	fd := int(f.Fd())
	if !term.IsTerminal(fd) || os.Getenv("TERM") == "dumb" {
		return false, 0
	}
	w, _, err := term.GetSize(fd)
	return err == nil && w > 0, w
}

// asks says whether somebody can type into f.
func asks(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

func (a *app) color() bool { return a.tty && a.getenv("NO_COLOR") == "" }
