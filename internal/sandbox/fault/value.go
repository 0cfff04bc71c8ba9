package fault

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"trainer/internal/diag"
)

// longest bounds every duration of a rule, so that sums of them stay far from what a clock can hold.
const longest = 10 * 365 * 24 * time.Hour

// common are the keys of every kind.
func common() []string { return []string{"rate", "at", "times", "on", "except"} }

func (i Info) keys() []string {
	out := common()
	for _, k := range i.Keys {
		out = append(out, strings.Split(k, "|")...)
	}
	return out
}

// set takes one key=value.
func (r *Rule) set(i Info, key, value string) (err error) {
	if keys := i.keys(); !slices.Contains(keys, key) {
		return fmt.Errorf("it has no key %q%s; it has %s", key, diag.DidYouMean(key, keys), strings.Join(keys, ", "))
	}
	switch key {
	case "rate":
		r.Rate, err = share(value)
	case "at":
		r.At, err = number(value, 1, math.MaxInt32)
	case "times":
		r.Times, err = number(value, 1, math.MaxInt32)
	case "on":
		r.On = strings.Split(value, "+")
	case "except":
		r.Except = strings.Split(value, "+")
	case "when":
		r.When = When(value)
		err = oneOf(value, string(Before), string(After))
	case "status":
		least := 500
		if r.Kind == RefuseStop {
			least = 400
		}
		r.Status, err = number(value, least, least+99)
	case "retry_after":
		r.RetryAfter, err = duration(value)
	case fixed, uniform, exponential:
		r.Delay, err = parseDelay(key, value)
	case "code":
		r.Code = value
		switch r.Kind {
		case Fail:
			err = oneOf(value, operationCodes()...)
		case JobError:
			err = oneOf(value, jobCodes()...)
		default:
			err = oneOf(value, resourceCodes()...)
		}
	case "leaves":
		r.Leaves = value
		err = oneOf(value, LeavesNothing, LeavesGradient, LeavesStep)
	case "after":
		r.For, err = duration(value)
	case "position":
		r.Position, err = number(value, 1, math.MaxInt32)
	case "by":
		r.By, err = number(value, 1, math.MaxInt32)
	case "bytes":
		r.Bytes, err = number(value, 0, math.MaxInt32)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return nil
}

func share(text string) (float64, error) {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !(v >= 0 && v <= 1) {
		return 0, fmt.Errorf("%q is not a number from 0 to 1", text)
	}
	return v, nil
}

func number(text string, least, most int) (int, error) {
	v, err := strconv.Atoi(text)
	if err != nil || v < least || v > most {
		return 0, fmt.Errorf("%q is not a whole number from %d to %d", text, least, most)
	}
	return v, nil
}

func duration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > longest {
		return 0, fmt.Errorf("%q is not a duration such as 300ms, 5s or 2h", text)
	}
	return d, nil
}

func oneOf(value string, known ...string) error {
	if slices.Contains(known, value) {
		return nil
	}
	return fmt.Errorf("%q is not one of %s%s", value, strings.Join(known, ", "), diag.DidYouMean(value, known))
}
