package main

import (
	"slices"
	"strings"
	"testing"
)

func TestCandidates(t *testing.T) {
	cmds := (&app{}).commands()
	for _, c := range []struct{ words, want string }{
		{"va", "validate"},
		{"data ", "show stats tokenize"},
		{"data s", "show stats"},
		{"completion ", "bash zsh fish"},
		{"data show --r", "--row"},
		{"data show recipe.yaml --sp", "--split"},
		{"run --sandbox recipe.yaml --at", "--attach"},
		{"run --set --at", ""}, // the value of a flag
		{"run rec", ""},        // a file
		{"nothing ", ""},
		{"--", "--help"},
		{"", strings.Join(names(cmds), " ")},
	} {
		if got := candidates(cmds, strings.Split(c.words, " ")); !slices.Equal(got, strings.Fields(c.want)) {
			t.Errorf("%q: got %q, want %q", c.words, got, c.want)
		}
	}
	if got := candidates(cmds, nil); got != nil {
		t.Errorf("nothing becomes %q", got)
	}
}
