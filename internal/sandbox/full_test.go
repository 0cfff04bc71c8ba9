package sandbox

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"trainer/internal/wire"
)

// limited has room for what goes into the reserve alone, once it is full.
type limited struct {
	store
	full atomic.Bool
}

func (l *limited) append(head, body []byte) (span, int64, error) {
	if l.full.Load() && len(body) > 0 {
		return span{}, 0, fmt.Errorf("writing the sandbox's log: %w", syscall.ENOSPC)
	}
	return l.store.append(head, body)
}

func (l *limited) put(name string, write func(io.Writer) error) error {
	if l.full.Load() {
		return fmt.Errorf("writing %s: %w", name, syscall.EDQUOT)
	}
	return l.store.put(name, write)
}

// TestAFullDisk: with no room left nothing more is taken, and who asks is told so once and for all, although there may be room
// again; all can still be read and stopped. The next life goes on where this one could not, to the same weights.
func TestAFullDisk(t *testing.T) {
	train := func(c *client, id string) {
		c.loss(id, "", row("hello"))
		c.run(id, wire.KindOptimStep, `{}`, nil)
	}
	whole, c := open(t, Options{})
	alone := c.tiny()
	train(c, alone)
	c.run(alone, wire.KindTrainingCheckpoint, "", nil)
	train(c, alone)
	want := hashes(t, whole, []string{alone})[0]

	for _, stopped := range []bool{false, true} {
		t.Run(fmt.Sprintf("stopped %v", stopped), func(t *testing.T) {
			dir := t.TempDir()
			s, c := open(t, Options{Dir: dir})
			full := &limited{store: s.store}
			s.store = full
			id := c.tiny()
			train(c, id)

			full.full.Store(true)
			body := batch(t, "", row("hello"))
			e := c.refused(http.StatusInsufficientStorage, "POST", opsPath(id, wire.KindForwardBackward), body, wire.KeyHeader, "k")
			if !strings.Contains(e.Message, "no space left") || !strings.Contains(e.Message, "free some room") {
				t.Errorf("got %q, want the reason and the way out", e.Message)
			}
			full.full.Store(false)
			c.refused(http.StatusInsufficientStorage, "POST", opsPath(id, wire.KindForwardBackward), body, wire.KeyHeader, "k")
			if got := c.getSession(id); got.Status != wire.SessionRunning || got.Step != 1 {
				t.Errorf("session: got %+v, want it RUNNING at step 1", got)
			}
			if stopped {
				c.ok("POST", wire.PathSessions+"/"+id+"/stop", "", nil)
				if got := c.getSession(id); got.Status != wire.SessionStopped {
					t.Errorf("session: got %s, want it STOPPED", got.Status)
				}
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}

			s, c = open(t, Options{Dir: dir})
			if stopped {
				if got := c.getSession(id); got.Status != wire.SessionStopped {
					t.Errorf("session: got %s in the next life, want it STOPPED", got.Status)
				}
				return
			}
			c.keys = 100
			c.run(id, wire.KindTrainingCheckpoint, "", nil)
			train(c, id)
			if hashes(t, s, []string{id})[0] != want {
				t.Error("other weights than with a disk that is not full")
			}
		})
	}
}

// TestAnOperationWithoutRoom: one that was accepted and finds no room for what it leaves is not failed by that. Who waits for it
// is refused, a stop cancels it, and else the next life carries it out.
func TestAnOperationWithoutRoom(t *testing.T) {
	for _, stopped := range []bool{false, true} {
		dir := t.TempDir()
		s, c := open(t, Options{Dir: dir})
		full := &limited{store: s.store}
		s.store = full
		id := c.tiny()
		c.loss(id, "", row("hello"))
		c.run(id, wire.KindOptimStep, `{}`, nil)
		s.state.sessions.byID[id].training.Lock() // the worker has ended, and none begins
		op := c.post(id, wire.KindTrainingCheckpoint, "")
		full.full.Store(true)
		s.state.sessions.byID[id].training.Unlock()
		path := opsPath(id, wire.KindTrainingCheckpoint) + "/" + op.ID
		for {
			status, b := c.do("GET", path, nil)
			if status == http.StatusInsufficientStorage {
				break
			}
			if status != http.StatusOK || strings.Contains(string(b), "FAILED") {
				t.Fatalf("got %d %s, want it to go on until it is refused", status, b)
			}
		}
		r, err := http.NewRequest("GET", host+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if resp, err := s.RoundTrip(r); err != nil || resp.Header.Get("X-Should-Retry") != "false" {
			t.Errorf("got %v, %v, want no 5xx that is asked for again", resp, err)
		}
		if stopped {
			c.ok("POST", wire.PathSessions+"/"+id+"/stop", "", nil)
			if got := c.getSession(id); got.Status != wire.SessionStopped {
				t.Errorf("session: got %s, want it STOPPED", got.Status)
			}
		}
		full.full.Store(false)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		_, c = open(t, Options{Dir: dir})
		want := wire.OperationCompleted
		if stopped {
			want = wire.OperationFailed
		}
		if got := c.wait(id, wire.KindTrainingCheckpoint, op.ID); got.Status != want {
			t.Errorf("stopped %v: got %+v in the next life, want %s", stopped, got, want)
		}
	}
}
