package runner

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"runtime/debug"
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
	disk     journal.Disk
	session  Session
	dir      string // of bodies not yet answered for
	runID    string
	serial   bool // lookahead 0: each operation ends before the next is sent
	once     bool // the service ignores keys: nothing that trains is ever sent twice
	patience time.Duration

	gate    sync.Mutex // held while intents are written, so that none stands behind what taints the session
	mu      sync.Mutex
	ops     map[slot]*operation
	bodies  []*operation    // those whose bodies may be on disk
	staged  map[string]bool // keys whose bodies are on disk ahead of their intents
	order   []*operation    // those of the trainer in this session, by pos
	beside  []*operation    // the samples in flight
	pos     int             // of the next intent
	witness stored          // the newest: its body is kept to ask again whether keys of its age live
	spoiled error           // why the session is tainted, nil while it is not
	onSpoil func()          // called once, when it is
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
	body   string // SHA-256 of an answer's request that an earlier life has journaled
	out    string // SHA-256 of the file that keeps its log-probabilities; empty: there is none
	done   chan struct{}
	cut    context.CancelCauseFunc // ends the wait for it
	res    Result
	err    error
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
	items = slices.Clone(items)
	for i := range items {
		items[i].slot = l.attempt(items[i])
		if ops[i] = l.at(items[i].slot); ops[i] == nil {
			fresh = append(fresh, i)
		}
	}
	if err := l.intend(items, fresh); err != nil {
		return nil, err
	}
	for _, i := range fresh {
		if err := l.tainted(); err != nil {
			return nil, err
		}
		o, err := l.send(ctx, items[i])
		for err == nil && l.asksAgain(o) {
			items[i].slot.attempt++
			if err = l.intend(items, []int{i}); err == nil {
				o, err = l.send(ctx, items[i])
			}
		}
		if err != nil {
			return nil, err
		}
		ops[i] = o
	}
	return ops, nil
}

// harmlessTries is how often what trains nothing is asked for.
const harmlessTries = 3

// attempt is it's slot under the number that is due: what trains nothing can be asked for anew where an earlier one has
// failed, or was of another plan or, as an environment has answered otherwise than in an earlier life, of another prompt.
func (l *ledger) attempt(it item) slot {
	s := it.slot
	for !s.mutating() {
		o := l.at(s)
		if o == nil || !o.final() {
			break
		}
		other := (s.kind == kindReference || s.samples()) && o.body != "" && o.body != hashOf(it.body.Body)
		if !other && (o.err == nil || !s.needed() && s.attempt >= harmlessTries-1) {
			break
		}
		s.attempt++
	}
	return s
}

func (l *ledger) at(s slot) *operation {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ops[s]
}

// stage brings the bodies of items to the disk, for a submit to come. It may run beside submit, steps ahead of it.
func (l *ledger) stage(items []item) error {
	files, keys := map[string][]byte{}, []string{}
	for _, it := range items {
		key := l.key(it)
		if l.at(it.slot) != nil || l.isStaged(key) {
			continue
		}
		files[bodyName(key)] = it.body.Body
		keys = append(keys, key)
	}
	if err := journal.PutAll(l.disk, l.dir, files); err != nil {
		return fmt.Errorf("store the bodies of requests: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, key := range keys {
		l.staged[key] = true
	}
	return nil
}

func (l *ledger) key(it item) string { return it.slot.key(l.runID, l.session.ID()) }

func (l *ledger) isStaged(key string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.staged[key]
}

// unstage removes the bodies that were staged and never sent.
func (l *ledger) unstage() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for key := range l.staged {
		_ = l.disk.Remove(l.path(key)) // a body left behind does no harm
	}
	clear(l.staged)
}

// intend writes the bodies that are not staged, then the intents, the last of them synced.
func (l *ledger) intend(items []item, fresh []int) error {
	due := make([]item, len(fresh))
	for n, i := range fresh {
		due[n] = items[i]
	}
	if err := l.stage(due); err != nil {
		return err
	}
	l.gate.Lock()
	defer l.gate.Unlock()
	if err := l.tainted(); err != nil {
		return err
	}
	for n, it := range due {
		key := l.key(it)
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
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, it := range due {
		delete(l.staged, l.key(it))
	}
	return nil
}

func hashOf(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}

func (l *ledger) path(key string) string { return filepath.Join(l.dir, bodyName(key)) }

func bodyName(key string) string { return key + ".json" }

// send posts an intended item and watches it to its end.
func (l *ledger) send(ctx context.Context, it item) (*operation, error) {
	key := l.key(it)
	it.body.Once = l.once && it.slot.mutating()
	id, err := l.post(ctx, it.slot, key, it.body)
	if err != nil {
		if !it.slot.mutating() {
			l.close(it.slot, key, err) // it has its intent: who asks again does it as the next attempt
		}
		return nil, fmt.Errorf("%v: %w", it.slot, err)
	}
	if err := l.journal.Add(recAck, ackRecord{key, id}); err != nil {
		return nil, fmt.Errorf("journal the answer: %w", err)
	}
	o := &operation{slot: it.slot, key: key, op: it.body.Op, id: id, expect: it.expect, digest: it.digest, done: make(chan struct{})}
	if it.slot.kind == kindWitness {
		l.testify(stored{key, id, it.body})
	}
	l.follow(ctx, o)
	if l.serial && !it.slot.samples() {
		if _, err := o.wait(ctx); err != nil && it.slot.mutating() {
			return nil, err
		}
	}
	return o, nil
}

// askedAgain is the pause between two POSTs of a request whose answer has stayed unclear for a while.
const askedAgain = 5 * time.Second

// post submits; when the answer stays unclear it asks again, under the same key and bytes, as long as patience lasts. What
// trains is then sent once at a time, each time behind the newest witness, which shows that the service still knows keys
// of that age: it may forget them at any moment.
func (l *ledger) post(ctx context.Context, s slot, key string, p Prepared) (string, error) {
	deadline, once := time.Now().Add(l.patience), p.Once
	for {
		id, err := l.session.Submit(ctx, key, p)
		var unclear *Unclear
		if !errors.As(err, &unclear) || once || time.Now().After(deadline) {
			return id, err
		}
		if err := sleep(ctx, askedAgain); err != nil {
			return "", err
		}
		if s.mutating() {
			if err := l.vouch(ctx); err != nil {
				return "", err
			}
			p.Once = true
		}
	}
}

// vouch asks the newest witness again: the same id says that the service still knows keys of its age.
func (l *ledger) vouch(ctx context.Context) error {
	if l.once || l.witness.key == "" {
		return unsure("the service forgets idempotency keys: what was sent may or may not have run, and is not sent again")
	}
	id, err := l.session.Submit(ctx, l.witness.key, l.witness.body)
	if err != nil {
		return fmt.Errorf("ask whether keys still live: %w", err)
	}
	if id != l.witness.id {
		return unsure("the service has forgotten an idempotency key: what was sent may or may not have run, and is not sent again")
	}
	return nil
}

func (l *ledger) testify(s stored) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.witness = s
}

// tainted is why nothing more may be sent, nil while it may.
func (l *ledger) tainted() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.spoiled
}

// whenTainted has f called once, when the session is tainted.
func (l *ledger) whenTainted(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.onSpoil = f
}

// follow waits for o in a goroutine of the ledger and records how it ended.
func (l *ledger) follow(ctx context.Context, o *operation) {
	ctx, o.cut = context.WithCancelCause(ctx)
	l.mu.Lock()
	l.ops[o.slot] = o
	if o.slot.samples() {
		l.beside = append(slices.DeleteFunc(l.beside, (*operation).final), o)
	} else {
		l.order = append(l.order, o)
	}
	l.bodies = append(l.bodies, o)
	l.mu.Unlock()
	l.waits.Go(func() {
		defer close(o.done)
		defer o.cut(nil)
		defer func() {
			if p := recover(); p != nil {
				o.err = &Panic{Value: p, Stack: debug.Stack()}
				l.taint(o.err) // also where nobody waits for it
			}
		}()
		o.res, o.err = l.end(ctx, o)
		o.err = l.record(ctx, o)
	})
}

// record journals the end of o. An error that is no end of the operation, such as a cancelled wait, leaves it open.
func (l *ledger) record(ctx context.Context, o *operation) (err error) {
	rec := resultRecord{Key: o.key, Status: "COMPLETED", How: "answer"}
	if o.err != nil {
		return l.fail(o, rec)
	}
	if o.digest != nil {
		o.digest(&o.res)
	}
	if o.slot.scores() && o.res.Logprobs != nil {
		if err := l.keep(o); err != nil {
			return err
		}
		rec.Out = o.out
	}
	rec.TokenLoss = o.res.TokenLoss
	if o.op == OpForwardBackward {
		rec.Loss = &o.res.Loss
	}
	if o.slot.samples() {
		if rec.Out, err = l.keepSamples(o); err != nil {
			return err
		}
	}
	rec.Metrics, rec.Step, rec.Version, rec.Checkpoint = finite(o.res.Metrics), o.res.Step, o.res.Version, o.res.Checkpoint
	if err := l.journal.Add(recResult, rec); err != nil {
		return fmt.Errorf("journal the result of %s: %w", o.slot.kind, err)
	}
	if o.slot.samples() {
		return nil
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
		err = &Disorder{fmt.Sprintf("%s %s ended before %s %s, which was submitted earlier", o.op, o.id, e.op, e.id)}
		l.taint(err)
		l.give(e, err)
		return err
	}
	return nil
}

// give ends the waits for e and for all behind it; what was sent before e still lands.
func (l *ledger) give(e *operation, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, o := range l.order[max(0, slices.Index(l.order, e)):] {
		o.cut(err)
	}
}

func (l *ledger) before(o *operation) []*operation {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.order = slices.DeleteFunc(l.order, func(e *operation) bool { return e != o && e.final() })
	return slices.Clone(l.order[:slices.Index(l.order, o)])
}
