package main

import (
	"errors"
	"strings"
	"testing"
	"time"

	"trainer/internal/together"
	"trainer/runner"
)

func TestARetryIsTold(t *testing.T) {
	var said strings.Builder
	l := &link{say: &said}
	r := together.Retry{Request: "GET /x", Attempt: 1, Wait: time.Second, Err: errors.New("connection refused")}
	l.retried(r)
	want := "trainer: GET /x: connection refused; again in 1s (attempt 2)\n"
	if said.String() != want {
		t.Errorf("before a run listens: got %q, want %q", said.String(), want)
	}
	var heard []runner.Event
	tell := func(e runner.Event) { heard = append(heard, e) }
	l.tell.Store(&tell)
	l.retried(r)
	if said.String() != want || len(heard) != 1 || heard[0].Kind != runner.RetryEvent {
		t.Errorf("where a run listens: said %q, heard %v; want it heard, once", said.String(), heard)
	}
}

func TestIsAddress(t *testing.T) {
	for base, want := range map[string]bool{
		"https://api.example": true, "http://127.0.0.1:8431": true, "http://[::1]:8431/v1": true,
		"127.0.0.1:8431": false, "garbage": false, "http://": false, "ftp://x": false, "http://:80": false, "http://x:99999": false, "http://[::1": false, " ": false,
	} {
		if got := isAddress(base); got != want {
			t.Errorf("isAddress(%q) = %v, want %v", base, got, want)
		}
	}
}

// What a reference says is shared by the runs at one service, and never with what may stand in for it.
func TestReferencesAreOfOneService(t *testing.T) {
	a := &app{getenv: func(name string) string { return map[string]string{"HOME": "/home/x"}[name] }}
	at := func(w where) string { return a.world(w, &link{}, t.TempDir(), false).References }
	if got, want := at(where{}), "/home/x/.cache/trainer/reference/together"; got != want {
		t.Errorf("at the service: %q, want %q", got, want)
	}
	if got := at(where{base: "https://api.example"}); got == at(where{}) || !strings.HasPrefix(got, "/home/x/.cache/trainer/reference/") {
		t.Errorf("at another address: %q", got)
	}
	for name, w := range map[string]where{"embedded": {sandbox: true, embedded: true}, "a sandbox": {sandbox: true, base: "http://127.0.0.1:1"}, "this machine": {base: "http://127.0.0.1:1"}} {
		if got := at(w); got != "" {
			t.Errorf("%s: %q, want each run to keep its own", name, got)
		}
	}
}
