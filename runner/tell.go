package runner

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"sync"
	"time"
)

// tellAll opens the sinks and gives each a goroutine and a queue of its own, so that a slow one cannot slow the run.
// tell may be called from any goroutine; hush waits until all is told and closes them.
func tellAll(ctx context.Context, info RunInfo, sinks []Sink) (tell func(Event), hush func(context.Context) error, err error) {
	var mouths []*mouth
	hush = func(ctx context.Context) (err error) {
		for _, m := range mouths {
			err = errors.Join(err, m.close(context.WithoutCancel(ctx)))
		}
		return err
	}
	for _, s := range sinks {
		if err := s.Open(ctx, info); err != nil {
			return nil, nil, errors.Join(fmt.Errorf("open %T: %w", s, err), hush(ctx))
		}
		mouths = append(mouths, newMouth(s))
	}
	return func(e Event) {
		if e.Time.IsZero() {
			e.Time = time.Now()
		}
		for _, m := range mouths {
			m.say(e)
		}
	}, hush, nil
}

// mouth is a sink with its queue.
type mouth struct {
	sink   Sink
	mu     sync.Mutex
	queue  []Event
	deaf   bool // it has panicked: what is told to it would pile up
	wake   chan struct{}
	closed chan struct{}
	done   chan struct{}
	broke  error // the panic that silenced it; set before done is closed
}

func newMouth(s Sink) *mouth {
	m := &mouth{sink: s, wake: make(chan struct{}, 1), closed: make(chan struct{}), done: make(chan struct{})}
	go m.speak()
	return m
}

func (m *mouth) say(e Event) {
	m.mu.Lock()
	if !m.deaf {
		m.queue = append(m.queue, e)
	}
	m.mu.Unlock()
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// speak emits until the queue is empty behind close. A sink that panics is silenced, since telling never decides, and the
// end of the run says so.
func (m *mouth) speak() {
	defer close(m.done)
	defer func() {
		if p := recover(); p != nil {
			m.broke = fmt.Errorf("%T: %w", m.sink, &Panic{Value: p, Stack: debug.Stack()})
			m.mu.Lock()
			m.queue, m.deaf = nil, true
			m.mu.Unlock()
		}
	}()
	for {
		m.mu.Lock()
		batch := m.queue
		m.queue = nil
		m.mu.Unlock()
		for _, e := range batch {
			m.sink.Emit(e)
		}
		if len(batch) > 0 {
			continue
		}
		select {
		case <-m.wake:
		case <-m.closed:
			if m.empty() {
				return
			}
		}
	}
}

func (m *mouth) empty() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.queue) == 0
}

// sinkPatience bounds how long the end of a run waits for a sink.
const sinkPatience = 30 * time.Second

func (m *mouth) close(ctx context.Context) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%T: %w", m.sink, &Panic{Value: p, Stack: debug.Stack()})
		}
	}()
	close(m.closed)
	select {
	case <-m.done:
	case <-time.After(sinkPatience):
		return fmt.Errorf("%T did not come to its end in %s", m.sink, sinkPatience)
	}
	ctx, cancel := context.WithTimeout(ctx, sinkPatience)
	defer cancel()
	return errors.Join(m.broke, m.sink.Close(ctx))
}

// finite leaves out what JSON cannot carry.
func finite(m map[string]float64) map[string]float64 {
	out := make(map[string]float64, len(m))
	for k, v := range m {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			out[k] = v
		}
	}
	return out
}
