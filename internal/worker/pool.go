package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Pool asks a program that runs several times. It is safe for concurrent use.
type Pool struct {
	command Command
	in, out chan *request // of the queue
	ctx     context.Context
	cancel  context.CancelFunc
	done    sync.WaitGroup

	mu     sync.Mutex
	fatal  error         // why the pool is of no use any more
	failed chan struct{} // closed with it
	ready  bool          // a process was ready once
	deaths int           // since the last reply
}

// request is one to be answered, by whichever process.
type request struct {
	ctx     context.Context
	typ     string // empty: nothing is asked, a process is to be there
	body    []byte
	attempt int
	bound   bool         // to the process that it is sent to: no other can answer it
	result  chan outcome // holds one
}

type outcome struct {
	reply json.RawMessage
	by    *attendance
	err   error
}

// Start makes a pool; its processes start when they are first needed, or by Ready. Close ends them, and so does the end of ctx.
func Start(ctx context.Context, c Command) *Pool {
	p := &Pool{command: c, in: make(chan *request), out: make(chan *request), failed: make(chan struct{})}
	p.ctx, p.cancel = context.WithCancel(ctx)
	p.done.Go(p.queue)
	for range c.Workers {
		p.done.Go((&slot{pool: p}).serve)
	}
	return p
}

// Close ends all processes and waits for them: their stdin is closed, then they are asked, then made to leave.
func (p *Pool) Close() {
	p.cancel()
	p.done.Wait()
}

// Ask sends a request of a type, whose other keys are those of body, a JSON object, and returns the reply, a JSON object. The
// error is a *Lost after all retries, a *Fatal when asking on is of no use, or that of ctx.
func (p *Pool) Ask(ctx context.Context, typ string, body []byte) (json.RawMessage, error) {
	o := p.put(&request{ctx: ctx, typ: typ, body: body, result: make(chan outcome, 1)}, p.in, nil)
	return o.reply, o.err
}

// put hands r to whoever takes from in, and waits for what becomes of it; gone is closed when nobody takes any more.
func (p *Pool) put(r *request, in chan<- *request, gone <-chan struct{}) outcome {
	select {
	case in <- r:
	case <-gone:
		return outcome{err: &Gone{Died, "its program is gone"}}
	case <-p.failed:
		return outcome{err: p.why()}
	case <-r.ctx.Done():
		return outcome{err: context.Cause(r.ctx)}
	case <-p.ctx.Done():
		return outcome{err: context.Cause(p.ctx)}
	}
	select {
	case o := <-r.result:
		return o
	case <-p.failed:
		return outcome{err: p.why()}
	case <-r.ctx.Done():
		return outcome{err: context.Cause(r.ctx)}
	case <-p.ctx.Done():
		return outcome{err: context.Cause(p.ctx)}
	}
}

// Ready starts one process, unless there is one that works, and waits until it can be asked. The error is a *Fatal where it can't
// be, or that of ctx.
func (p *Pool) Ready(ctx context.Context) error {
	return p.put(&request{ctx: ctx, result: make(chan outcome, 1)}, p.in, nil).err
}

func (p *Pool) why() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fatal
}

// queue holds what no process has taken yet.
func (p *Pool) queue() {
	var waiting []*request
	for {
		waiting = slices.DeleteFunc(waiting, func(r *request) bool { return r.ctx.Err() != nil })
		var out chan *request
		var first *request
		if len(waiting) > 0 {
			out, first = p.out, waiting[0]
		}
		select {
		case r := <-p.in:
			waiting = append(waiting, r)
		case out <- first:
			waiting = waiting[1:]
		case <-p.ctx.Done():
			return
		}
	}
}

// again queues a request once more, or ends it where it had its retries; said is what its program has printed.
func (p *Pool) again(r *request, reason, msg, said string) {
	p.trouble(reason, msg)
	if r.bound {
		r.result <- outcome{err: &Gone{reason, msg}}
		return
	}
	r.attempt++
	if r.attempt > p.command.Retries {
		r.result <- outcome{err: &Lost{reason, msg, said}}
		return
	}
	p.requeue(r)
}

func (p *Pool) requeue(r *request) {
	if r.bound {
		r.result <- outcome{err: &Gone{Died, "its program was killed for another request"}}
		return
	}
	select {
	case p.in <- r:
	case <-p.ctx.Done():
	}
}

func (p *Pool) trouble(reason, msg string) {
	if p.command.Trouble != nil {
		p.command.Trouble(reason, msg)
	}
}

// end makes every request fail with err.
func (p *Pool) end(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fatal == nil {
		p.fatal = err
		close(p.failed)
	}
}

func (p *Pool) answered() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.deaths = 0
}

func (p *Pool) wasReady() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ready = true
}

// maxDeaths without a reply in between end the run.
const maxDeaths = 5

// died counts a death; one before any process was ready, or too many in a row, ends the run.
func (p *Pool) died(msg, said string) {
	p.mu.Lock()
	p.deaths++
	useless := !p.ready || p.deaths >= maxDeaths
	count := p.deaths
	p.mu.Unlock()
	if !useless {
		return
	}
	text := fmt.Sprintf("%s: %s", strings.Join(p.command.Args, " "), msg)
	if count > 1 {
		text += " (" + strconv.Itoa(count) + " times without a reply)"
	}
	if said != "" {
		text += "; it printed:\n" + said
	}
	p.end(&Fatal{masker{p.command.Secrets}.mask(text)})
}

// slot keeps one process at work.
type slot struct {
	pool  *Pool
	delay time.Duration // before the next start; 0 after a reply
}

// longestDelay between a death and the next start.
const longestDelay = 30 * time.Second

// serve starts a process for the first request that waits, and attends to it until it has to be replaced.
func (s *slot) serve() {
	for {
		var r *request
		select {
		case r = <-s.pool.out:
		case <-s.pool.ctx.Done():
			return
		}
		proc := s.start()
		if proc == nil {
			s.pool.requeue(r)
			select {
			case <-s.pool.failed:
				return
			default:
				continue
			}
		}
		s.attend(proc, r)
	}
}

// start runs a process, after a pause where the last one died; nil when it did not get ready.
func (s *slot) start() *process {
	if s.delay > 0 {
		select {
		case <-time.After(s.delay):
		case <-s.pool.ctx.Done():
			return nil
		}
	}
	proc, said, err := s.pool.command.start(s.pool.ctx)
	if err != nil {
		s.died()
		if s.pool.ctx.Err() == nil {
			s.pool.died(err.Error(), said)
		}
		return nil
	}
	s.pool.wasReady()
	return proc
}

// died doubles the pause before the next start.
func (s *slot) died() { s.delay = min(max(2*s.delay, time.Second), longestDelay) }

// open is a request that a process works on.
type open struct {
	*request
	deadline time.Time
}

// attend sends requests to a process and takes its replies until it fails or the pool ends.
func (s *slot) attend(proc *process, first *request) {
	a := &attendance{slot: s, proc: proc, open: map[int64]open{}, own: make(chan *request), told: make(chan []byte), gone: make(chan struct{})}
	defer close(a.gone)
	a.send(first)
	for a.step() {
	}
}

// attendance is what one process does in its life.
type attendance struct {
	*slot
	proc *process
	open map[int64]open
	last int64         // id
	own  chan *request // of the episodes that live in the process
	told chan []byte   // frames without a reply
	gone chan struct{} // closed when the process is
}

// step waits for the next thing to happen; false when the process is gone.
func (a *attendance) step() bool {
	var more, own chan *request
	if len(a.open) < a.proc.inFlight {
		more, own = a.pool.out, a.own
	}
	timer := time.NewTimer(time.Until(a.next()))
	defer timer.Stop()
	select {
	case line, ok := <-a.proc.lines:
		if !ok {
			a.lose(a.proc.ending())
			return false
		}
		return a.take(line)
	case r := <-more:
		a.send(r)
	case r := <-own:
		a.send(r)
	case f := <-a.told:
		a.proc.offer(f)
	case <-timer.C:
		return a.expire()
	case <-a.pool.failed:
		a.proc.kill()
		return false
	case <-a.pool.ctx.Done():
		a.proc.stop()
		return false
	}
	return true
}

// next is when the oldest open request is due.
func (a *attendance) next() time.Time {
	due := time.Now().Add(time.Hour)
	for _, o := range a.open {
		if o.deadline.Before(due) {
			due = o.deadline
		}
	}
	return due
}

func (a *attendance) send(r *request) {
	if r.typ == "" {
		r.result <- outcome{}
		return
	}
	a.last++
	head, order := map[string]any{"v": version, "id": a.last, "type": r.typ, "attempt": r.attempt}, []string{"v", "id", "type", "attempt"}
	if r.bound { // the attempt is that of its episode
		order = order[:3]
	}
	f, err := frame(head, order, r.body, a.pool.command.mostBytes())
	if err != nil {
		r.result <- outcome{err: &Lost{Reason: Protocol, Msg: err.Error()}}
		return
	}
	a.open[a.last] = open{r, time.Now().Add(a.pool.command.Timeout)}
	a.proc.send(f)
}

// take settles the request that a line answers; false when the process talks out of turn, and is killed.
func (a *attendance) take(line []byte) bool {
	r, err := parse(line)
	var id int64
	var o open
	if err == nil {
		var ok bool
		id, err = strconv.ParseInt(string(r.ID), 10, 64)
		if o, ok = a.open[id]; err != nil || !ok {
			err = errUnknownID
		}
	}
	if errors.Is(err, ErrNotANumber) && a.pool.command.PassNaN && len(a.open) == 1 {
		for id, o := range a.open {
			delete(a.open, id)
			a.delay = 0
			a.pool.answered()
			o.result <- outcome{err: err}
		}
		return true
	}
	if err != nil {
		a.lose(Protocol, err.Error())
		return false
	}
	delete(a.open, id)
	a.delay = 0
	a.pool.answered()
	switch msg := (masker{a.pool.command.Secrets}).mask(r.failed()); {
	case msg != "" && r.Fatal:
		a.pool.end(&Fatal{strings.Join(a.pool.command.Args, " ") + ": " + msg})
	case msg != "" && r.Retry && o.bound && o.attempt < a.pool.command.Retries:
		o.attempt++
		a.send(o.request)
	case msg != "" && r.Retry && o.bound:
		o.result <- outcome{err: &Lost{Reason: Failed, Msg: msg}}
	case msg != "" && r.Retry:
		a.pool.again(o.request, Failed, msg, "")
	default:
		if msg != "" {
			a.pool.trouble(Failed, msg)
		}
		o.result <- outcome{reply: r.raw, by: a}
	}
	return true
}

// lose replaces a process that died or broke the protocol; each of its requests has used an attempt.
func (a *attendance) lose(reason, msg string) {
	a.proc.kill()
	a.died()
	said := a.proc.said.last()
	a.pool.died(msg, said)
	for _, id := range a.ids() {
		a.pool.again(a.open[id].request, reason, msg, said)
	}
}

// ids are those of the open requests, oldest first.
func (a *attendance) ids() []int64 {
	var ids []int64
	for id := range a.open {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// expire replaces a process that let a request wait too long; its other requests have used no attempt.
func (a *attendance) expire() bool {
	now := time.Now()
	if now.Before(a.next()) {
		return true
	}
	a.proc.kill()
	a.died()
	for _, id := range a.ids() {
		if o := a.open[id]; o.deadline.After(now) {
			a.pool.requeue(o.request)
		} else {
			a.pool.again(o.request, TimedOut, "no reply after "+a.pool.command.Timeout.String(), a.proc.said.last())
		}
	}
	return false
}
