package sandbox

import (
	"fmt"
	"net/http"
	"strconv"
)

// RoundTrip answers a request in the caller's goroutine, without a socket: the server as an http.Client's Transport. An
// error is a context that has ended, a fault that was asked for, or a server that is closed, which to a client is a refused
// connection.
func (s *Server) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		defer func() { _ = r.Body.Close() }()
	}
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	closing := s.closing
	s.mu.Unlock()
	if closing {
		return nil, fmt.Errorf("%s %s: the sandbox is closed", r.Method, r.URL.Path)
	}
	in := r.Clone(r.Context())
	if in.Host == "" {
		in.Host = r.URL.Host
	}
	if in.Body == nil {
		in.Body = http.NoBody
	}
	in.RequestURI = r.URL.RequestURI()
	a := s.answer(in)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	if a.lost {
		return nil, fmt.Errorf("%s %s: %w", r.Method, r.URL.Path, errCut)
	}
	return &http.Response{
		Status: strconv.Itoa(a.status) + " " + http.StatusText(a.status), StatusCode: a.status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: s.header(a), Body: a.reader(r.Context()), ContentLength: int64(len(a.body)), Request: r,
	}, nil
}
