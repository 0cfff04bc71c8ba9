package together

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"trainer/runner"
)

const (
	// retries of a request that may be repeated freely.
	retries = 7
	// briefly is for what is seldom over soon: a create at the limit (429), a stop in conflict (409).
	briefly = 2
)

// policy says how a request is repeated.
type policy struct {
	effect   bool          // it changes something: what stays unclear is *runner.Unclear
	once     bool          // never sent again after an unclear attempt
	patience time.Duration // above 0: repeated so long, instead of retries times
	crowded  int           // retries after a 429 or a 409; 0: as after anything else
	keyed    bool          // a 409 is about its key, and stays what it is however often it is asked for
}

var (
	reading  = policy{}
	creating = policy{effect: true, once: true, crowded: briefly}
	stopping = policy{effect: true, crowded: briefly}
	moved    = policy{effect: true}
)

// do sends k until it is carried out, refused, or p is exhausted. Errors: *runner.Refused for a clear 4xx; *runner.Unclear
// where p.effect and an attempt was unclear, whatever came later; the context's own error where nothing was left in doubt.
func (c *Client) do(ctx context.Context, k *call, p policy) error {
	start, inDoubt := time.Now(), false
	if p.patience == 0 && (!p.effect || p.once) {
		p.patience = c.patience
	}
	if idle, ok := c.rt.(interface{ CloseIdleConnections() }); ok && p.once {
		idle.CloseIdleConnections() // one that the server has closed meanwhile would cost the only attempt
	}
	for n := 0; ; n++ {
		if err := ctx.Err(); err != nil {
			return c.give(k, p, inDoubt, fmt.Errorf("%s: %w", k.name(), context.Cause(ctx)))
		}
		v := c.send(ctx, k)
		if v.fate == carried {
			return nil
		}
		inDoubt = inDoubt || v.fate == unclear
		wait := v.wait
		if wait == 0 {
			wait = backoff(n)
		}
		if ctx.Err() != nil || !p.repeats(v, n, time.Since(start)+wait) {
			return c.give(k, p, inDoubt, v.err)
		}
		if c.onRetry != nil {
			c.onRetry(Retry{Request: k.name(), Attempt: n + 1, Wait: wait, Err: v.err})
		}
		if err := sleep(ctx, wait); err != nil {
			return c.give(k, p, inDoubt, v.err)
		}
	}
}

// repeats says whether attempt n (from 0), which ended in v, is followed by another one that starts at elapsed.
func (p policy) repeats(v verdict, n int, elapsed time.Duration) bool {
	switch {
	case !v.again || p.once && v.fate == unclear:
		return false
	case p.keyed && conflict(v.err):
		return n < briefly
	case p.crowded > 0 && crowd(v.err):
		return n < p.crowded
	case p.patience > 0:
		return elapsed <= p.patience
	}
	return n < retries
}

// crowd tells a 429 and a 409.
func crowd(err error) bool {
	r, ok := refusal(err)
	return ok && (r.Status == 429 || r.Status == 409)
}

func conflict(err error) bool {
	r, ok := refusal(err)
	return ok && r.Status == 409
}

// refusal is the 4xx in err; a 408 or 409 too.
func refusal(err error) (*runner.Refused, bool) {
	var d *definite
	if errors.As(err, &d) {
		return d.refused, true
	}
	var r *runner.Refused
	ok := errors.As(err, &r)
	return r, ok
}

// give names the last error of an exhausted request.
func (c *Client) give(k *call, p policy, inDoubt bool, err error) error {
	if p.effect && inDoubt {
		if r, ok := err.(*runner.Refused); ok { // an earlier attempt may have done it: no *Refused may be found in here
			err = fmt.Errorf("refused (%d) after an attempt without a clear answer: %s", r.Status, r.Message)
		}
		var d *definite
		if errors.As(err, &d) {
			err = d.error
		}
		return &runner.Unclear{Request: k.name(), Err: err}
	}
	if r, ok := refusal(err); ok {
		return r
	}
	return fmt.Errorf("%s: %w", k.name(), err)
}

// backoff is the wait before retry n, from 0: one second, doubled up to ten, less up to a quarter at random, so that
// clients that were stopped together do not come back together.
func backoff(n int) time.Duration {
	d := min(time.Second<<min(n, 10), 10*time.Second)
	return time.Duration(float64(d) * (1 - 0.25*rand.Float64()))
}

func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
