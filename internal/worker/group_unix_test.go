//go:build unix

package worker

import (
	"syscall"
	"testing"
	"time"
)

// The children of a program go with it, also where it would not leave by itself.
func TestChildrenGoWithTheirParent(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]Command{"closed": command("parent", ""), "killed for a timeout": command("parent", "")} {
		c.Retries = 0
		if name != "closed" {
			c.Timeout = time.Second
		}
		p := Start(t.Context(), c)
		got, err := score(t, p, "s")
		if err != nil {
			t.Fatal(err)
		}
		if name != "closed" {
			if _, err := score(t, p, "s"); outcomeOf(err) != TimedOut {
				t.Error(err)
			}
		}
		p.Close()
		pid := int(got.(float64))
		for alive(pid) {
			time.Sleep(10 * time.Millisecond)
		}
	}
}

// alive waits for nobody: a dead child of a dead parent is buried by init.
func alive(pid int) bool { return syscall.Kill(pid, 0) == nil && !zombie(pid) }
