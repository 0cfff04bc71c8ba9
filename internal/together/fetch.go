package together

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"trainer/internal/download"
	"trainer/runner"
)

// Downloads returns the files of an inference checkpoint: of its adapter, or of the merged model.
func (c *Client) Downloads(id string, adapter bool) download.Source {
	return &downloads{c, id, adapter}
}

type downloads struct {
	c       *Client
	id      string
	adapter bool
}

// Files implements download.Source.
func (d *downloads) Files(ctx context.Context) ([]download.File, error) {
	return d.c.Files(ctx, d.id, d.adapter)
}

// stale is a refusal by a presigned address; who holds it is asked for another. What a refusal of the service advises about
// the key has no place here, since none was sent.
type stale struct{ no *runner.Refused }

func (s *stale) Error() string {
	return fmt.Sprintf("%s: refused (%d): %s", s.no.Request, s.no.Status, s.no.Message)
}

func (s *stale) Unwrap() error        { return s.no }
func (s *stale) Is(target error) bool { return target == download.ErrStale }

// Fetch implements download.Source. No credentials go to the address. An attempt that brought bytes is no failed one: only
// those in a row that bring none are counted.
func (d *downloads) Fetch(ctx context.Context, f download.File, from int64, w io.Writer) error {
	p := &piece{file: f, at: from, w: w}
	for n := 0; p.at < f.Size; n++ {
		before := p.at
		k := p.call()
		v := d.c.send(ctx, k)
		if p.broke != nil {
			return p.broke
		}
		if v.fate == carried {
			return nil
		}
		if p.at > before {
			n = 0
		}
		wait := v.wait
		if wait == 0 {
			wait = backoff(n)
		}
		if ctx.Err() != nil || !reading.repeats(v, n, 0) {
			return refusedAddress(d.c.give(k, reading, false, v.err))
		}
		if d.c.onRetry != nil {
			d.c.onRetry(Retry{Request: k.name(), Attempt: n + 1, Wait: wait, Err: v.err})
		}
		if err := sleep(ctx, wait); err != nil {
			return err
		}
	}
	return nil
}

// refusedAddress makes a refusal that another address may not meet a stale one. 429 was tried again already, and a range
// that is refused says something of the file.
func refusedAddress(err error) error {
	var no *runner.Refused
	if errors.As(err, &no) && no.Status != http.StatusTooManyRequests && no.Status != http.StatusRequestedRangeNotSatisfiable {
		return &stale{no}
	}
	return err
}

// piece is a file as far as it is there.
type piece struct {
	file  download.File
	at    int64
	tag   string // the entity tag of the first answer that had a strong one
	w     io.Writer
	broke error // of w
}

// call asks for what is missing. Compression would hide where a byte stands.
func (p *piece) call() *call {
	head := http.Header{"Accept": {"*/*"}, "Accept-Encoding": {"identity"}}
	if p.at > 0 {
		head.Set("Range", fmt.Sprintf("bytes=%d-", p.at))
	}
	return &call{method: http.MethodGet, url: p.file.URL, what: "file " + p.file.Name, header: head, most: p.file.Size + 2, read: p.read}
}

// read takes an answer: the range that was asked for, or, where the server knows none, the whole, of which the beginning
// is passed over.
func (p *piece) read(h http.Header, body io.Reader) error {
	if e := h.Get("Content-Encoding"); e != "" && e != "identity" {
		return fmt.Errorf("it is sent as %q, which was not asked for", e)
	}
	if tag := h.Get("Etag"); strings.HasPrefix(tag, `"`) {
		if p.tag != "" && tag != p.tag {
			return errors.New("the file has changed at the service while it was fetched")
		}
		p.tag = tag
	}
	begin, err := beginning(h.Get("Content-Range"), p.file.Size)
	if err != nil {
		return err
	}
	if begin > p.at {
		return fmt.Errorf("it begins at byte %d where %d was asked for", begin, p.at)
	}
	if _, err := io.CopyN(io.Discard, body, p.at-begin); err != nil {
		return err
	}
	if _, err := io.Copy(p, io.LimitReader(body, p.file.Size-p.at)); err != nil {
		return err
	}
	if p.at < p.file.Size {
		return io.ErrUnexpectedEOF
	}
	if n, _ := io.CopyN(io.Discard, body, 1); n > 0 {
		return fmt.Errorf("it is longer than the %d bytes that were announced", p.file.Size)
	}
	return nil
}

// Write implements io.Writer.
func (p *piece) Write(b []byte) (int, error) {
	n, err := p.w.Write(b)
	p.at += int64(n)
	if err != nil {
		p.broke = err
	}
	return n, err
}

// beginning is the first byte of an answer, and holds it to the file's size: "bytes 100-199/200"; none is the whole.
func beginning(contentRange string, size int64) (int64, error) {
	if contentRange == "" {
		return 0, nil
	}
	span, whole, ok := strings.Cut(strings.TrimPrefix(contentRange, "bytes "), "/")
	first, _, dash := strings.Cut(span, "-")
	begin, err := strconv.ParseInt(first, 10, 64)
	if !ok || !dash || err != nil || begin < 0 {
		return 0, fmt.Errorf("Content-Range: %q is no range of bytes", contentRange)
	}
	if n, err := strconv.ParseInt(whole, 10, 64); whole != "*" && (err != nil || n != size) {
		return 0, fmt.Errorf("Content-Range: %q is of another file than the %d bytes that were announced", contentRange, size)
	}
	return begin, nil
}
