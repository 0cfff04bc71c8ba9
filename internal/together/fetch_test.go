package together

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"trainer/internal/download"
	"trainer/runner"
)

const text = "0123456789abcdefghij"

// part is an answer with the bytes from on, as 206; cut ends the connection behind so many of them.
func part(from, upto int, cut bool, headers ...string) func() *http.Response {
	return func() *http.Response {
		r := answer(http.StatusPartialContent, text[from:upto], append([]string{"Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, len(text)-1, len(text))}, headers...)...)
		if cut {
			r.Body = io.NopCloser(io.MultiReader(strings.NewReader(text[from:upto]), broken{}))
		}
		return r
	}
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errReset }

func whole(upto int, cut bool, headers ...string) func() *http.Response {
	return func() *http.Response {
		r := part(0, upto, cut)()
		r.StatusCode, r.Header = http.StatusOK, http.Header{}
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		return r
	}
}

func TestFetch(t *testing.T) {
	for name, c := range map[string]struct {
		from   int
		steps  []any
		want   string   // what is written
		ranges []string // that were asked for
		err    string   // in the error; empty: none
		stale  bool
	}{
		"the whole":                          {0, []any{whole(20, false)}, text, []string{""}, "", false},
		"from an offset":                     {7, []any{part(7, 20, false)}, text[7:], []string{"bytes=7-"}, "", false},
		"from the end":                       {20, nil, "", nil, "", false},
		"a server that knows no ranges":      {7, []any{whole(20, false)}, text[7:], []string{"bytes=7-"}, "", false},
		"cut, and on where it was":           {0, []any{whole(6, true), part(6, 9, true), part(9, 20, false)}, text, []string{"", "bytes=6-", "bytes=9-"}, "", false},
		"short, and on where it was":         {0, []any{whole(6, false), part(6, 20, false)}, text, []string{"", "bytes=6-"}, "", false},
		"an error, then a reset":             {0, []any{says(503, ""), errReset, whole(20, false)}, text, []string{"", "", ""}, "", false},
		"refused":                            {0, []any{says(403, "<Error>expired</Error>")}, "", []string{""}, "refused (403)", true},
		"refused behind some bytes":          {0, []any{whole(6, true), says(410, "")}, text[:6], []string{"", "bytes=6-"}, "refused (410)", true},
		"a range that is refused":            {3, []any{says(416, "")}, "", []string{"bytes=3-"}, "refused (416)", false},
		"longer than announced":              {0, []any{func() *http.Response { return answer(200, text+"!") }}, text, []string{""}, "longer than the 20 bytes", false},
		"a range of another file":            {7, []any{func() *http.Response { return answer(206, "x", "Content-Range", "bytes 7-7/8") }}, "", []string{"bytes=7-"}, "of another file", false},
		"a range that leaves a gap":          {7, []any{part(8, 20, false)}, "", []string{"bytes=7-"}, "begins at byte 8 where 7 was asked for", false},
		"a range that begins before":         {7, []any{part(5, 20, false)}, text[7:], []string{"bytes=7-"}, "", false},
		"no range of bytes":                  {7, []any{func() *http.Response { return answer(206, "x", "Content-Range", "lines 7/8") }}, "", []string{"bytes=7-"}, "no range of bytes", false},
		"compressed":                         {0, []any{whole(20, false, "Content-Encoding", "gzip")}, "", []string{""}, `sent as "gzip"`, false},
		"another file under the same name":   {0, []any{whole(6, true, "Etag", `"a"`), part(6, 20, false, "Etag", `"b"`)}, text[:6], []string{"", "bytes=6-"}, "has changed at the service", false},
		"eight attempts that bring no bytes": {0, []any{errReset}, "", []string{"", "", "", "", "", "", "", ""}, "reset by peer", false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &script{steps: c.steps}
				client := New(Options{BaseURL: testBase, Key: "secret-key", Headers: http.Header{"X-Team": {"secret-team"}}, Transport: s})
				var got bytes.Buffer
				err := client.Downloads("c1", true).Fetch(t.Context(), download.File{Name: "f", Size: int64(len(text)), URL: "https://store.example/f?sig=S"}, int64(c.from), &got)
				if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
					t.Errorf("got %v, want %q", err, c.err)
				}
				if errors.Is(err, download.ErrStale) != c.stale {
					t.Errorf("%v is stale: %v", err, !c.stale)
				}
				if err != nil && strings.Contains(err.Error(), "sig=") {
					t.Errorf("the error gives the signature away: %v", err)
				}
				if got.String() != c.want {
					t.Errorf("wrote %q, want %q", got.String(), c.want)
				}
				var ranges []string
				for _, r := range s.reqs {
					ranges = append(ranges, r.Header.Get("Range"))
					if r.Header.Get("Authorization") != "" || r.Header.Get("X-Team") != "" || r.Header.Get("Accept-Encoding") != "identity" {
						t.Errorf("sent %v", r.Header)
					}
				}
				if fmt.Sprint(ranges) != fmt.Sprint(c.ranges) {
					t.Errorf("asked for %q, want %q", ranges, c.ranges)
				}
			})
		})
	}
}

// Progress is what counts: a line that breaks after every byte still brings the file.
func TestFetchOverALineThatBreaksAtEveryByte(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var steps []any
		for i := range len(text) {
			steps = append(steps, part(i, i+1, true), errReset)
		}
		var got bytes.Buffer
		err := New(Options{BaseURL: testBase, Transport: &script{steps: steps}}).Downloads("c1", false).
			Fetch(t.Context(), download.File{Name: "f", Size: int64(len(text)), URL: "https://store.example/f"}, 0, &got)
		if err != nil || got.String() != text {
			t.Errorf("%q, %v", got.String(), err)
		}
	})
}

// shut is a disk that takes nothing.
type shut struct{}

func (shut) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestFetchEndsAtOnceWhereNothingCanBeWritten(t *testing.T) {
	s := &script{steps: []any{whole(20, false)}}
	err := New(Options{BaseURL: testBase, Transport: s}).Downloads("c1", false).
		Fetch(t.Context(), download.File{Name: "f", Size: 20, URL: "https://store.example/f"}, 0, shut{})
	if err == nil || err.Error() != "no space left" || len(s.reqs) != 1 {
		t.Errorf("%v after %d requests", err, len(s.reqs))
	}
}

func TestFetchEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	s := &script{steps: []any{func(*http.Request) (*http.Response, error) {
		cancel(runner.ErrInterrupted)
		return nil, errReset
	}}}
	err := New(Options{BaseURL: testBase, Transport: s}).Downloads("c1", false).
		Fetch(ctx, download.File{Name: "f", Size: 20, URL: "https://store.example/f"}, 0, shut{})
	if !errors.Is(err, runner.ErrInterrupted) || len(s.reqs) != 1 {
		t.Errorf("%v after %d requests", err, len(s.reqs))
	}
}
