package fault

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// The shapes of a Delay, which are keys of a rule.
const (
	fixed       = "fixed"
	uniform     = "uniform"
	exponential = "exponential"
)

// Delay is a distribution of durations. The zero value is always 0.
type Delay struct {
	shape     string
	low, high time.Duration // fixed: low; uniform: both; exponential: the mean is low
}

func parseDelay(shape, text string) (d Delay, err error) {
	d.shape = shape
	from, to, isRange := strings.Cut(text, "..")
	if isRange != (shape == uniform) {
		return d, fmt.Errorf("%q is not a duration such as %s", text, map[bool]string{true: "100ms..2s", false: "300ms"}[shape == uniform])
	}
	if d.low, err = duration(from); err != nil || !isRange {
		return d, err
	}
	if d.high, err = duration(to); err == nil && d.high < d.low {
		err = fmt.Errorf("%q ends before it begins", text)
	}
	return d, err
}

// at is the duration for u, which is uniform in [0, 1).
func (d Delay) at(u float64) time.Duration {
	switch d.shape {
	case uniform:
		return d.low + time.Duration(u*float64(d.high-d.low))
	case exponential:
		return time.Duration(min(-math.Log1p(-u)*float64(d.low), float64(longest)))
	}
	return d.low
}
