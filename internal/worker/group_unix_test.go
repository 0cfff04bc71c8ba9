//go:build unix

package worker

import (
	"strconv"
	"syscall"
	"testing"
	"time"
)

// The children of a program go with it, also where it would not leave by itself.
func TestChildrenGoWithTheirParent(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]Command{"closed": command("parent", ""), "killed for a timeout": command("parent", "")} {
		pids := make(chan string, 9)
		c.Retries, c.Log = 0, func(line string) { pids <- line }
		if name != "closed" {
			c.Timeout = time.Second
		}
		p := Start(t.Context(), c)
		if err := p.Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
		pid, err := strconv.Atoi(<-pids)
		if err != nil {
			t.Fatal(err)
		}
		if name != "closed" {
			if _, err := score(t, p, "s"); outcomeOf(err) != TimedOut {
				t.Error(err)
			}
		}
		p.Close()
		for alive(pid) {
			time.Sleep(10 * time.Millisecond)
		}
	}
}

// alive waits for nobody: a dead child of a dead parent is buried by init.
func alive(pid int) bool { return syscall.Kill(pid, 0) == nil && !zombie(pid) }
