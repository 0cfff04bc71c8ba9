package runner

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"
)

// lease is a resource that a run trains on, or that its teacher is on: in the journal before it is asked for, metered while it is READY, stopped
// on every way out unless it is attached or to be kept.
type lease struct {
	r        *run
	what     string // aResource, aTeacher
	spec     ResourceSpec
	attach   *string // the resource that is to be attached to; nil: one is made
	id       string
	attached bool
	also     *lease  // the teacher's, where it has one of its own; what both cost is told as one
	price    float64 // US dollars an hour
	before   float64 // what earlier resources of this run have cost

	mu      sync.Mutex
	readyAt time.Time // server time; zero until READY
	clock   serverClock
	timeout time.Duration
}

// serverClock turns the service's own time into a clock that goes on between answers.
type serverClock struct {
	server time.Time
	local  time.Time
}

func (c *serverClock) set(server time.Time) {
	if !server.IsZero() {
		c.server, c.local = server, time.Now()
	}
}

func (c *serverClock) now() time.Time {
	if c.server.IsZero() {
		return time.Now()
	}
	return c.server.Add(time.Since(c.local))
}

// spec is the body of the create.
func (r *run) spec() ResourceSpec { return SpecOf(r.in.Recipe, r.limits.GPUType) }

// take attaches, continues or creates the resource, and waits until it is READY.
func (r *run) take(ctx, stop context.Context) error {
	l := &lease{r: r, what: aResource, spec: r.spec(), attach: r.in.Recipe.ModelResourcesID, timeout: r.in.Recipe.InactiveTimeout, price: r.limits.PriceUSD}
	r.lease = l
	if l.attach == nil {
		if err := r.unexplained(ctx); err != nil {
			return err
		}
	}
	res, err := l.find(ctx, stop)
	if err != nil {
		return err
	}
	taught, err := r.takeTeacher(ctx, stop)
	l.before = r.past.spent(l.id, l.also.held())
	if err != nil {
		return err
	}
	if err := l.ready(ctx, stop, res); err != nil || l.also == nil { // both have been asked for, and wait in the queue together
		return err
	}
	return l.also.ready(ctx, stop, taught)
}

// takeTeacher attaches, continues or creates the resource of the teacher, where it is not on that of the student.
func (r *run) takeTeacher(ctx, stop context.Context) (Resource, error) {
	of := r.limits.Teacher
	if of == nil {
		return Resource{}, nil
	}
	t := &lease{r: r, what: aTeacher, spec: teacherResource(r.in.Recipe, of.GPUType), attach: r.in.Recipe.Teacher.ModelResourcesID,
		timeout: r.in.Recipe.InactiveTimeout, price: of.PriceUSD}
	r.lease.also = t
	return t.find(ctx, stop)
}

// held is the resource's id, empty where there is none.
func (l *lease) held() string {
	if l == nil {
		return ""
	}
	return l.id
}

// find returns the resource in whatever state it is.
func (l *lease) find(ctx, stop context.Context) (Resource, error) {
	r := l.r
	if l.attach != nil {
		return l.attaches(ctx, *l.attach)
	}
	for h := r.past.holding(l.what); h != nil; h = r.past.holding(l.what) {
		res, err := r.world.Resources.Resource(ctx, h.id)
		var refused *Refused
		gone := errors.As(err, &refused) && refused.Status == 404
		if err != nil && !gone {
			return res, fmt.Errorf("read the resource of this run: %w", err)
		}
		if !gone && (res.Status == Ready || res.Status == Pending || res.Status == Creating) {
			l.id, l.price, l.readyAt = h.id, h.price, h.readyAt.ReadyAt
			return res, nil
		}
		if err := r.bury(h, res); err != nil {
			return res, err
		}
	}
	return l.create(ctx, stop)
}

// settleUp writes down what a resource that has ended has cost, by when the service says that it changed last.
func (r *run) settleUp(h *held, res Resource) error {
	end := res.UpdatedAt
	if h.readyAt.ReadyAt.IsZero() || end.IsZero() {
		return nil
	}
	m := meterOf(h.id, h.price, end.Sub(h.readyAt.ReadyAt), end)
	r.past.meters[h.id] = m
	return r.journal.Add(recMeter, m)
}

// bury writes down that a resource of an earlier life is gone, with what it has cost until it was seen to end.
func (r *run) bury(h *held, res Resource) error {
	if err := r.settleUp(h, res); err != nil {
		return err
	}
	h.stopped = true
	return r.journal.Append(recStopped, stopRecord{aResource, h.id, "found gone: " + res.Status})
}

func (l *lease) attaches(ctx context.Context, id string) (Resource, error) {
	r := l.r
	res, err := r.world.Resources.Resource(ctx, id)
	if err != nil {
		return res, fmt.Errorf("attach to %s: %w", id, err)
	}
	if msg := unfit(l.spec, res); msg != "" {
		return res, fmt.Errorf("attach to %s: %s", id, msg)
	}
	l.id, l.attached = id, true
	if h := r.past.resource(id); h != nil && !h.stopped {
		l.readyAt = h.readyAt.ReadyAt
		return res, nil
	}
	return res, r.journal.Append(recCreated, createdRecord{What: l.what, ID: id, How: "attached", PriceUSD: l.price})
}

// unfit says why a resource cannot train the recipe, or is "".
func unfit(want ResourceSpec, res Resource) string {
	switch {
	case res.Status != Ready && res.Status != Pending && res.Status != Creating:
		return "it is " + res.Status
	case res.BaseModel != want.BaseModel:
		return fmt.Sprintf("it has %s, the recipe wants %s", res.BaseModel, want.BaseModel)
	case res.LoRA != want.LoRA:
		return fmt.Sprintf("it was made for %s, the recipe wants %s", mode(res.LoRA), mode(!res.LoRA))
	}
	return ""
}

func mode(lora bool) string {
	if lora {
		return "LoRA sessions"
	}
	return "full weights"
}

// ready waits for READY, telling of the queue.
func (l *lease) ready(ctx, stop context.Context, res Resource) error {
	r := l.r
	told, since := "", time.Now()
	for {
		l.note(res)
		switch res.Status {
		case Ready:
			return l.isReady(res)
		case Pending, Creating:
		default:
			return fmt.Errorf("resource %s is %s: %s %s", l.id, res.Status, res.ErrorCode, res.ErrorMessage)
		}
		if text := l.stage(res); text != told {
			told = text
			r.tell(Event{Kind: StageEvent, Done: r.from, Text: text})
		}
		if m := r.in.Recipe.Limits.MaxQueue; m != nil && res.Status == Pending && time.Since(since) > *m {
			return fmt.Errorf("%w: limits.max_queue: %s in the queue", ErrBudget, *m)
		}
		if err := sleep(stop, nextLook(since)); err != nil {
			return err
		}
		var err error
		if res, err = r.world.Resources.Resource(ctx, l.id); err != nil {
			return fmt.Errorf("wait for resource %s: %w", l.id, err)
		}
	}
}

func (l *lease) stage(res Resource) string {
	whose := ""
	if l.what == aTeacher {
		whose = " for the teacher"
	}
	switch {
	case res.Status == Creating:
		return "loading " + res.BaseModel
	case res.QueuePosition > 0:
		return fmt.Sprintf("waiting for GPUs%s (position %d in the queue)", whose, res.QueuePosition)
	}
	return "waiting for GPUs" + whose
}

func (l *lease) note(res Resource) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.clock.set(res.ServerTime)
}

func (l *lease) isReady(res Resource) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.readyAt.IsZero() {
		return nil
	}
	l.readyAt = l.clock.now()
	if !res.ExpiresAt.IsZero() && res.InactiveTimeout > 0 && !l.attached {
		l.readyAt = res.ExpiresAt.Add(-res.InactiveTimeout)
	}
	return l.r.journal.Append(recReady, readyRecord{l.id, l.readyAt})
}

// nextLook is how long to wait before looking again at what began at since: an eighth of the time so far, from 10 ms to
// 5 s, so that the end is noticed soon, however long it takes: a resource bills from then on.
func nextLook(since time.Time) time.Duration {
	return max(10*time.Millisecond, min(time.Since(since)/8, 5*time.Second))
}

// sleep waits, or returns the cause that ended ctx.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// meter is what the resource has cost while READY: minutes are rounded up.
func (l *lease) meter() meterRecord {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.clock.server.IsZero() { // nobody has told the time: what an earlier life has seen
		m := l.r.past.meters[l.id]
		m.Resource = l.id
		return m
	}
	now := l.clock.now().Add(time.Second) // the service's clock leaves out what is less
	if l.readyAt.IsZero() {
		return meterRecord{Resource: l.id, ServerTime: now}
	}
	return meterOf(l.id, l.price, now.Sub(l.readyAt), now)
}

// meterOf bills every minute that has begun, the first one at once: never less than the service does.
func meterOf(id string, price float64, ready time.Duration, now time.Time) meterRecord {
	ready = max(ready, 0)
	return meterRecord{Resource: id, ReadySeconds: ready.Seconds(), CostUSD: max(1, math.Ceil(ready.Minutes())) / 60 * price, ServerTime: now}
}

// cost is of the whole run so far, the teacher's resource included, in US dollars.
func (l *lease) cost() float64 {
	if l == nil {
		return 0
	}
	return l.before + l.meter().CostUSD + l.also.cost()
}

// rate is what the resource and the teacher's cost, in US dollars an hour.
func (l *lease) rate() float64 {
	if l == nil {
		return 0
	}
	return l.price + l.also.rate()
}
