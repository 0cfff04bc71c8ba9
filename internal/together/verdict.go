package together

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"trainer/internal/wire"
	"trainer/runner"
)

// fate is what became of an attempt at the service.
type fate int

const (
	carried fate = iota // a 2xx
	refused             // nothing happened: a 4xx, or nothing was sent
	unclear             // it may have happened
)

// verdict is one attempt. again says that the same may do another time, after wait where that is above 0.
type verdict struct {
	fate  fate
	again bool
	wait  time.Duration
	err   error // nil exactly where carried; *runner.Refused for a 4xx
}

// unsendable is a request that no attempt can send: a bad address, a bad header.
type unsendable struct{ error }

// secretive is an error without the words that must not be shown; the causes below it can still be asked for.
type secretive struct {
	text string
	err  error
}

func (s *secretive) Error() string   { return s.text }
func (s *secretive) Is(t error) bool { return errors.Is(s.err, t) }

// broken judges an attempt without a whole answer.
func (c *Client) broken(ctx, parent context.Context, err error) verdict {
	var never unsendable
	if errors.As(err, &never) {
		return verdict{fate: refused, err: &secretive{c.redact(never.Error()), err}}
	}
	if cause := context.Cause(ctx); cause != nil {
		if parent.Err() != nil {
			return verdict{fate: unclear, err: fmt.Errorf("%w (%w)", cause, parent.Err())}
		}
		return verdict{fate: unclear, again: true, err: cause}
	}
	v := verdict{fate: unclear, again: true, err: &secretive{c.redact(err.Error()), err}}
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" { // no connection, so not a byte was written
		v.fate = refused
	}
	return v
}

// judge reads an answer that is not 2xx.
func (c *Client) judge(k *call, res *http.Response, body io.Reader) verdict {
	r := &runner.Refused{Request: k.name(), Status: res.StatusCode}
	c.envelope(r, res, body)
	v := verdict{fate: refused, wait: retryAfter(res.Header), err: r}
	switch s := res.StatusCode; {
	case s == http.StatusInsufficientStorage: // the service could not keep the request, so nothing came of it
	case s == http.StatusRequestTimeout || s == http.StatusConflict || s >= 500:
		v.fate, v.again = unclear, true
		v.err = fmt.Errorf("%d %s: %s", s, http.StatusText(s), r.Message)
		if s < 500 {
			v.err = &definite{v.err, r}
		}
	case s == http.StatusTooManyRequests:
		v.again = true
	}
	switch res.Header.Get("x-should-retry") {
	case "true":
		v.again = true
	case "false":
		v.again = false
	}
	return v
}

// definite is a 408 or 409: unclear for a request that has an effect, a refusal for one that has none.
type definite struct {
	error
	refused *runner.Refused
}

// envelope fills r from the answer; an answer that is no envelope is quoted.
func (c *Client) envelope(r *runner.Refused, res *http.Response, body io.Reader) {
	b, _ := io.ReadAll(io.LimitReader(body, 64<<10))
	var e wire.ErrorBody
	if json.Unmarshal(b, &e) == nil && (e.Error.Message != "" || e.Error.Type != "") {
		r.Type, r.Message = e.Error.Type, c.redact(e.Error.Message)
		if e.Error.Code != nil {
			r.Code = *e.Error.Code
		}
		if e.Error.Param != nil {
			r.Param = *e.Error.Param
		}
		return
	}
	if to := res.Header.Get("Location"); to != "" && res.StatusCode < 400 {
		r.Message = "redirected to " + c.redact(strip(to)) + ", which this request cannot follow; check TOGETHER_BASE_URL"
		return
	}
	if r.Message = http.StatusText(res.StatusCode); len(b) > 0 {
		r.Message = c.redact(fmt.Sprintf("%.200q", b))
	}
}

// longestAdvice bounds the wait that an answer may ask for.
const longestAdvice = 60 * time.Second

// retryAfter is what the answer asks for: retry-after-ms, then retry-after in seconds or as a date. 0: nothing that counts.
func retryAfter(h http.Header) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("retry-after-ms"), 64); err == nil {
		if d, ok := advice(ms / 1000); ok {
			return d
		}
	}
	text := h.Get("retry-after")
	if s, err := strconv.ParseFloat(text, 64); err == nil {
		d, _ := advice(s)
		return d
	}
	if at, err := http.ParseTime(text); err == nil {
		d, _ := advice(time.Until(at).Seconds())
		return d
	}
	return 0
}

func advice(seconds float64) (time.Duration, bool) {
	if !(seconds > 0 && seconds <= longestAdvice.Seconds()) {
		return 0, false
	}
	return time.Duration(seconds * float64(time.Second)), true
}
