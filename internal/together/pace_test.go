package together

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"trainer/runner"
)

// queue is a service that runs the operations of a session one after the other, each for as long as took says.
type queue struct {
	mu    sync.Mutex
	took  func(n int) time.Duration
	trip  time.Duration // what a request takes
	ends  map[string]time.Time
	last  time.Time
	looks int
}

func (q *queue) RoundTrip(r *http.Request) (*http.Response, error) {
	time.Sleep(q.trip)
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	if r.Method == "POST" {
		id := fmt.Sprintf("o%d", len(q.ends))
		if q.last.Before(now) {
			q.last = now
		}
		q.last = q.last.Add(q.took(len(q.ends)))
		q.ends[id] = q.last
		return answer(200, `{"id":"`+id+`","status":"TRAINING_OPERATION_STATUS_PENDING"}`), nil
	}
	q.looks++
	id := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	if now.Before(q.ends[id]) {
		return answer(200, `{"id":"`+id+`","status":"TRAINING_OPERATION_STATUS_RUNNING"}`), nil
	}
	return answer(200, `{"id":"`+id+`","status":"TRAINING_OPERATION_STATUS_COMPLETED","output":{"step":"1"}}`), nil
}

func newQueue(trip time.Duration, took func(n int) time.Duration) (*queue, runner.Session) {
	q := &queue{took: took, trip: trip, ends: map[string]time.Time{}}
	return q, New(Options{BaseURL: testBase, Transport: q}).Join(runner.SessionSpec{}, "s1")
}

func always(d time.Duration) func(int) time.Duration { return func(int) time.Duration { return d } }

// one submits an operation, waits for it, and returns how late its end was noticed and how often it was looked at.
func (q *queue) one(t *testing.T, s runner.Session) (late time.Duration, looks int) {
	t.Helper()
	q.looks = 0
	id, err := s.Submit(context.Background(), aKey, stepOp)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Wait(context.Background(), runner.OpOptimStep, id); err != nil {
		t.Fatal(err)
	}
	return q.late(id), q.looks
}

func (q *queue) late(id string) time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	return time.Since(q.ends[id])
}

func TestEndsAreNoticedInTime(t *testing.T) {
	for _, x := range []struct {
		took, trip time.Duration
		late       time.Duration // most, once the duration is known
		looks      int           // most, once the duration is known
	}{
		{0, 0, 0, 1},
		{300 * time.Microsecond, 0, time.Millisecond, 3},
		{20 * time.Millisecond, 0, time.Millisecond, 25},
		{700 * time.Millisecond, 0, 14 * time.Millisecond, 30},
		{3 * time.Second, 40 * time.Millisecond, 120 * time.Millisecond, 30},
		{30 * time.Second, 40 * time.Millisecond, 600 * time.Millisecond, 40},
		{10 * time.Minute, 40 * time.Millisecond, time.Second, 450},
	} {
		t.Run(fmt.Sprint(x.took), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q, s := newQueue(x.trip, always(x.took))
				late, looks := q.one(t, s)
				if most := max(x.took/16, time.Millisecond) + 3*x.trip; late > most {
					t.Errorf("the first one was noticed %v late after %d looks, want at most %v", late, looks, most)
				}
				for range 20 {
					q.one(t, s)
				}
				for range 5 {
					if late, looks := q.one(t, s); late > x.late || looks > x.looks {
						t.Errorf("noticed %v late after %d looks, want at most %v and %d", late, looks, x.late, x.looks)
					}
				}
			})
		})
	}
}

// A short operation among long ones is noticed within a sixteenth of what was expected.
func TestAShortOneAmongLongOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, s := newQueue(0, func(n int) time.Duration {
			if n == 10 {
				return 2 * time.Second
			}
			return 16 * time.Second
		})
		for range 10 {
			q.one(t, s)
		}
		if late, _ := q.one(t, s); late > time.Second {
			t.Errorf("noticed %v late", late)
		}
		q.one(t, s)
		if late, looks := q.one(t, s); late > time.Second {
			t.Errorf("afterwards a long one was noticed %v late after %d looks", late, looks)
		}
	})
}

// Operations that queue behind another are hardly looked at, and noticed as soon as if they had been alone.
func TestQueuedOperations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, s := newQueue(0, always(5*time.Second))
		for range 8 {
			q.one(t, s)
		}
		q.looks = 0
		var ids []string
		for range 4 {
			id, err := s.Submit(context.Background(), aKey, stepOp)
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, id)
		}
		ends := make(chan error)
		for _, id := range ids {
			go func() {
				_, err := s.Wait(context.Background(), runner.OpOptimStep, id)
				if late := q.late(id); err == nil && late > 100*time.Millisecond {
					err = fmt.Errorf("%s was noticed %v late", id, late)
				}
				ends <- err
			}()
		}
		for range ids {
			if err := <-ends; err != nil {
				t.Error(err)
			}
		}
		if q.looks > 160 {
			t.Errorf("%d looks", q.looks)
		}
	})
}

// Small ones between large ones of the same name, as evaluations between steps, spoil no guess.
func TestUnlikeWorkOfOneName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, s := newQueue(0, func(n int) time.Duration {
			if n%5 == 4 {
				return 400 * time.Millisecond
			}
			return 16 * time.Second
		})
		for n := range 50 {
			q.looks = 0
			p := stepOp
			if p.Work = 100_000; n%5 == 4 {
				p.Work = 2000
			}
			id, err := s.Submit(context.Background(), aKey, p)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.Wait(context.Background(), runner.OpOptimStep, id); err != nil {
				t.Fatal(err)
			}
			most := 320 * time.Millisecond
			if n%5 == 4 {
				most = 10 * time.Millisecond
			}
			if late := q.late(id); n >= 25 && (late > most || q.looks > 30) {
				t.Errorf("operation %d was noticed %v late after %d looks", n, late, q.looks)
			}
		}
	})
}

// While others wait behind it, the service has work, and an operation is looked at less.
func TestOneWithOthersBehindItIsLookedAtLess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, s := newQueue(0, always(5*time.Second))
		alone := 0
		for range 8 {
			_, alone = q.one(t, s)
		}
		var ids []string
		for range 2 {
			id, err := s.Submit(context.Background(), aKey, stepOp)
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, id)
		}
		q.looks = 0
		if _, err := s.Wait(context.Background(), runner.OpOptimStep, ids[0]); err != nil {
			t.Fatal(err)
		}
		if late := q.late(ids[0]); late > 100*time.Millisecond || q.looks*3 > alone*2 {
			t.Errorf("noticed %v late after %d looks, alone after %d", late, q.looks, alone)
		}
	})
}

func TestAPostThatEndsTheOperationNeedsNoGet(t *testing.T) {
	for body, want := range map[string]string{
		stepDone: "none",
		`{"id":"o1","status":"TRAINING_OPERATION_STATUS_FAILED","error":{"code":"TRAINING_OPERATION_ERROR_CODE_NON_FINITE_LOSS","message":"m"}}`: "optim-step o1: NON_FINITE_LOSS: m",
		`{"id":"o1","status":"TRAINING_OPERATION_STATUS_FAILED"}`:                                                                                "optim-step o1: UNSPECIFIED: the service gives no reason",
	} {
		sc := &script{steps: []any{says(200, body)}}
		s := New(Options{BaseURL: testBase, Transport: sc}).Join(spec, "s1")
		id, err := s.Submit(context.Background(), aKey, stepOp)
		if err != nil {
			t.Fatal(err)
		}
		res, err := s.Wait(context.Background(), runner.OpOptimStep, id)
		if len(sc.reqs) != 1 {
			t.Errorf("%d requests for %s", len(sc.reqs), body)
		}
		if want == "none" && (err != nil || res.Step != 7) || want != "none" && (err == nil || err.Error() != want) {
			t.Errorf("%s: got %+v, %v", body, res, err)
		}
	}
}

func TestWaitEnds(t *testing.T) {
	const running = `{"id":"o1","status":"TRAINING_OPERATION_STATUS_UNSPECIFIED"}`
	t.Run("when the context does", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeoutCause(context.Background(), 10*time.Second, runner.ErrInterrupted)
			defer cancel()
			s := New(Options{BaseURL: testBase, Transport: &script{steps: []any{says(200, running)}}}).Join(spec, "s1")
			start := time.Now()
			_, err := s.Wait(ctx, runner.OpOptimStep, "o1")
			if !errors.Is(err, runner.ErrInterrupted) || time.Since(start) != 10*time.Second {
				t.Errorf("got %v after %v", err, time.Since(start))
			}
		})
	})
	t.Run("when the operation is no longer known", func(t *testing.T) {
		s := New(Options{BaseURL: testBase, Transport: &script{steps: []any{says(404, envelope)}}}).Join(spec, "s1")
		if _, err := s.Wait(context.Background(), runner.OpOptimStep, "o1"); !errors.Is(err, runner.ErrGone) {
			t.Errorf("got %v", err)
		}
		if _, err := s.Look(context.Background(), runner.OpOptimStep, "o1"); !errors.Is(err, runner.ErrGone) {
			t.Errorf("a look got %v", err)
		}
	})
	t.Run("when the operation's time is over", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := New(Options{BaseURL: testBase, Transport: &script{steps: []any{says(200, running)}}}).Join(runner.SessionSpec{OperationTimeout: time.Minute}, "s1")
			start := time.Now()
			_, err := s.Wait(context.Background(), runner.OpOptimStep, "o1")
			var over *runner.TimedOut
			if !errors.As(err, &over) || over.ID != "o1" || over.After != time.Minute || time.Since(start) > 63*time.Second {
				t.Errorf("got %v after %v", err, time.Since(start))
			}
		})
	})
	t.Run("not when the service is away for less than the patience", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			back := time.Now().Add(4 * time.Minute)
			rt := roundTrip(func(*http.Request) (*http.Response, error) {
				if time.Now().Before(back) {
					return nil, errReset
				}
				return answer(200, stepDone), nil
			})
			s := New(Options{BaseURL: testBase, Transport: rt}).Join(runner.SessionSpec{Patience: 5 * time.Minute}, "s1")
			if res, err := s.Wait(context.Background(), runner.OpOptimStep, "o1"); err != nil || res.Step != 7 {
				t.Errorf("got %+v, %v", res, err)
			}
		})
	})
}

func TestLook(t *testing.T) {
	sc := &script{steps: []any{says(200, `{"id":"o1","status":"TRAINING_OPERATION_STATUS_RUNNING"}`), says(200, stepDone)}}
	s := New(Options{BaseURL: testBase, Transport: sc}).Join(spec, "s1")
	for _, want := range []bool{false, true} {
		if got, err := s.Look(context.Background(), runner.OpOptimStep, "o1"); got != want || err != nil {
			t.Errorf("got %v, %v, want %v", got, err, want)
		}
	}
}
