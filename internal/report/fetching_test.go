package report

import (
	"strings"
	"testing"
	"time"
)

func TestFetchingTellsOfWhatTakesItsTime(t *testing.T) {
	type move struct {
		after      time.Duration
		name       string
		done, size int64
	}
	for _, c := range []struct {
		name  string
		tty   bool
		moves []move
		want  string
	}{
		{"a quick one says nothing", false, []move{{0, "a", 1, 2}, {500 * time.Millisecond, "a", 2, 2}}, ""},
		{"a slow one has a line now and then", false, []move{{0, "a", 1, 3000}, {5 * time.Second, "a", 2, 3000}, {6 * time.Second, "a", 1000, 3000}, {time.Second, "a", 3000, 3000}},
			"fetching a: 1.0 kB of 3.0 kB\n"},
		{"several are added up", false, []move{{0, "a", 500, 1000}, {11 * time.Second, "b", 500, 3000}}, "fetching 2 files: 1.0 kB of 4.0 kB\n"},
		{"a size that is not known", false, []move{{0, "a", 500, -1}, {11 * time.Second, "a", 1000, -1}}, "fetching a: 1.0 kB\n"},
		{"a terminal has one line", true, []move{{0, "a", 0, 2000}, {2 * time.Second, "a", 1000, 2000}, {100 * time.Millisecond, "a", 2000, 2000}},
			"\r\x1b[Kfetching a: 1.0 kB of 2.0 kB\r\x1b[Kfetching a: 2.0 kB of 2.0 kB\n"},
		{"a name that steers the terminal", true, []move{{0, "a\x1b[2J", 0, 2000}, {2 * time.Second, "a\x1b[2J", 1000, 2000}}, "\r\x1b[Kfetching a?[2J: 1.0 kB of 2.0 kB"},
		{"the next wait begins anew", false, []move{{0, "a", 1, 1}, {20 * time.Second, "b", 1, 2}, {500 * time.Millisecond, "b", 2, 2}}, ""},
	} {
		var out strings.Builder
		clock := time.Unix(0, 0)
		f := &Fetching{Out: &out, TTY: c.tty, now: func() time.Time { return clock }}
		for _, m := range c.moves {
			clock = clock.Add(m.after)
			f.Move(m.name, m.done, m.size)
		}
		if out.String() != c.want {
			t.Errorf("%s: got %q, want %q", c.name, out.String(), c.want)
		}
	}
}
