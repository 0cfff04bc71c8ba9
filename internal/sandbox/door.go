package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strconv"
	"time"

	"trainer/internal/sandbox/fault"
)

// FaultHeader asks for faults of the request that carries it: NAME[:key=value,…], several separated by semicolons. It
// counts where Options.FaultHeaders is set.
const FaultHeader = "X-Sandbox-Fault"

// reply is an answer on its way out.
type reply struct {
	status int
	body   []byte
	kind   string        // its media type; empty: JSON
	more   http.Header   // further lines of the head; nil: none
	after  time.Duration // the answer's Retry-After; 0: none
	lost   bool          // the connection ends without an answer
	cut    bool          // it ends after keep bytes of the body
	keep   int
	slow   time.Duration // real time that the body takes
}

// header is what the answer says of itself.
func (s *Server) header(a reply) http.Header {
	h := http.Header{
		"Content-Type": {cmp.Or(a.kind, "application/json")}, "Date": {s.date()}, "Content-Length": {strconv.Itoa(len(a.body))},
	}
	maps.Copy(h, a.more)
	if a.after > 0 {
		h.Set("Retry-After", strconv.FormatFloat(a.after.Seconds(), 'f', -1, 64))
	}
	return h
}

// event is the request as faults see it.
func (s *Server) event(r *http.Request) (fault.Event, error) {
	rt, _, err := find(s.table, r.Method, r.URL.Path)
	if err != nil {
		return fault.Event{Labels: []string{"", fault.Any}}, nil // refused by dispatch
	}
	e := fault.Event{Labels: rt.labels()}
	if !s.options.FaultHeaders {
		return e, nil
	}
	for _, text := range r.Header.Values(FaultHeader) {
		own, err := fault.ParseOwn(text)
		if err != nil {
			return e, invalid(FaultHeader, "%s: %v", FaultHeader, err)
		}
		e.Own = append(e.Own, own...)
	}
	return e, nil
}

// answer passes the request through the faults of the way to the server and back, around the work itself. What the reply
// tells of can't be lost any more.
func (s *Server) answer(r *http.Request) reply {
	e, err := s.event(r)
	if err != nil {
		return refusal(err)
	}
	if hit, ok := s.dice.Roll(fault.Latency, fault.Before, e); ok && s.pause(r.Context(), hit.Duration()) != nil {
		return reply{lost: true}
	}
	a, turned := s.turnAway(e, fault.Before)
	if !turned {
		if a.status, a.body = s.work(r, e); a.status == http.StatusOK {
			a.kind = contentType(r.URL.Path)
			if inParts(r.Method, r.URL.Path) {
				a = inPart(r, a)
			}
		}
		if a.status == http.StatusInsufficientStorage {
			a.more = http.Header{"X-Should-Retry": {"false"}} // to whom every 5xx may pass, as to the SDK
		}
	}
	// All of these are rolled, so that what one decides does not move the numbers of the others.
	instead, broken := s.turnAway(e, fault.After)
	cut, isCut := s.dice.Roll(fault.Truncate, "", e)
	slow, isSlow := s.dice.Roll(fault.SlowBody, "", e)
	late, isLate := s.dice.Roll(fault.Latency, fault.After, e)
	if broken && !turned {
		a = instead
	}
	if isCut {
		a.cut, a.keep = true, cut.Bytes
		if cut.Bytes < 0 || cut.Bytes >= len(a.body) {
			a.keep = len(a.body) / 2
		}
	}
	if isSlow {
		a.slow = s.real(slow.Duration())
	}
	if isLate && s.pause(r.Context(), late.Duration()) != nil {
		return reply{lost: true}
	}
	return a
}

// turnAway answers in the server's place: before the work, which is then not done, or after it.
func (s *Server) turnAway(e fault.Event, w fault.When) (a reply, turned bool) {
	take := func(k fault.Kind, w fault.When, with func(fault.Hit) reply) {
		if hit, ok := s.dice.Roll(k, w, e); ok && !turned {
			a, turned = with(hit), true
		}
	}
	take(fault.Drop, w, func(fault.Hit) reply { return reply{lost: true} })
	take(fault.ServerError, w, func(h fault.Hit) reply {
		a := refusal(&problem{h.Status, "server_error", "fault", "", "the sandbox was asked for this fault: " + h.String()})
		a.after = h.RetryAfter
		return a
	})
	if w == fault.After {
		return a, turned
	}
	take(fault.Unauthorized, "", func(fault.Hit) reply {
		return refusal(&problem{http.StatusUnauthorized, "authentication_error", "invalid_api_key", "Authorization", "the key is not valid any more"})
	})
	take(fault.StaleAddress, "", func(fault.Hit) reply {
		return refusal(&problem{http.StatusForbidden, "permission_error", "expired_address", "sig", "this address has expired"})
	})
	take(fault.TooManyRequests, "", func(h fault.Hit) reply {
		a := refusal(&problem{http.StatusTooManyRequests, "rate_limit_error", "rate_limit", "", "too many requests"})
		a.after = h.RetryAfter
		return a
	})
	take(fault.RefuseStop, "", func(h fault.Hit) reply {
		return refusal(&problem{h.Status, invalidRequest, "stop_refused", "", "this can't be stopped now"})
	})
	return a, turned
}

func refusal(err error) reply {
	status, body := envelope(err)
	return reply{status: status, body: body}
}

// pause waits for a virtual duration; an error is the end of ctx.
func (s *Server) pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(s.real(d))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a := s.answer(r)
	if a.lost {
		panic(http.ErrAbortHandler) // net/http's way to end a connection without an answer
	}
	for name, values := range s.header(a) {
		w.Header()[name] = values
	}
	w.WriteHeader(a.status)
	if !a.cut && a.slow == 0 {
		_, _ = w.Write(a.body) // a client that has gone asks again
		return
	}
	out := flushing{w, http.NewResponseController(w)}
	_, _ = out.Write(nil)
	if _, err := io.Copy(out, a.reader(r.Context())); errors.Is(err, errCut) {
		panic(http.ErrAbortHandler)
	}
}

// flushing sends each part of a body at once.
type flushing struct {
	io.Writer
	c *http.ResponseController
}

func (f flushing) Write(p []byte) (int, error) {
	n, err := f.Writer.Write(p)
	if err == nil {
		err = f.c.Flush()
	}
	if errors.Is(err, http.ErrNotSupported) {
		err = nil
	}
	return n, err
}

// errCut ends a body that is not whole; like what a client sees of a connection that ends.
var errCut = fmt.Errorf("the sandbox was asked to end the connection: %w", io.ErrUnexpectedEOF)

// replyBody is a reply's body as a client sees it, in its own time.
type replyBody struct {
	ctx  context.Context
	left []byte
	cut  bool
	part int           // bytes at a time; 0: all
	wait time.Duration // before each part
}

// slowParts is in how many parts a slow body comes.
const slowParts = 10

func (a reply) reader(ctx context.Context) *replyBody {
	b := &replyBody{ctx: ctx, left: a.body, cut: a.cut}
	if a.cut {
		b.left = a.body[:a.keep]
	}
	if a.slow > 0 {
		b.part, b.wait = (len(b.left)+slowParts-1)/slowParts, a.slow/slowParts
	}
	return b
}

func (b *replyBody) Read(p []byte) (int, error) {
	if len(b.left) == 0 {
		if b.cut {
			return 0, errCut
		}
		return 0, io.EOF
	}
	n := len(p)
	if b.part > 0 {
		n = min(n, b.part)
		select {
		case <-time.After(b.wait):
		case <-b.ctx.Done():
			return 0, b.ctx.Err()
		}
	}
	n = copy(p[:n], b.left)
	b.left = b.left[n:]
	return n, nil
}

func (b *replyBody) Close() error { return nil }
