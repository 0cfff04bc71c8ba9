package worker

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"
)

// said is a reply of the game.
type said struct {
	Turns map[string]int
	Pid   int
}

func saidBy(t *testing.T, raw json.RawMessage, err error) said {
	t.Helper()
	var s said
	if err == nil {
		err = json.Unmarshal(raw, &s)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func begun(t *testing.T, p *Pool, name string, attempt int) (*Episode, said) {
	t.Helper()
	raw, e, err := p.Begin(t.Context(), "reset", fmt.Appendf(nil, `{"episode":%q}`, name), attempt)
	return e, saidBy(t, raw, err)
}

// TestAnEpisodeStaysWithItsProgram plays many episodes over several programs, each of which remembers its own.
func TestAnEpisodeStaysWithItsProgram(t *testing.T) {
	t.Parallel()
	c := command("game", "")
	c.Workers = 3
	p := opened(t, c)
	var group sync.WaitGroup
	for i := range 12 {
		group.Go(func() {
			name := fmt.Sprintf("e%d", i)
			e, first := begun(t, p, name, 0)
			for turn := range 5 {
				raw, err := e.Ask(t.Context(), "step", fmt.Appendf(nil, `{"episode":%q,"text":"go"}`, name))
				if s := saidBy(t, raw, err); s.Pid != first.Pid || s.Turns[name] != turn+1 {
					t.Errorf("%s, turn %d: %+v, begun with %d", name, turn, s, first.Pid)
				}
			}
			e.Tell(t.Context(), "close", fmt.Appendf(nil, `{"episode":%q}`, name))
			raw, err := e.Ask(t.Context(), "step", []byte(`{"episode":"after"}`))
			if s := saidBy(t, raw, err); s.Turns[name] != 0 {
				t.Errorf("%s is remembered after close: %+v", name, s)
			}
		})
	}
	group.Wait()
}

// TestAnEpisodeIsGoneWithItsProgram: it is never sent on to a program that does not know it, and begins anew by itself.
func TestAnEpisodeIsGoneWithItsProgram(t *testing.T) {
	t.Parallel()
	for how, want := range map[string]string{"die": Died, "hang": TimedOut} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			c := command("game", "")
			if how == "hang" {
				c.Timeout, c.Retries = 2*time.Second, maxDeaths-1
			}
			p := opened(t, c)
			e, _ := begun(t, p, "a", 0)
			var gone *Gone
			if _, err := e.Ask(t.Context(), "step", fmt.Appendf(nil, `{"episode":"a","text":%q}`, how)); !errors.As(err, &gone) || gone.Reason != want {
				t.Fatalf("%v, want %s", err, want)
			}
			if _, err := e.Ask(t.Context(), "step", []byte(`{"episode":"a"}`)); !errors.As(err, &gone) || gone.Reason != Died {
				t.Errorf("a step behind the end: %v", err)
			}
			if _, s := begun(t, p, "a", 1); s.Turns["a"] < 100 || how == "die" && s.Turns["a"] != 100 { // a slow machine may cut off an attempt
				t.Errorf("begun again: %+v, want attempt 1", s)
			}
		})
	}
}

func TestABusyProgramIsAskedAgainForTheEpisode(t *testing.T) {
	t.Parallel()
	p := opened(t, command("game", ""))
	e, _ := begun(t, p, "a", 0)
	if _, err := e.Ask(t.Context(), "step", []byte(`{"episode":"a","text":"busy"}`)); outcomeOf(err) != Failed {
		t.Error(err)
	}
	raw, err := e.Ask(t.Context(), "step", []byte(`{"episode":"a"}`))
	if s := saidBy(t, raw, err); s.Turns["a"] != 1 {
		t.Errorf("%+v: the episode does not go on", s)
	}
}
