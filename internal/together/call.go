package together

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"time"

	"trainer/internal/wire"
)

const (
	// patient is how long an attempt may stand still before it is given up: without an answer, or in the middle of one.
	patient = 60 * time.Second
	// thorough is the same for a create, which is not sent again.
	thorough = 300 * time.Second
	// smallAnswer and largeAnswer bound what is read of an answer, in bytes.
	smallAnswer = 16 << 20
	largeAnswer = 4 << 30
	hops        = 10
)

// call is one request, as often as it is sent.
type call struct {
	method string
	path   string      // below the service's address, with the query
	url    string      // instead of path: a presigned address, which gets no credentials
	body   []byte      // nil: none
	key    string      // idempotency key; empty: none
	header http.Header // further lines of the request's head; nil: none
	what   string      // is at url, for messages; empty: payload
	stall  time.Duration
	most   int64 // bytes of the answer; 0: smallAnswer
	// read takes a 2xx answer; nil: nobody needs it. It may be called once for each attempt.
	read func(header http.Header, body io.Reader) error
}

// name is the request in messages; a presigned address would give away its signature.
func (c *call) name() string {
	if c.url != "" {
		return c.method + " " + cmp.Or(c.what, "payload")
	}
	path, _, _ := bytes.Cut([]byte(c.path), []byte("?"))
	return c.method + " " + string(path)
}

// into returns a read that decodes JSON into v.
func into(v any) func(http.Header, io.Reader) error {
	return func(_ http.Header, body io.Reader) error { return json.NewDecoder(body).Decode(v) }
}

// send makes one attempt, and returns what became of it.
func (c *Client) send(parent context.Context, k *call) verdict {
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	stall := k.stall
	if stall == 0 {
		stall = patient
	}
	watch := &watchdog{limit: stall}
	watch.timer = time.AfterFunc(stall, func() { cancel(fmt.Errorf("no answer for %v", stall)) })
	defer watch.timer.Stop()

	res, err := c.follow(ctx, k, watch)
	if err != nil {
		return c.broken(ctx, parent, err)
	}
	body := &moving{r: res.Body, watch: watch}
	defer func() {
		_, _ = io.CopyN(io.Discard, body, 64<<10) // so that the connection can be used again
		_ = res.Body.Close()
	}()
	if res.StatusCode < 200 || res.StatusCode > 299 {
		return c.judge(k, res, body)
	}
	if k.read == nil {
		return verdict{fate: carried}
	}
	most := k.most
	if most == 0 {
		most = smallAnswer
	}
	limited := &io.LimitedReader{R: body, N: most}
	err = k.read(res.Header, limited)
	switch {
	case err == nil:
		return verdict{fate: carried}
	case body.err != nil:
		return c.broken(ctx, parent, fmt.Errorf("reading the answer: %w", body.err))
	case limited.N <= 0:
		err = fmt.Errorf("the answer is longer than %d bytes", most)
	}
	cut := errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF)
	return verdict{fate: unclear, again: cut, err: fmt.Errorf("the answer (%d) cannot be read: %w", res.StatusCode, err)}
}

// follow sends k, and again where a redirect points: with its method and body, as only 307 and 308 promise, or as the GET
// that it was. Credentials go to the service's own address alone.
func (c *Client) follow(ctx context.Context, k *call, watch *watchdog) (*http.Response, error) {
	address := k.url
	if address == "" {
		address = c.base + k.path
	}
	at, err := url.Parse(address)
	if err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" {
		return nil, unsendable{fmt.Errorf("%q is not an address to send to", c.redact(strip(address)))}
	}
	for range hops {
		req, err := c.request(ctx, k, at, watch)
		if err != nil {
			return nil, unsendable{err}
		}
		res, err := c.rt.RoundTrip(req)
		if err != nil {
			return nil, err
		}
		next, err := redirect(k, at, res)
		if err != nil || next == nil {
			return res, err
		}
		_, _ = io.CopyN(io.Discard, res.Body, 64<<10)
		_ = res.Body.Close()
		at = next
	}
	return nil, unsendable{fmt.Errorf("redirected more than %d times", hops)}
}

// redirect returns where res points, nil when it is an answer.
func redirect(k *call, at *url.URL, res *http.Response) (*url.URL, error) {
	switch res.StatusCode {
	case http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther:
		if k.method != http.MethodGet {
			return nil, nil // it would come back as a GET, which does something else
		}
	default:
		return nil, nil
	}
	next, err := at.Parse(res.Header.Get("Location"))
	if err != nil || res.Header.Get("Location") == "" || next.Host == "" {
		return nil, nil
	}
	return next, nil
}

// request builds what is sent to at.
func (c *Client) request(ctx context.Context, k *call, at *url.URL, watch *watchdog) (*http.Request, error) {
	// The body is hidden behind a reader of ours, and there is no GetBody: a transport that sends a request again by itself
	// would hide an unclear attempt from us.
	var body io.Reader
	if len(k.body) > 0 {
		body = &moving{r: io.NopCloser(bytes.NewReader(k.body)), watch: watch}
	}
	req, err := http.NewRequestWithContext(ctx, k.method, at.String(), body)
	if err != nil {
		return nil, err
	}
	req.ContentLength = int64(len(k.body))
	if c.own(at) && k.url == "" {
		for name, values := range c.headers {
			req.Header[name] = values
		}
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", c.agent)
	if k.method != http.MethodGet {
		req.Header.Set("Content-Type", "application/json")
	}
	maps.Copy(req.Header, k.header)
	if k.key != "" {
		req.Header.Set(wire.KeyHeader, k.key)
	}
	return req, nil
}

// own says whether u is the service's own scheme, host and port.
func (c *Client) own(u *url.URL) bool {
	base, err := url.Parse(c.base)
	return err == nil && base.Scheme == u.Scheme && base.Host == u.Host
}

// strip leaves out a query, which may be a signature.
func strip(address string) string {
	before, _, _ := bytes.Cut([]byte(address), []byte("?"))
	return string(before)
}

// watchdog ends an attempt that stands still.
type watchdog struct {
	timer *time.Timer
	limit time.Duration
}

// moving is a body, of the request or of the answer, that tells the watchdog of each part that passes; err keeps what
// ended it, other than its end.
type moving struct {
	r     io.ReadCloser
	watch *watchdog
	err   error
}

func (m *moving) Read(p []byte) (int, error) {
	n, err := m.r.Read(p)
	if n > 0 {
		m.watch.timer.Reset(m.watch.limit)
	}
	if err != nil && err != io.EOF {
		m.err = err
	}
	return n, err
}
