package runner

import (
	"testing"
	"time"
)

func TestKeysAreThePublishedVector(t *testing.T) {
	const run, session = "018f3c1e-7a40-4d2b-9c55-2f6f0d1c7b90", "22222222-2222-4222-8222-222222222222"
	for kind, want := range map[string]string{
		kindForwardBackward: "e6ad3c7e-9dfc-4437-8f83-fec1c2b36807",
		kindOptimStep:       "5a46e613-4e74-4dc2-acdd-ee1144a8fd8e",
	} {
		if got := (slot{step: 7, kind: kind}).key(run, session); got != want {
			t.Errorf("%s: got %s, want %s", kind, got, want)
		}
	}
}

// The tags were computed with Python's hashlib.
func TestTagsTellTheResourcesOfARun(t *testing.T) {
	const run = "018f3c1e-7a40-4d2b-9c55-2f6f0d1c7b90"
	for _, c := range []struct {
		timeout time.Duration
		attempt int
		want    time.Duration
	}{
		{5 * time.Minute, 0, 5*time.Minute + 45*time.Second},
		{5 * time.Minute, 1, 5*time.Minute + 1*time.Second},
		{24*time.Hour - time.Minute, 1, 24*time.Hour - time.Minute + 1*time.Second},
		{24 * time.Hour, 1, 24*time.Hour - time.Minute + 1*time.Second},
	} {
		if got := tagged(c.timeout, run, c.attempt); got != c.want {
			t.Errorf("%v, attempt %d: got %v, want %v", c.timeout, c.attempt, got, c.want)
		}
	}
}
