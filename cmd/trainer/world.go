package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"trainer/internal/journal"
	"trainer/internal/report"
	"trainer/internal/runs"
	"trainer/internal/sandbox"
	"trainer/internal/together"
	"trainer/internal/wire"
	"trainer/runner"
)

// where says what runs a recipe.
type where struct {
	sandbox  bool   // the sandbox, not the service
	embedded bool   // in this process
	base     string // address; empty where embedded
	key      string
	shape    wire.Shape    // of the samples that are sent
	lent     string        // the folder of the sandbox that another run had in its process, for one that begins from it; or empty
	patience time.Duration // of a run, with a service that does not answer; 0: a few tries
}

// errNoKey offers the free way.
var errNoKey = &usage{"TOGETHER_API_KEY is not set; set it to run at the service, or try the recipe for free on the built-in sandbox with --sandbox"}

// place decides: sandbox/NAME and --sandbox mean the sandbox, a running one where TOGETHER_BASE_URL is a loopback
// address; everything else means the service, and never switches silently.
func (a *app) place(model string, asked bool) (where, error) {
	base, key := a.getenv("TOGETHER_BASE_URL"), a.getenv("TOGETHER_API_KEY")
	if base != "" && !isAddress(base) {
		return where{}, &usage{"TOGETHER_BASE_URL: " + shown(base) + " is not an address; it begins with https:// or http://, and a port is at most 65535"}
	}
	if asked || strings.HasPrefix(model, runner.SandboxPrefix) {
		if loopback(base) {
			return where{sandbox: true, base: base, key: or(key, anyKey)}, nil
		}
		return where{sandbox: true, embedded: true, key: anyKey}, nil
	}
	if key == "" {
		return where{}, errNoKey
	}
	return where{base: base, key: key}, nil
}

// anyKey is sent to a sandbox that asks for none. The client cuts its key out of every message, so it is no word.
const anyKey = "sandbox-takes-any-key"

// shown is an address for a message: one that carries a password is not repeated.
func shown(base string) string {
	if strings.Contains(base, "@") {
		return "its value"
	}
	return strconv.Quote(base)
}

// isAddress says whether requests can be sent to base at all.
func isAddress(base string) bool {
	u, err := url.Parse(base)
	if err != nil || u.Hostname() == "" || u.Scheme != "https" && u.Scheme != "http" {
		return false
	}
	if u.Port() == "" {
		return true
	}
	_, err = strconv.ParseUint(u.Port(), 10, 16)
	return err == nil
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func loopback(base string) bool {
	u, err := url.Parse(base)
	if base == "" || err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

// link is a client, and what must be closed behind it.
type link struct {
	client *together.Client
	server *sandbox.Server // nil unless embedded
	tell   atomic.Pointer[func(runner.Event)]
	say    io.Writer // where nobody listens to tell yet; nil: nowhere
}

// connect makes the client; an embedded sandbox keeps its state in dir, or in memory when dir is empty.
func (a *app) connect(w where, dir string) (*link, error) {
	l := &link{say: a.err}
	headers, err := customHeaders(a.getenv("TOGETHER_CUSTOM_HEADERS"))
	if err != nil {
		return nil, err
	}
	o := together.Options{BaseURL: w.base, Key: w.key, UserAgent: "trainer/" + versionText(), OnRetry: l.retried, Headers: headers, Shape: w.shape, Patience: w.patience}
	if w.embedded {
		if l.server, err = sandbox.Open(sandbox.Options{Dir: dir}); err != nil {
			return nil, err
		}
		o.BaseURL, o.Transport = "http://sandbox", http.RoundTripper(l.server)
	}
	l.client = together.New(o)
	return l, nil
}

func (l *link) close() error {
	if l.server == nil {
		return nil
	}
	return l.server.Close()
}

// retried passes what the client does again on to who listens: a silent wait looks like a hang.
func (l *link) retried(r together.Retry) {
	switch tell := l.tell.Load(); {
	case tell != nil:
		(*tell)(runner.Event{Kind: runner.RetryEvent, Text: retryText(r)})
	case l.say != nil:
		fmt.Fprintf(l.say, "trainer: %s\n", retryText(r))
	}
}

// customHeaders reads `Name: value`, one a line.
func customHeaders(text string) (http.Header, error) {
	h := http.Header{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			return nil, errors.New("TOGETHER_CUSTOM_HEADERS: a line is not `Name: value`")
		}
		h.Add(strings.TrimSpace(name), strings.TrimSpace(value))
	}
	return h, nil
}

// world introduces the parts of a run to each other.
func (a *app) world(w where, l *link, dir string, json bool) runner.World {
	sinks := report.Sinks(report.Options{Out: a.out, Err: a.err, TTY: a.tty, OutTTY: a.outTTY, JSON: json, Dir: dir, Width: a.width, Color: a.color()})
	world := runner.World{
		Backend: l.client, Resources: l.client, Downloads: l.client, Sinks: sinks, Dir: dir, Version: versionText(), Sandbox: w.sandbox,
		Hear: func(tell func(runner.Event)) { l.tell.Store(&tell) },
	}
	if !w.embedded { // a sandbox in the run's own process ends with it
		world.Remember = func(id string) error { return a.remember(id, dir, w.base) }
		world.Alone = a.alone
	}
	if !w.sandbox && !loopback(w.base) { // what answers there may be anything under the name of a model
		world.References = a.references(w.base)
	}
	return world
}

// references is where the runs of this machine at one service share what a reference says of their rows, under
// XDG_CACHE_HOME or ~/.cache; empty where neither is known, and each run keeps its own.
func (a *app) references(base string) string {
	cache := a.getenv("XDG_CACHE_HOME")
	if !filepath.IsAbs(cache) { // the standard has others ignored
		home := a.getenv("HOME")
		if home == "" {
			return ""
		}
		cache = filepath.Join(home, ".cache")
	}
	service := "together"
	if base != "" {
		sum := sha256.Sum256([]byte(base)) // an address may carry a password
		service = hex.EncodeToString(sum[:8])
	}
	return filepath.Join(cache, "trainer", "reference", service)
}

// remember writes a run into the machine's list of those that may leave something billing.
func (a *app) remember(id, dir, base string) error {
	path, err := runs.Path(a.getenv)
	if err != nil {
		return err
	}
	at, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if strings.Contains(base, "@") {
		base = "" // it carries a password
	}
	return runs.Remember(path, runs.Entry{Time: time.Now(), RunID: id, Dir: at, Service: base})
}

// alone keeps the runs of this machine from asking for resources at the same time.
func (a *app) alone(ctx context.Context) (free func(), err error) {
	path, err := runs.Path(a.getenv)
	if err != nil {
		return nil, err
	}
	return journal.Alone(ctx, filepath.Join(filepath.Dir(path), "create.lock"))
}

func sandboxDir(run string) string { return filepath.Join(run, "sandbox") }

func retryText(r together.Retry) string {
	return fmt.Sprintf("%s: %v; again in %s (attempt %d)", r.Request, r.Err, r.Wait.Round(time.Millisecond), r.Attempt+1)
}
