package runner

import (
	"errors"
	"testing"
)

// TestHopeless: only what trains makes a run hopeless, and only by a code that comes of the rows.
func TestHopeless(t *testing.T) {
	cases := []struct {
		kind, code string
		want       bool
	}{
		{kindForwardBackward, "NON_FINITE_LOSS", true},
		{kindOptimStep, "INVALID_INPUT", true},
		{kindOptimStep, "TIMEOUT", false},
		{kindEval, "INVALID_INPUT", false},
		{kindTraining, "INVALID_INPUT", false},
	}
	for _, c := range cases {
		g := newGeneration(0, 0, origin{})
		g.intents = []intentRecord{{Kind: c.kind, Key: "k"}}
		g.results["k"] = resultRecord{Key: "k", Status: "FAILED", Code: c.code}
		err := (&past{gens: []*generation{g}}).hopeless()
		if got := errors.Is(err, ErrHopeless); got != c.want || got != (err != nil) {
			t.Errorf("%s, %s: %v", c.kind, c.code, err)
		}
	}
}
