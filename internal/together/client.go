// Package together is the client of the service, over HTTP: a runner.Backend, its sessions, and a runner.Resources. It
// owns what a request costs and risks: keys, retries, limits of time, large bodies, and when to look at an operation that
// runs. It decides nothing about training: it sends what the runner prepared, and says what became of it.
//
// What became of a request is told apart as the runner's protocol needs it. Carried out: a 2xx. Refused: another 4xx,
// nothing happened. Unclear: it may have happened. A create is never sent again after an unclear attempt, an operation
// only under the same key with the same bytes. The key of the account goes to the service's own address and into no
// error, whatever a redirect or an answer says.
package together

import (
	"net"
	"net/http"
	"strings"
	"time"

	"trainer/internal/wire"
	"trainer/runner"
)

// DefaultBaseURL is the address of the service.
const DefaultBaseURL = "https://api.together.ai"

// Options of a Client; the zero value speaks to the service without a key.
type Options struct {
	BaseURL   string            // empty: DefaultBaseURL
	Key       string            // goes into Authorization; empty: none is sent
	Headers   http.Header       // sent with every request to BaseURL, and there alone; nil: none
	Transport http.RoundTripper // nil: one of our own, over TCP; the sandbox in process is another
	UserAgent string            // empty: "trainer"
	OnRetry   func(Retry)       // told before each wait, from the goroutine of the request; nil: nobody
	Shape     wire.Shape        // of the samples that are sent
	// Patience is how long what changes nothing, and what did not get out at all, is sent again while nobody answers; 0: a few
	// times.
	Patience time.Duration
}

// Retry is a request that will be sent again.
type Retry struct {
	Request string // POST /v1/rl/model-resources
	Attempt int    // that did not do, from 1
	Wait    time.Duration
	Err     error // why
}

// Client speaks to one service with one key. Safe for concurrent use.
type Client struct {
	base    string
	rt      http.RoundTripper
	headers http.Header // of requests to base
	agent   string
	secrets []string
	inline  int // bytes of a body above which it is uploaded
	shape   wire.Shape
	onRetry func(Retry)

	patience time.Duration
}

var (
	_ runner.Backend   = (*Client)(nil)
	_ runner.Resources = (*Client)(nil)
	_ runner.Session   = (*session)(nil)
)

// New returns a client; it sends nothing.
func New(o Options) *Client {
	c := &Client{
		base: strings.TrimRight(o.BaseURL, "/"), rt: o.Transport, headers: o.Headers.Clone(), agent: o.UserAgent, onRetry: o.OnRetry, inline: wire.InlineLimit, shape: o.Shape, patience: o.Patience,
	}
	if c.base == "" {
		c.base = DefaultBaseURL
	}
	if c.rt == nil {
		c.rt = transport()
	}
	if c.agent == "" {
		c.agent = "trainer"
	}
	if c.headers == nil {
		c.headers = http.Header{}
	}
	for _, values := range c.headers {
		c.secrets = append(c.secrets, values...)
	}
	if o.Key != "" {
		c.headers.Set("Authorization", "Bearer "+o.Key)
		c.secrets = append(c.secrets, o.Key)
	}
	return c
}

// transport keeps connections: a run asks often, from several goroutines, always the same few hosts. Setting DialContext
// keeps it at HTTP/1.1, which is what the service is known to speak.
func transport() *http.Transport {
	return &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout: 10 * time.Second,
		MaxIdleConns:        256,
		MaxIdleConnsPerHost: 64,
		IdleConnTimeout:     90 * time.Second,
		WriteBufferSize:     64 << 10,
		ReadBufferSize:      64 << 10,
	}
}

// redact takes the key, and the values of extra headers, out of a text that others wrote.
func (c *Client) redact(s string) string {
	for _, secret := range c.secrets {
		if len(secret) >= 4 { // a shorter one is no secret, and would cut words to pieces
			s = strings.ReplaceAll(s, secret, "[redacted]")
		}
	}
	return s
}
