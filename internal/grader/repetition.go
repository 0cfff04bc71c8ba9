package grader

import (
	"cmp"
	"context"
	"strings"
)

// Repetition is −(1 − distinct/total) over all runs of ngram units, in [−1, 0]: 0 where none comes twice. It is a penalty, to be
// given a positive weight.
type Repetition struct {
	Scope
	// Unit: tokens as sampled, or words in lower case.
	Unit string `yaml:"unit" validate:"oneof=tokens words"`
	// NGram is how many units a run has; a completion with fewer repeats nothing.
	NGram int `yaml:"ngram" validate:"gte=1,lte=100"`
}

func newRepetition() *Repetition {
	return &Repetition{Scope: newScope(FullText), Unit: Tokens, NGram: 3}
}

// Check implements Checker.
func (g *Repetition) Check() error {
	return cmp.Or(g.Scope.check(), tokensAreFull(g.Unit, g.Text))
}

// Grade implements Grader; in [−1, 0].
func (g *Repetition) Grade(_ context.Context, c Completion) (Score, error) {
	units := make([]int, 0, len(c.Tokens))
	if g.Unit == Tokens {
		for _, t := range c.Tokens {
			units = append(units, int(t))
		}
	} else {
		text, _ := g.of(c)
		units = numbered(strings.Fields(strings.ToLower(text)))
	}
	total := len(units) - g.NGram + 1
	if total < 1 {
		return paid(0), nil
	}
	return paid(-(1 - float64(distinctRuns(units, g.NGram))/float64(total))), nil
}

// numbered gives equal values the same number, and different ones different numbers.
func numbered[T comparable](values []T) []int {
	seen := make(map[T]int)
	out := make([]int, len(values))
	for i, v := range values {
		n, ok := seen[v]
		if !ok {
			n = len(seen)
			seen[v] = n
		}
		out[i] = n
	}
	return out
}

// distinctRuns counts the different runs of n units. Runs of twice the length are pairs of numbered runs, so that the work is
// len(units) × log n.
func distinctRuns(units []int, n int) int {
	runs, length := units, 1
	for length < n {
		step := min(length, n-length)
		pairs := make([][2]int, len(runs)-step)
		for i := range pairs {
			pairs[i] = [2]int{runs[i], runs[i+step]}
		}
		runs, length = numbered(pairs), length+step
	}
	distinct := make(map[int]bool)
	for _, r := range runs {
		distinct[r] = true
	}
	return len(distinct)
}
