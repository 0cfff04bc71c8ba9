package runner

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"trainer/internal/journal"
)

// recorder is *journal.Journal.
type recorder interface {
	Append(kind string, v any) error // on disk when it returns
	Add(kind string, v any) error    // on disk with the next Append, or soon
}

// ledger is the one funnel of a session's operations: intent on disk, effect, result on disk. A slot that has a result
// answers from the journal. One caller submits at a time, in the order in which the service must apply; results arrive
// concurrently.
type ledger struct {
	journal  recorder
	session  Session
	dir      string // of bodies not yet answered for
	runID    string
	serial   bool // lookahead 0: each operation ends before the next is sent
	once     bool // the service ignores keys: nothing that trains is ever sent twice
	patience time.Duration

	mu      sync.Mutex
	ops     map[slot]*operation
	order   []*operation // those of this session, by pos
	pos     int          // of the next intent
	witness stored       // the newest: its body is kept to ask again whether keys of its age live
	spoiled error        // why the session is tainted, nil while it is not
	onSpoil func(error)  // told once, when it is
	waits   sync.WaitGroup
}

// operation is one that has been asked for: in flight, or answered.
type operation struct {
	slot   slot
	key    string
	op     OpName
	id     string
	expect int // updates after it
	digest func(*Result)
	done   chan struct{}
	res    Result
	err    error
	// dropped: the body is removed; collect's alone.
	dropped bool
}

// item is an operation to be. Digest, where it is set, makes of the answer what the journal keeps of it.
type item struct {
	slot   slot
	body   Prepared
	expect int
	digest func(*Result)
}

// stored is an operation whose exact bytes can be sent again.
type stored struct {
	key  string
	id   string
	body Prepared
}

// wait returns the operation's result, or the cause that ended ctx.
func (o *operation) wait(ctx context.Context) (Result, error) {
	select {
	case <-o.done:
		return o.res, o.err
	case <-ctx.Done():
		return Result{}, context.Cause(ctx)
	}
}

func (o *operation) final() bool {
	select {
	case <-o.done:
		return true
	default:
		return false
	}
}

// submit puts items in flight in their order and returns without waiting for their ends. All bodies and intents of the
// call are on disk before the first is sent.
func (l *ledger) submit(ctx context.Context, items ...item) ([]*operation, error) {
	ops := make([]*operation, len(items))
	var fresh []int
	for i, it := range items {
		if ops[i] = l.at(it.slot); ops[i] == nil {
			fresh = append(fresh, i)
		}
	}
	if err := l.intend(items, fresh); err != nil {
		return nil, err
	}
	for _, i := range fresh {
		o, err := l.send(ctx, items[i])
		if err != nil {
			return nil, err
		}
		ops[i] = o
	}
	return ops, nil
}

func (l *ledger) at(s slot) *operation {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ops[s]
}

// intend writes the bodies, then the intents, the last of them synced.
func (l *ledger) intend(items []item, fresh []int) error {
	for n, i := range fresh {
		it := items[i]
		key := it.slot.key(l.runID, l.session.ID())
		if err := l.keep(key, it.body); err != nil {
			return err
		}
		write := l.journal.Add
		if n == len(fresh)-1 {
			write = l.journal.Append
		}
		err := write(recIntent, intentRecord{
			Session: l.session.ID(), Pos: l.pos, Step: it.slot.step, Kind: it.slot.kind, Index: it.slot.index, Attempt: it.slot.attempt,
			Key: key, Body: hashOf(it.body.Body), PayloadID: it.body.PayloadID, Expect: it.expect,
		})
		if err != nil {
			return fmt.Errorf("journal the intent of %s: %w", it.slot.kind, err)
		}
		l.pos++
	}
	return nil
}

func hashOf(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}

func (l *ledger) keep(key string, p Prepared) error {
	if err := journal.WriteFile(l.path(key), p.Body); err != nil {
		return fmt.Errorf("store the body of %s: %w", p.Op, err)
	}
	return nil
}

func (l *ledger) path(key string) string { return filepath.Join(l.dir, key+".json") }

// send posts an intended item and watches it to its end.
func (l *ledger) send(ctx context.Context, it item) (*operation, error) {
	key := it.slot.key(l.runID, l.session.ID())
	it.body.Once = l.once && it.slot.mutating()
	id, err := l.post(ctx, it.slot, key, it.body)
	if err != nil {
		return nil, fmt.Errorf("%s of step %d: %w", it.slot.kind, it.slot.step, err)
	}
	if err := l.journal.Add(recAck, ackRecord{key, id}); err != nil {
		return nil, fmt.Errorf("journal the answer: %w", err)
	}
	o := &operation{slot: it.slot, key: key, op: it.body.Op, id: id, expect: it.expect, digest: it.digest, done: make(chan struct{})}
	if it.slot.kind == kindWitness {
		l.testify(stored{key, id, it.body})
	}
	l.follow(ctx, o)
	if l.serial {
		if _, err := o.wait(ctx); err != nil && it.slot.mutating() {
			return nil, err
		}
	}
	return o, nil
}

// post submits; when the answer stays unclear it asks again, under the same key and bytes, as long as patience lasts and
// the newest witness shows that the service still knows keys of that age.
func (l *ledger) post(ctx context.Context, s slot, key string, p Prepared) (string, error) {
	deadline := time.Now().Add(l.patience)
	for {
		id, err := l.session.Submit(ctx, key, p)
		var unclear *Unclear
		if !errors.As(err, &unclear) || p.Once || time.Now().After(deadline) {
			return id, err
		}
		if s.mutating() {
			if err := l.vouch(ctx); err != nil {
				return "", err
			}
		}
	}
}

// vouch asks the newest witness again: the same id says that the service still knows keys of its age.
func (l *ledger) vouch(ctx context.Context) error {
	if l.once || l.witness.key == "" {
		return errors.New("the service forgets idempotency keys: what was sent may or may not have run, and is not sent again")
	}
	id, err := l.session.Submit(ctx, l.witness.key, l.witness.body)
	if err != nil {
		return fmt.Errorf("ask whether keys still live: %w", err)
	}
	if id != l.witness.id {
		return errors.New("the service has forgotten an idempotency key: what was sent may or may not have run, and is not sent again")
	}
	return nil
}

func (l *ledger) testify(s stored) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.witness = s
}

// taint says that the session holds, or may hold, what is not in the plan: nothing more is sent to it.
func (l *ledger) taint(err error) {
	l.mu.Lock()
	if l.spoiled == nil {
		l.spoiled = err
	}
	tell := l.onSpoil
	l.mu.Unlock()
	if tell != nil {
		tell(err)
	}
}

// whenTainted has f called with the reason, also when it was tainted before.
func (l *ledger) whenTainted(f func(error)) {
	l.mu.Lock()
	l.onSpoil = f
	err := l.spoiled
	l.mu.Unlock()
	if err != nil {
		f(err)
	}
}

// follow waits for o in a goroutine of the ledger and records how it ended.
func (l *ledger) follow(ctx context.Context, o *operation) {
	l.mu.Lock()
	l.ops[o.slot] = o
	l.order = append(l.order, o)
	l.mu.Unlock()
	l.waits.Go(func() {
		defer close(o.done)
		defer func() {
			if p := recover(); p != nil {
				o.err = &Panic{Value: p}
			}
		}()
		o.res, o.err = l.session.Wait(ctx, o.op, o.id)
		o.err = l.record(ctx, o)
	})
}

// record journals the end of o. An error that is no end of the operation, such as a cancelled wait, leaves it open.
func (l *ledger) record(ctx context.Context, o *operation) error {
	var failed *Failed
	rec := resultRecord{Key: o.key, Status: "COMPLETED", How: "answer"}
	switch {
	case errors.As(o.err, &failed):
		rec.Status, rec.Code = "FAILED", failed.Code
		if err := l.journal.Append(recResult, rec); err != nil {
			return errors.Join(o.err, err)
		}
		if o.slot.mutating() {
			l.taint(fmt.Errorf("step %d: %w", o.slot.step+1, o.err))
		}
		return o.err
	case o.err != nil:
		var late *TimedOut
		if o.slot.mutating() && (errors.As(o.err, &late) || errors.Is(o.err, ErrGone)) {
			l.taint(fmt.Errorf("step %d: %w", o.slot.step+1, o.err))
		}
		return o.err
	}
	if o.digest != nil {
		o.digest(&o.res)
	}
	rec.TokenLoss = o.res.TokenLoss
	rec.Loss, rec.Metrics, rec.Step, rec.Version, rec.Checkpoint = o.res.Loss, finite(o.res.Metrics), o.res.Step, o.res.Version, o.res.Checkpoint
	if err := l.journal.Add(recResult, rec); err != nil {
		return fmt.Errorf("journal the result of %s: %w", o.slot.kind, err)
	}
	return l.watch(ctx, o)
}

// watch holds the service to the order of submission, which no document promises: an operation that ends while an
// earlier one, read after it, is unfinished shows that steps have mixed.
func (l *ledger) watch(ctx context.Context, o *operation) error {
	for _, e := range l.before(o) {
		if e.final() {
			continue
		}
		final, err := l.session.Look(ctx, e.op, e.id)
		if err != nil || final || e.final() {
			continue
		}
		err = fmt.Errorf("%s %s ended before %s %s, which was submitted earlier: the session is spoiled; train with train.lookahead 0", o.op, o.id, e.op, e.id)
		l.taint(err)
		return err
	}
	return nil
}

func (l *ledger) before(o *operation) []*operation {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.order = slices.DeleteFunc(l.order, func(e *operation) bool { return e != o && e.final() })
	return slices.Clone(l.order[:slices.Index(l.order, o)])
}
