package runner

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
)

// words are the actions as the README has them.
var words = map[action]string{
	giveUp:   "stop",
	askAgain: "ask again",
	settle:   "settle it, as after a crash; where that cannot be done, roll back",
	rollBack: "roll back",
}

// table is the policy in the form of the README.
func table() string {
	var b strings.Builder
	b.WriteString("| what failed | a training operation | an evaluation, a checkpoint, a weights_sync |\n| --- | --- | --- |\n")
	for _, r := range policy {
		var of []string
		for _, f := range r.of {
			of = append(of, string(f))
		}
		trains := r.words
		if trains == "" {
			trains = words[r.trains]
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", strings.Join(of, ", "), trains, words[r.harmless])
	}
	return b.String()
}

// TestThePolicyIsTheReadmes: the table there is the one that decides.
func TestThePolicyIsTheReadmes(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	if want := table(); !strings.Contains(string(readme), want) {
		t.Errorf("README.md does not have this table of failures:\n%s", want)
	}
	for _, r := range policy {
		if r.words != "" && !strings.HasPrefix(r.words, words[r.trains]) {
			t.Errorf("%v: the action is %q, the words are %q", r.of, words[r.trains], r.words)
		}
	}
}

// TestThePolicyIsWhole: each failure has one row, an operation that trains is never asked for again, and every error that
// the runner tells apart is one of them.
func TestThePolicyIsWhole(t *testing.T) {
	rows := map[failure]int{}
	for _, r := range policy {
		for _, f := range r.of {
			rows[f]++
		}
		if r.trains == askAgain {
			t.Errorf("%v: an operation that trains is asked for again", r.of)
		}
	}
	for f, n := range rows {
		if n != 1 {
			t.Errorf("%q has %d rows", f, n)
		}
	}
	for _, c := range []struct {
		err  error
		want failure
	}{
		{&Failed{Code: "NON_FINITE_LOSS"}, nonFinite},
		{&Failed{Code: "INVALID_INPUT"}, invalid},
		{&Failed{Code: "RESOURCE_EXHAUSTED"}, exhausted},
		{&Failed{Code: "TIMEOUT"}, timeout},
		{&Failed{Code: "INTERNAL_ERROR"}, internal},
		{&Failed{Code: "SESSION_NOT_ACTIVE"}, notActive},
		{&Failed{Code: "UNSPECIFIED"}, otherCode},
		{fmt.Errorf("wait: %w", ErrGone), forgotten},
		{&TimedOut{}, overtime},
		{&Disorder{}, disorder},
		{&doubt{&Lost{}}, lost},
		{unsure("who knows"), unclear},
		{&Unclear{Err: errors.New("reset")}, unclear},
		{&Refused{Status: 422}, refused},
		{&spoiling{err: &Failed{Code: "TIMEOUT"}}, timeout},
		{&Unfit{Err: &Failed{Code: "INVALID_INPUT"}}, invalid},
		{errors.Join(&Failed{Code: "TIMEOUT"}, &journalError{errors.New("disk full")}), ""},
		{fmt.Errorf("%w", &Panic{Value: "x"}), ""},
		{errors.New("anything else"), ""},
		{nil, ""},
	} {
		if got := failureOf(c.err); got != c.want {
			t.Errorf("%v: got %q, want %q", c.err, got, c.want)
		}
		if c.want != "" {
			delete(rows, c.want)
		}
	}
	for f := range rows {
		t.Errorf("no error is %q", f)
	}
	if got := costs("", true); got != giveUp {
		t.Errorf("what has no row costs %v", got)
	}
}
