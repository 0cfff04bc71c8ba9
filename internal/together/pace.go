package together

import (
	"context"
	"math"
	"math/bits"
	"sync"
	"time"

	"trainer/runner"
)

const (
	// shortest step between two looks: an operation of the sandbox in process is noticed this fast.
	shortest = time.Millisecond
	// near bounds a step while the end is expected, longest one at any other time.
	near    = 500 * time.Millisecond
	longest = 2 * time.Second
)

// pace decides when to look at the operations of a session. It learns how long each kind takes, from the moment that the
// operation before it had ended, as a TCP sender learns its round trip: a mean and a mean deviation (Jacobson 1988). It
// then looks seldom before the end is due and often around it, so that it is noticed within about a hundredth of the
// operation's duration. Operations run in the order in which they were accepted; one that has others before it is
// looked at seldom, and again as soon as they end. One that has others behind it keeps nobody waiting, so the looks that
// guard against an early end are fewer. Safe for concurrent use.
type pace struct {
	mu      sync.Mutex
	habits  map[class]*habit
	sent    map[string]mark // accepted, and not yet seen to end
	waiting map[string]int  // their order, where a watch is on them
	count   int
	last    time.Time     // when an operation was last seen to end
	changed chan struct{} // closed, and replaced, when a watch ends
}

// class are operations that take about as long: of one name, and of work of one size.
type class struct {
	op   runner.OpName
	size int // the work's length in bits; 0: not known
}

// mark is when an operation was accepted, and as which of the session's.
type mark struct {
	at    time.Time
	order int // from 1; 0 is of an operation from before, which comes first
	size  int // as in class
}

// habit is how long a kind of operation takes, in seconds.
type habit struct{ mean, dev float64 }

func newPace() *pace {
	return &pace{habits: map[class]*habit{}, sent: map[string]mark{}, waiting: map[string]int{}, changed: make(chan struct{})}
}

// accepted notes that the service took the operation, of so much work, and has already ended it where done says so. The
// same again, under the same key, changes nothing.
func (p *pace) accepted(id string, work int, at time.Time, done bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if done {
		p.last = at
		return
	}
	if _, again := p.sent[id]; !again {
		p.count++
		p.sent[id] = mark{at, p.count, bits.Len(uint(work))}
	}
}

// watch is the wait for one operation, by one goroutine.
type watch struct {
	p      *pace
	op     runner.OpName
	id     string
	known  bool // when it was accepted is known
	sent   mark
	first  bool          // it was not looked at yet
	looked time.Time     // the last look, or the start of the watch
	seen   time.Time     // when it was surely still running; zero: never
	trip   time.Duration // what a look takes
}

func (p *pace) watch(op runner.OpName, id string) *watch {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := &watch{p: p, op: op, id: id, first: true, looked: time.Now()}
	if w.sent, w.known = p.sent[id]; !w.known {
		w.sent.at = w.looked
	}
	p.waiting[id] = w.sent.order
	return w
}

// leave ends the watch; operations behind this one need not wait for it any more.
func (w *watch) leave() {
	w.p.mu.Lock()
	defer w.p.mu.Unlock()
	w.forget()
}

func (w *watch) forget() {
	if _, on := w.p.waiting[w.id]; !on {
		return
	}
	delete(w.p.waiting, w.id)
	delete(w.p.sent, w.id)
	close(w.p.changed)
	w.p.changed = make(chan struct{})
}

// begin is when the operation could start: accepted, and the one before it seen to end.
func (w *watch) begin() time.Time {
	if w.p.last.After(w.sent.at) {
		return w.p.last
	}
	return w.sent.at
}

// behind says that an earlier operation is still waited for.
func (w *watch) behind() bool {
	for id, order := range w.p.waiting {
		if order < w.sent.order && id != w.id {
			return true
		}
	}
	return false
}

// followed says that a later operation was accepted: the service has work when this one ends.
func (w *watch) followed() bool { return w.p.count > w.sent.order }

func (w *watch) class() class { return class{w.op, w.sent.size} }

// elapsed is how long the operation can have run.
func (w *watch) elapsed() time.Duration {
	w.p.mu.Lock()
	defer w.p.mu.Unlock()
	return time.Since(w.begin())
}

// sleep waits until the next look is due.
func (w *watch) sleep(ctx context.Context) error {
	for {
		at, changed := w.next()
		d := time.Until(at)
		if d <= 0 {
			return ctx.Err()
		}
		t := time.NewTimer(d)
		select {
		case <-t.C:
			return nil
		case <-changed:
			t.Stop()
		case <-ctx.Done():
			t.Stop()
			return context.Cause(ctx)
		}
	}
}

// next is when to look, unless changed is closed before.
func (w *watch) next() (at time.Time, changed <-chan struct{}) {
	w.p.mu.Lock()
	defer w.p.mu.Unlock()
	if w.behind() {
		return w.looked.Add(longest), w.p.changed
	}
	begin := w.begin()
	from := w.looked
	if begin.After(from) {
		from = begin
	}
	ran := from.Sub(begin)
	h := w.p.habits[w.class()]
	early, due := h.window()
	often := time.Duration(16)
	if w.followed() {
		often = 4
	}
	step := clamp(ran/32, shortest, longest)
	switch {
	case ran < early-shortest:
		// A sixteenth of what is expected bounds how late the end of a short one among long ones is noticed.
		return from.Add(min(early-ran, clamp(early/often, shortest, longest))), w.p.changed
	case w.first:
		return from, w.p.changed
	case h == nil: // the first of its class: nothing is known but that it runs still
		step = clamp(ran/16, shortest, longest)
	case ran <= due:
		step = clamp(ran/64, shortest, near)
	}
	// On a slow link the look itself is most of the wait, so that little is added to it.
	return from.Add(max(step, min(w.trip/4, near))), w.p.changed
}

// window is when the end is expected; both are 0 while nothing is known.
func (h *habit) window() (early, due time.Duration) {
	if h == nil {
		return 0, 0
	}
	slack := 4*h.dev + 0.04*h.mean
	return seconds(h.mean - slack), seconds(h.mean + slack)
}

// running notes a look, asked for at asked, that found the operation unfinished.
func (w *watch) running(asked time.Time) {
	w.first, w.looked, w.seen = false, time.Now(), asked
	w.trip = w.looked.Sub(asked)
}

// ended notes the look that found the end, and learns.
func (w *watch) ended() {
	w.p.mu.Lock()
	defer w.p.mu.Unlock()
	now, begin := time.Now(), w.begin()
	if w.known && !w.behind() {
		w.p.learn(w.class(), begin, w.seen, now)
	}
	w.p.last = now
	w.forget()
}

// learn takes an operation of class c that began at begin, ran still at seen (zero: not known), and had ended at now.
func (p *pace) learn(c class, begin, seen, now time.Time) {
	took := now.Sub(begin).Seconds()
	h := p.habits[c]
	switch {
	case seen.After(begin): // it ended between the last two looks
		took -= now.Sub(seen).Seconds() / 2
	case h != nil && took > h.mean: // the first look came late: nothing new
		return
	}
	if h == nil {
		p.habits[c] = &habit{mean: took, dev: took / 32}
		return
	}
	miss := took - h.mean
	h.mean += miss / 4
	h.dev += (math.Abs(miss) - h.dev) / 4
}

func clamp(d, low, high time.Duration) time.Duration { return max(low, min(d, high)) }

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
