package hub

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"time"
)

// Bounds of asking.
const (
	tries        = 6
	firstWait    = 500 * time.Millisecond // doubled each time
	longestWait  = 5 * time.Minute        // that a server may ask for
	silence      = time.Minute            // without an answer or a byte, after which a request is given up
	maxRedirects = 10
)

func (h *Hub) http() *http.Client {
	h.once.Do(func() {
		t := h.Transport
		if t == nil {
			own := http.DefaultTransport.(*http.Transport).Clone()
			own.ResponseHeaderTimeout = silence
			t = own
		}
		// Redirects are followed by hand: the library hands the token on to subdomains and other ports.
		h.client = &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	})
	return h.client
}

// ask makes a GET, follows where it leads, and returns a 2xx; anything else is an error, a *refusal where it is an answer.
// seen is told of every answer on the way, as the first of a redirect tells what the last one is of; it may be nil.
func (h *Hub) ask(ctx context.Context, at string, header http.Header, seen func(*http.Response) error) (*http.Response, error) {
	u, err := url.Parse(at)
	if err != nil {
		return nil, errors.New("the address cannot be read")
	}
	for range maxRedirects {
		resp, err := h.single(ctx, u, header)
		if err != nil {
			return nil, err
		}
		if seen != nil {
			if err := seen(resp); err != nil {
				_ = resp.Body.Close()
				return nil, err
			}
		}
		switch {
		case resp.StatusCode/100 == 2:
			return resp, nil
		case resp.StatusCode/100 != 3 || resp.Header.Get("Location") == "":
			_ = resp.Body.Close()
			return nil, &refusal{resp.StatusCode, resp.Header.Get("X-Error-Code"), h.printable(resp.Header.Get("X-Error-Message")), resp.Header, u.Host}
		}
		_ = resp.Body.Close()
		next, err := u.Parse(resp.Header.Get("Location"))
		if err != nil || next.Host == "" || next.Scheme != "https" && next.Scheme != u.Scheme {
			return nil, permanent{fmt.Errorf("%s leads to an address that is not followed", u.Host)}
		}
		u = next
	}
	return nil, permanent{fmt.Errorf("%s leads on and on, %d times", u.Host, maxRedirects)}
}

// single makes one request. The token is for the hub's own address alone.
func (h *Hub) single(ctx context.Context, u *url.URL, header http.Header) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, permanent{errors.New("the address cannot be asked")}
	}
	if header != nil {
		req.Header = header.Clone()
	}
	req.Header.Set("User-Agent", "trainer")
	req.Header.Set("Accept-Encoding", "identity") // sizes and ranges are of the file, not of a compressed answer
	if home, err := url.Parse(h.Endpoint); h.Token != "" && err == nil && u.Scheme == home.Scheme && u.Host == home.Host {
		req.Header.Set("Authorization", "Bearer "+h.Token)
	}
	resp, err := h.http().Do(req)
	var of *url.Error
	if errors.As(err, &of) { // it repeats the address, which may be signed
		err = fmt.Errorf("%s: %w", u.Host, of.Err)
	}
	return resp, err
}

// permanent is a failure that asking again does not mend.
type permanent struct{ error }

func (p permanent) Unwrap() error { return p.error }

// again does what may fail in passing until it is done, is refused for good, or has failed a number of times without a step
// ahead, which do reports.
func (h *Hub) again(ctx context.Context, what string, do func() (ahead bool, err error)) error {
	for failed := 1; ; failed++ {
		ahead, err := do()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if ahead {
			failed = 1
		}
		wait, passing := passes(err, failed)
		if !passing || failed >= tries {
			return err
		}
		if h.Retried != nil {
			h.Retried(fmt.Sprintf("%s: %v; again in %s", what, err, wait.Round(time.Millisecond)))
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// passes says whether a failure may be over when it is tried again, and when that is.
func passes(err error, failed int) (time.Duration, bool) {
	wait := min(firstWait<<(failed-1), 20*time.Second)
	wait = time.Duration(float64(wait) * (0.75 + rand.Float64()/2))
	var r *refusal
	if errors.As(err, &r) {
		if r.status != http.StatusTooManyRequests && r.status != http.StatusRequestTimeout && r.status < 500 {
			return 0, false
		}
		if asked, ok := askedWait(r.header); ok {
			return asked, asked <= longestWait
		}
		return wait, true
	}
	var p permanent
	var no *net.DNSError
	var unknown x509.UnknownAuthorityError
	var invalid x509.CertificateInvalidError
	var other x509.HostnameError
	var broken *tls.CertificateVerificationError
	switch {
	case errors.As(err, &p), errors.As(err, &no) && no.IsNotFound, errors.As(err, &unknown), errors.As(err, &invalid), errors.As(err, &other), errors.As(err, &broken):
		return 0, false
	}
	return wait, true
}

// limitReset is the t of the hub's RateLimit header: seconds until there is room again.
var limitReset = regexp.MustCompile(`(?:^|;)\s*t=(\d{1,6})`)

// askedWait is what the server asks for: Retry-After in seconds or as a date, or its RateLimit.
func askedWait(header http.Header) (time.Duration, bool) {
	if text := header.Get("Retry-After"); text != "" {
		if s, err := strconv.Atoi(text); err == nil && s >= 0 {
			return time.Duration(s) * time.Second, true
		}
		if t, err := http.ParseTime(text); err == nil {
			return max(0, time.Until(t)), true
		}
	}
	if m := limitReset.FindStringSubmatch(header.Get("RateLimit")); m != nil {
		s, _ := strconv.Atoi(m[1]) // six digits at most
		return time.Duration(s) * time.Second, true
	}
	return 0, false
}

// text reads a small answer whole.
func (h *Hub) text(ctx context.Context, what, at string, limit int64) (body []byte, header http.Header, err error) {
	err = h.again(ctx, what, func() (bool, error) {
		ctx, stop := context.WithTimeoutCause(ctx, 2*silence, errors.New("no answer in time"))
		defer stop()
		resp, err := h.ask(ctx, at, nil, nil)
		if err != nil {
			return false, err
		}
		defer resp.Body.Close()
		if body, err = io.ReadAll(io.LimitReader(resp.Body, limit+1)); err != nil {
			return false, fmt.Errorf("%s: %w", resp.Request.URL.Host, err)
		}
		if int64(len(body)) > limit {
			return false, permanent{fmt.Errorf("%s answers with more than %d MB", resp.Request.URL.Host, limit>>20)}
		}
		header = resp.Header
		return true, nil
	})
	return body, header, err
}
