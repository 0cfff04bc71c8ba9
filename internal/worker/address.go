package worker

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Address is a server that answers requests posted to it.
type Address struct {
	// URL, https or http to this machine; the caller has leave for its host.
	URL string
	// Headers of every request; ${env:NAME} is read with Getenv when one is sent, and kept nowhere.
	Headers map[string]string
	Getenv  func(string) string
	// Params and Run stand in every request.
	Params map[string]any
	Run    string
	// Timeout of a request, above 0; Retries is how often it is sent again.
	Timeout time.Duration
	Retries int
	// Concurrency bounds the requests in flight.
	Concurrency int
	// Transport carries requests; nil is the usual one.
	Transport http.RoundTripper
	// Trouble is told why an attempt at a request has brought no result, with one of the reasons of a Lost; nil for nobody. It
	// is called from several goroutines.
	Trouble func(reason, msg string)
}

// Server asks an address. It is safe for concurrent use.
type Server struct {
	address Address
	client  *http.Client
	slots   chan struct{}
}

// Dial makes a Server; nothing is sent before the first request.
func Dial(a Address) *Server {
	return &Server{address: a, slots: make(chan struct{}, max(a.Concurrency, 1)), client: &http.Client{
		Transport: a.Transport,
		// An address elsewhere is one that nobody gave leave for.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Ask posts a request of a type, whose other keys are those of body, a JSON object, and returns the reply, a JSON object. key is
// the same for the same request of the same run. Errors are as those of Pool.Ask.
func (s *Server) Ask(ctx context.Context, typ, key string, body []byte) (json.RawMessage, error) {
	sum := sha256.Sum256([]byte(s.address.Run + "\x00" + typ + "\x00" + key))
	var out json.RawMessage
	err := s.post(ctx, hex.EncodeToString(sum[:16]), func(attempt int) ([]byte, error) {
		head := map[string]any{"v": version, "id": 1, "type": typ, "attempt": attempt, "params": orEmpty(s.address.Params), "run": s.address.Run}
		return frame(head, []string{"v", "id", "type", "attempt", "params", "run"}, body, maxFrame)
	}, func(data []byte) error {
		r, err := parse(data)
		if err != nil {
			return &tryAgain{reason: Protocol, msg: "the body is " + err.Error()}
		}
		if msg := s.mask(r.failed()); msg != "" && r.Fatal {
			return &Fatal{s.name() + ": " + msg}
		} else if msg != "" && r.Retry {
			return &tryAgain{reason: Failed, msg: msg}
		} else if msg != "" {
			s.trouble(Failed, msg)
		}
		out = r.raw
		return nil
	})
	return out, err
}

func (s *Server) trouble(reason, msg string) {
	if s.address.Trouble != nil {
		s.address.Trouble(reason, s.name()+": "+msg)
	}
}

// Tell posts what needs no reply, once; nobody learns whether it arrived.
func (s *Server) Tell(ctx context.Context, typ string, body []byte) {
	head := map[string]any{"v": version, "type": typ, "params": orEmpty(s.address.Params), "run": s.address.Run}
	if f, err := frame(head, []string{"v", "type", "params", "run"}, body, maxFrame); err == nil {
		_, _ = s.once(ctx, "", f)
	}
}

// name is the address as it may be printed.
func (s *Server) name() string {
	text, _, _ := strings.Cut(s.address.URL, "?")
	return text
}

// tryAgain is a fault that may pass.
type tryAgain struct {
	reason, msg string
	after       time.Duration // what the server asked for; 0 for nothing
}

func (t *tryAgain) Error() string { return t.reason + ": " + t.msg }

// post sends what make gives until take takes the answer, waiting longer each time.
func (s *Server) post(ctx context.Context, key string, body func(attempt int) ([]byte, error), take func([]byte) error) error {
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	var last *tryAgain
	for attempt := range 1 + s.address.Retries {
		if attempt > 0 {
			if err := sleep(ctx, pause(attempt, last.after)); err != nil {
				return err
			}
		}
		data, err := body(attempt)
		if err != nil {
			return &Lost{Reason: Protocol, Msg: err.Error()}
		}
		reply, err := s.once(ctx, key, data)
		if err == nil {
			err = take(reply)
		}
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if !errors.As(err, &last) {
			return err
		}
		s.trouble(last.reason, last.msg)
	}
	return &Lost{Reason: last.reason, Msg: s.name() + ": " + last.msg}
}

// Bounds of the pause between two attempts.
const (
	longestPause      = 30 * time.Second
	longestRetryAfter = 5 * time.Minute
)

// pause is 1 s doubled up to 30 s, between half and all of it by chance, or what the server asked for.
func pause(attempt int, asked time.Duration) time.Duration {
	if asked > 0 {
		return min(asked, longestRetryAfter)
	}
	d := min(time.Second<<min(attempt-1, 10), longestPause)
	return d/2 + rand.N(d/2)
}

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

// once sends one request and returns the body of a 200.
func (s *Server) once(ctx context.Context, key string, body []byte) ([]byte, error) {
	within, cancel := context.WithTimeout(ctx, s.address.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(within, http.MethodPost, s.address.URL, bytes.NewReader(body))
	if err != nil {
		return nil, &Fatal{s.name() + ": not an address"}
	}
	req.Header.Set("Content-Type", "application/json")
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	for name, value := range s.address.Headers {
		text, missing := expand(value, s.address.Getenv)
		if missing != "" {
			return nil, &Fatal{fmt.Sprintf("%s: the header %s needs the environment variable %s, which is not set", s.name(), name, missing)}
		}
		req.Header.Set(name, text)
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return nil, s.unreachable(within, err)
	}
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxFrame+1))
	switch {
	case err != nil:
		return nil, s.unreachable(within, err)
	case resp.StatusCode == http.StatusOK && len(data) > maxFrame:
		return nil, &tryAgain{reason: Protocol, msg: fmt.Sprintf("a body of more than %d bytes", maxFrame)}
	case resp.StatusCode == http.StatusOK:
		return data, nil
	case mayPass(resp.StatusCode):
		return nil, &tryAgain{reason: Failed, msg: "status " + resp.Status, after: retryAfter(resp.Header.Get("Retry-After"))}
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		return nil, &Fatal{fmt.Sprintf("%s: status %s: redirects are not followed; name the address that answers", s.name(), resp.Status)}
	}
	return nil, &Fatal{fmt.Sprintf("%s: status %s: %s", s.name(), resp.Status, s.mask(printable(firstLine(data))))}
}

func (s *Server) unreachable(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return &tryAgain{reason: TimedOut, msg: "no reply after " + s.address.Timeout.String()}
	}
	var inner interface{ Unwrap() error }
	if errors.As(err, &inner) { // without the address, which an error of the client repeats with its query
		err = inner.Unwrap()
	}
	return &tryAgain{reason: Died, msg: s.mask(err.Error())}
}

func mayPass(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	}
	return status >= 500
}

// retryAfter is in seconds or a date.
func retryAfter(text string) time.Duration {
	if n, err := strconv.Atoi(text); err == nil && n > 0 {
		return time.Duration(min(n, int(longestRetryAfter/time.Second))) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(time.Until(at), 0)
	}
	return 0
}

const errorText = 200

func firstLine(data []byte) string {
	line, _, _ := strings.Cut(strings.TrimSpace(string(data)), "\n")
	return line[:min(len(line), errorText)]
}

var fromEnv = regexp.MustCompile(`\$\{env:([^}]*)\}`)

// expand puts values of the environment into a header; missing is the first that is not set.
func expand(value string, getenv func(string) string) (text, missing string) {
	text = fromEnv.ReplaceAllStringFunc(value, func(m string) string {
		name := fromEnv.FindStringSubmatch(m)[1]
		v := getenv(name)
		if v == "" && missing == "" {
			missing = name
		}
		return v
	})
	return strings.TrimSpace(text), missing
}

// mask hides the values of the headers that came from the environment.
func (s *Server) mask(text string) string {
	var m masker
	for _, value := range s.address.Headers {
		for _, name := range fromEnv.FindAllStringSubmatch(value, -1) {
			m.secrets = append(m.secrets, s.address.Getenv(name[1]))
		}
	}
	return m.mask(text)
}
