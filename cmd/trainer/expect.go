package main

import (
	"fmt"
	"maps"
	"slices"

	"trainer/internal/diag"
	"trainer/recipe"
)

// expect holds one expectation against the metrics of a run, in step order.
func expect(e recipe.Expectation, lines []map[string]float64) checked {
	c := checked{Key: e.Key, Want: fmt.Sprintf("%s %g", e.Op, e.Value)}
	var values []float64
	seen := map[string]bool{}
	for _, m := range lines {
		for k := range m {
			seen[k] = true
		}
		if v, ok := m[e.Metric]; ok {
			values = append(values, v)
		}
	}
	if len(values) == 0 {
		c.Why = fmt.Sprintf("%q: the run has no such metric%s", e.Metric, diag.DidYouMean(e.Metric, slices.Sorted(maps.Keys(seen))))
		return c
	}
	got := pick(e, values)
	c.Got = &got
	if c.OK = holds(got, e.Op, e.Value); !c.OK {
		c.Why = fmt.Sprintf("%s is %.6g, expected %s", e.Key, got, c.Want)
	}
	return c
}

// pick is the value that the expectation speaks of: the last, the first, the best, or the last over the first. The best
// is the largest where more is asked for, the smallest where less is.
func pick(e recipe.Expectation, values []float64) float64 {
	last := values[len(values)-1]
	switch e.At {
	case "first":
		return values[0]
	case "gain":
		return last / values[0]
	case "best":
		if e.Op == ">" || e.Op == ">=" {
			return slices.Max(values)
		}
		return slices.Min(values)
	}
	return last
}

func holds(got float64, op string, want float64) bool {
	switch op {
	case "<":
		return got < want
	case "<=":
		return got <= want
	case ">":
		return got > want
	case ">=":
		return got >= want
	case "==":
		return got == want
	}
	return got != want
}
