package sandbox

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"trainer/internal/sandbox/fault"
)

// Options of Open. The zero value is a server in memory, without a key, whose resources are READY at the next read.
type Options struct {
	// Dir is the folder of the server's state; it is made, and held against a second server. Empty: memory only.
	Dir string
	// Key is the bearer key that requests must carry. Empty: any request is let in.
	Key string
	// Provision is how long a new resource takes to READY, half of it queueing, and a new session takes half of that to
	// RUNNING.
	Provision time.Duration
	// Clock is what virtual time advances with; nil is the machine's.
	Clock Clock
	// Speed is how much faster than the clock virtual time runs; 0 is 1.
	Speed float64
	// OpTime is how long operations run in virtual time; zero: as long as they take.
	OpTime OpTime
	// Choices are what the server does where the contract says nothing; nil: the first value of each.
	Choices Choices
	// Faults are what goes wrong, decided from FaultSeed. FaultHeaders lets requests ask for more by FaultHeader.
	Faults       []fault.Rule
	FaultSeed    uint64
	FaultHeaders bool
	// Log hears of what a person should know: a torn log, a session that can't go on. nil is silence.
	Log func(format string, a ...any)
}

// Server is the API. Its methods are safe for concurrent use.
type Server struct {
	options Options
	table   []route
	store   store
	bases   bases
	dice    *fault.Dice
	every   int // operations between two snapshots of a session
	inline  int // bytes of an output above which its large members are stored outside
	// sampling bounds how many samples run at a time, each of which uses every processor.
	sampling chan struct{}

	mu      sync.Mutex // guards what follows
	clock   virtual
	state   *state
	broken  error // the log could not be written: nothing can be promised any more
	full    error // there was no room for something: what is there can be read and stopped, and nothing else begins
	written int64 // the mark of the last record
	durable int64 // the store's mark of the last record that an answer must not run ahead of
	closing bool
	turn    chan struct{} // closed, and made anew, when something has changed that a worker may wait for

	calls   sync.WaitGroup // requests being answered
	workers sync.WaitGroup // sessions running operations
}

// Open makes a server, or continues the one whose state is in Dir: operations that were accepted and not finished go on
// at once. An error names the folder where another server holds it, or where the log is damaged.
func Open(o Options) (*Server, error) {
	if o.Clock == nil {
		o.Clock = realClock{}
	}
	if o.Log == nil {
		o.Log = func(string, ...any) {}
	}
	if o.Speed == 0 {
		o.Speed = 1
	}
	if !(o.Speed > 0 && o.Speed <= MaxSpeed) {
		return nil, fmt.Errorf("opening a sandbox: a speed of %v is not above 0 and at most %v", o.Speed, MaxSpeed)
	}
	s := &Server{
		options: o, table: routes(), state: newState(), every: snapshotOps, inline: maxInlineOutput,
		dice: fault.NewDice(o.FaultSeed, o.Faults), turn: make(chan struct{}), sampling: make(chan struct{}, 2),
	}
	if o.Dir == "" {
		s.store = &memory{files: map[string][]byte{}}
	} else {
		d, cut, err := openDisk(o.Dir, s.state.replay)
		if err != nil {
			return nil, err
		}
		if cut > 0 {
			o.Log("sandbox: the log ended in a torn record of %d bytes; it was cut, nothing acknowledged was in it", cut)
		}
		s.store = d
	}
	if err := s.start(); err != nil {
		return nil, errors.Join(err, s.store.close())
	}
	return s, nil
}

func (s *Server) start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	base := s.state.last
	if !base.IsZero() && !s.state.closed {
		base = base.Add(max(tick, s.state.ahead))
	}
	s.clock = startClock(s.options.Clock, base, s.options.Speed)
	if s.state.secret == nil {
		secret := make([]byte, 32)
		_, _ = rand.Read(secret)
		if err := s.commit(&record{Kind: kindServer, Server: &serverSpec{Format: logFormat, Secret: secret}}, nil); err != nil {
			return err
		}
	}
	if s.tick() != max(tick, s.state.ahead) {
		if err := s.commit(&record{Kind: kindTick, Ahead: s.tick()}, nil); err != nil {
			return err
		}
		s.durable = s.written // before any client is told a time that it allows
	}
	for _, sess := range s.state.sessions.order {
		s.wake(sess)
	}
	return nil
}

// commit writes a record and applies it, with the lock held. An answer waits for it, but for those that a replay brings
// back by itself.
func (s *Server) commit(r *record, body []byte) error {
	if s.broken != nil {
		return unstored(s.broken)
	}
	r.T = s.clock.now()
	head, err := r.encode()
	if err != nil {
		return err
	}
	at, mark, err := s.store.append(head, body)
	if noRoom(err) {
		return s.fill(err)
	}
	if err != nil {
		s.broken = err
		s.options.Log("sandbox: %v", err)
		return unstored(err)
	}
	s.written = mark
	if r.Kind != kindTick && r.Kind != kindResult {
		s.durable = mark
	}
	defer s.turnOver()
	return s.state.apply(r, at)
}

// fill notes that there is no room, with the lock held, and returns the refusal of whoever needs some.
func (s *Server) fill(err error) error {
	if s.full == nil {
		s.full = err
		s.options.Log("sandbox: %v", err)
		s.turnOver()
	}
	return unstored(err)
}

// flush waits until every change that was accepted so far is durable.
func (s *Server) flush() error {
	s.mu.Lock()
	mark, err := s.durable, s.broken
	s.mu.Unlock()
	if err == nil {
		err = s.store.sync(mark)
	}
	if err != nil {
		s.mu.Lock()
		s.broken = err
		s.mu.Unlock()
		return unstored(err)
	}
	return nil
}

// Close waits for the operations that have begun, writes every session's weights, and gives the folder back. What was
// accepted and has not begun goes on when the folder is opened again. Requests after it are refused.
func (s *Server) Close() error {
	s.mu.Lock()
	if s.closing {
		s.mu.Unlock()
		return nil
	}
	s.closing = true
	s.turnOver()
	s.mu.Unlock()
	s.calls.Wait()
	s.workers.Wait()
	err := s.snapshotAll()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken == nil {
		err = errors.Join(err, s.commit(&record{Kind: kindClosed}, nil))
	}
	return errors.Join(err, s.store.close())
}

// enter lets a request in: it is counted until leave, and finds every resource expired that is due.
func (s *Server) enter(rt route) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return &problem{http.StatusServiceUnavailable, "server_error", "closed", "", "the sandbox is closed"}
	}
	if s.broken != nil {
		return unstored(s.broken)
	}
	if s.full != nil && rt.adds() {
		return unstored(s.full)
	}
	if err := s.settle(); err != nil {
		return err
	}
	s.calls.Add(1)
	return nil
}

// raw is an answer that is JSON already.
type raw []byte

// settled is an answer that tells of nothing that the disk may still lose: it need not wait for the disk, which may be
// busy with what others have sent.
type settled struct{ body any }

// work finds the request's handler and returns the status and the body to answer with. Nothing that it tells of can be
// lost any more.
func (s *Server) work(r *http.Request, e fault.Event) (int, []byte) {
	body, err := s.dispatch(r, e)
	if noRoom(err) {
		err = unstored(err)
	}
	if known, ok := body.(settled); ok {
		body = known.body
	} else if err == nil {
		err = s.flush()
	}
	var b []byte
	if err == nil {
		if text, ok := body.(raw); ok {
			return http.StatusOK, text
		}
		b, err = json.Marshal(body)
	}
	if err != nil {
		return envelope(err)
	}
	return http.StatusOK, b
}

func envelope(err error) (int, []byte) {
	p := asProblem(err)
	b, _ := json.Marshal(p.body())
	return p.status, b
}

func (s *Server) dispatch(r *http.Request, e fault.Event) (any, error) {
	rt, ids, err := find(s.table, r.Method, r.URL.Path)
	if err == nil && rt.open {
		err = s.signed(r, ids[0])
	} else if denied := s.authorize(r); denied != nil {
		err = denied
	}
	if err != nil {
		return nil, err
	}
	if err := s.enter(rt); err != nil {
		return nil, err
	}
	defer s.calls.Done()
	return rt.serve(s, &request{r, ids, e})
}

func (s *Server) authorize(r *http.Request) error {
	if s.options.Key == "" {
		return nil
	}
	got, want := r.Header.Get("Authorization"), "Bearer "+s.options.Key
	if subtle.ConstantTimeCompare([]byte(got), []byte(want)) == 1 {
		return nil
	}
	return &problem{http.StatusUnauthorized, "authentication_error", "invalid_api_key", "Authorization",
		"the request carries no bearer key that this sandbox accepts"}
}

// date is virtual time as HTTP has it.
func (s *Server) date() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.clock.now().Format(http.TimeFormat)
}
