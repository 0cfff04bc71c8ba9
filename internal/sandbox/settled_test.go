package sandbox

import (
	"strings"
	"sync"
	"testing"

	"trainer/internal/wire"
)

// stuckStore is a store whose disk stands still while gate is locked; a sync that comes is told to came, where that has room.
type stuckStore struct {
	store
	gate sync.RWMutex
	came chan struct{}
}

func (s *stuckStore) sync(mark int64) error {
	select {
	case s.came <- struct{}{}:
	default:
	}
	s.gate.RLock()
	defer s.gate.RUnlock()
	return s.store.sync(mark)
}

// A look at an operation is answered while the disk is busy with what somebody else has sent: who can ask for it was told
// of it when it was on the disk.
func TestALookDoesNotWaitForTheDisk(t *testing.T) {
	s, err := Open(Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	slow := &stuckStore{store: s.store, came: make(chan struct{}, 9)}
	s.store = slow
	c := &client{t: t, http: s}
	session := c.tiny()
	told := newStory(c)
	told.operate(session, wire.KindForwardBackward, "first", batch(t, "", row("a row")), nil)

	slow.gate.Lock()
	for len(slow.came) > 0 {
		<-slow.came
	}
	other := make(chan int, 1)
	go func() {
		status, _ := c.do("POST", wire.PathSessions+"/"+session+"/payloads/upload-url", nil)
		other <- status
	}()
	<-slow.came // the change is in the log, and not on the disk
	var op wire.Operation[wire.ForwardBackwardOutput]
	looked := make(chan struct{})
	go func() {
		defer close(looked)
		_, body := c.do("GET", told.acked[0], nil)
		got, err := wire.DecodeForwardBackwardOperation(strings.NewReader(string(body)))
		if err != nil {
			t.Errorf("%v in %s", err, body)
			return
		}
		op = *got
	}()
	select {
	case <-looked:
	case <-slow.came:
		t.Error("the look waits for the disk")
	}
	select {
	case status := <-other:
		t.Errorf("the change was answered (%d) before it was on the disk", status)
	default:
	}
	slow.gate.Unlock()
	<-looked
	if status := <-other; status != 200 {
		t.Errorf("the change was answered %d", status)
	}
	if op.Status != wire.OperationCompleted || op.Output == nil {
		t.Errorf("got %+v", op)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
