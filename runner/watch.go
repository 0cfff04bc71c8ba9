package runner

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
	"time"
)

// watchEvery is how often a life looks at its resource: it meters, extends, and notices that it is gone.
const watchEvery = time.Minute

// watch ends halt's context when a limit is reached or the resource is gone; the returned function waits for it to end.
func (l *lease) watch(ctx context.Context, halt context.CancelCauseFunc) (closing func()) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		defer func() {
			if p := recover(); p != nil {
				halt(&Panic{Value: p, Stack: debug.Stack()})
			}
		}()
		tick := time.NewTicker(l.period())
		defer tick.Stop()
		last := time.Now()
		for {
			if err := l.overrun(); err != nil {
				halt(err)
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
			if time.Since(last) < watchEvery {
				continue
			}
			last = time.Now()
			err := l.lookOnce(ctx)
			if failureOf(err) == lost {
				l.r.ledger.lose(err)
				if t := l.r.teacher; t != nil {
					t.ledger.lose(err)
				}
			} else if err != nil {
				halt(err)
			}
		}
	})
	return func() { cancel(); wg.Wait() }
}

// period is short where a limit is near or set, so that it is not passed by a minute.
func (l *lease) period() time.Duration {
	lim := l.r.in.Recipe.Limits
	if lim.MaxCostUSD != nil || lim.MaxDuration != nil {
		return time.Second
	}
	return watchEvery
}

// overrun says which limit is reached, with room for the end: the open step, a checkpoint, the stop.
func (l *lease) overrun() error {
	lim := l.r.in.Recipe.Limits
	if d := lim.MaxDuration; d != nil && time.Since(l.r.begun) >= *d {
		return fmt.Errorf("%w: limits.max_duration %s", ErrBudget, *d)
	}
	if c := lim.MaxCostUSD; c != nil && l.cost()+l.rate()/60 > *c {
		return fmt.Errorf("%w: limits.max_cost_usd %g, spent %.2f", ErrBudget, *c, l.cost())
	}
	return nil
}

// lookOnce is a look that a network without an answer holds up no longer than until the next one is due.
func (l *lease) lookOnce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, watchEvery)
	defer cancel()
	return l.look(ctx)
}

// look reads the resource, writes the meter down, and keeps a long pause of ours from being taken for death: expiry is
// moved when less than half of the timeout is left.
func (l *lease) look(ctx context.Context) error {
	res, err := l.r.world.Resources.Resource(ctx, l.id)
	if err != nil {
		return l.absent(err) // the operations will tell of others, if it matters
	}
	l.note(res)
	if err := l.r.journal.Add(recMeter, l.meter()); err != nil {
		return fmt.Errorf("journal the meter: %w", err)
	}
	if res.Status != Ready {
		return l.over(res)
	}
	if err := l.sessionsLost(ctx); err != nil {
		return err
	}
	if left := res.ExpiresAt.Sub(res.ServerTime); !l.attached && !res.ExpiresAt.IsZero() && left < l.timeout/2 {
		_ = l.r.world.Resources.Extend(ctx, l.id, l.timeout)
	}
	return nil
}

// sessionsLost says that the session that lives on the resource takes no work any more, or that the teacher's resource, or
// its session there, is gone.
func (l *lease) sessionsLost(ctx context.Context) error {
	s := l.r.session
	if l.what == aTeacher {
		s = l.r.teacher.session
	}
	if err := sessionLost(ctx, s); err != nil || l.also == nil {
		return err
	}
	return l.also.look(ctx)
}

// absent makes *Lost of an answer that there is no such resource, and nothing of other errors.
func (l *lease) absent(err error) error {
	var no *Refused
	if errors.As(err, &no) && no.Status == 404 {
		return &Lost{"resource", l.id, "gone"}
	}
	return nil
}

func (l *lease) over(res Resource) error {
	return &Lost{"resource", l.id, strings.TrimSpace(fmt.Sprintf("%s %s %s", res.Status, res.ErrorCode, res.ErrorMessage))}
}

// lost says that a resource that was READY is so no more; nil where it is, or where that cannot be seen.
func (l *lease) lost(ctx context.Context) error {
	l.mu.Lock()
	ready := !l.readyAt.IsZero()
	l.mu.Unlock()
	if !ready {
		return nil
	}
	res, err := l.r.world.Resources.Resource(ctx, l.id)
	if err != nil {
		return l.absent(err)
	}
	if res.Status == Ready {
		return nil
	}
	return l.over(res)
}
