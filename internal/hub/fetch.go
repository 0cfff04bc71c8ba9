package hub

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"trainer/internal/journal"
)

func parent(path string) string { return filepath.Dir(path) }

// fetch brings the content to blob, alone: another process that fetches the same is waited for, and its file taken. What an
// attempt has got stays beside as .part, and the next one goes on behind it; the hash of the whole decides.
func (h *Hub) fetch(ctx context.Context, c content, blob string) error {
	free, err := journal.Alone(ctx, blob+".lock")
	if err != nil {
		return fmt.Errorf("%s: %w", c.name, err)
	}
	defer free()
	if _, _, err := c.check(ctx, blob); err == nil {
		return nil
	}
	t := &transfer{hub: h, content: c, part: blob + ".part"}
	if t.file, err = os.OpenFile(t.part, os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return fmt.Errorf("%s: keep what is fetched: %w", c.name, err)
	}
	err = t.whole(ctx)
	if err == nil {
		err = t.file.Sync()
	}
	if cerr := t.file.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return named(c.name, err)
	}
	if err := os.Rename(t.part, blob); err != nil {
		return fmt.Errorf("%s: keep what is fetched: %w", c.name, err)
	}
	return nil
}

// transfer is one content on its way into a file.
type transfer struct {
	hub     *Hub
	content content
	part    string
	file    *os.File
	etag    string // of the answer that the bytes so far are of; empty: of an earlier process, or none
	fresh   bool   // begun anew because what was there did not fit
}

// whole gets all bytes and compares them. What does not fit is fetched once more from its beginning: the part of an earlier
// process may be of other bytes.
func (t *transfer) whole(ctx context.Context) error {
	for {
		err := t.hub.again(ctx, t.content.name, func() (bool, error) { return t.more(ctx) })
		if err != nil {
			return err
		}
		_, _, err = t.content.check(ctx, t.part)
		var wrong *mismatch
		if !errors.As(err, &wrong) {
			return err
		}
		if t.fresh {
			_ = t.file.Truncate(0)
			return fmt.Errorf("%s: what came %w: it was changed on its way, or is not what was named", t.content.name, wrong)
		}
		t.fresh, t.etag = true, ""
		if err := t.file.Truncate(0); err != nil {
			return err
		}
	}
}

// more asks for what is missing, and says whether any of it came.
func (t *transfer) more(ctx context.Context) (ahead bool, err error) {
	have, err := t.file.Seek(0, io.SeekEnd)
	if err != nil {
		return false, permanent{err}
	}
	if t.content.size >= 0 && have > t.content.size {
		if have, err = 0, t.file.Truncate(0); err != nil {
			return false, permanent{err}
		}
	}
	if have == t.content.size {
		return true, nil
	}
	ctx, alive, stop := awake(ctx)
	defer stop()
	resp, err := t.hub.ask(ctx, t.content.url, t.header(have), t.genuine)
	var no *refusal
	if errors.As(err, &no) && no.status == http.StatusRequestedRangeNotSatisfiable && have > 0 {
		if t.content.size < 0 && !t.fresh {
			return true, nil // all of it may be here: the hash tells
		}
		if terr := t.file.Truncate(0); terr != nil {
			return false, permanent{terr}
		}
		return false, fmt.Errorf("%s has no more than it gave", no.host)
	}
	if err != nil {
		return false, cause(ctx, err)
	}
	defer resp.Body.Close()
	n, err := t.take(resp, have, alive)
	return n > 0, cause(ctx, err)
}

// header asks for the bytes from have on, where they are of the same file as those that are here.
func (t *transfer) header(have int64) http.Header {
	header := http.Header{}
	if have > 0 {
		header.Set("Range", fmt.Sprintf("bytes=%d-", have))
		if t.etag != "" {
			header.Set("If-Range", t.etag)
		}
	}
	return header
}

// genuine refuses an answer of another commit than was asked for.
func (t *transfer) genuine(resp *http.Response) error {
	if c := resp.Header.Get("X-Repo-Commit"); t.content.commit != "" && c != "" && c != t.content.commit {
		return permanent{fmt.Errorf("the hub answers with the commit %s, and %s is due", t.hub.printable(c), t.content.commit)}
	}
	return nil
}

// take writes a body behind the first have bytes, or from the beginning where it is the whole.
func (t *transfer) take(resp *http.Response, have int64, alive func()) (n int64, err error) {
	body := io.Reader(resp.Body)
	coding := resp.Header.Get("Content-Encoding")
	if resp.StatusCode == http.StatusPartialContent && (rangeStart(resp.Header) != have || coding != "" && coding != "identity") {
		if err := t.file.Truncate(0); err != nil {
			return 0, permanent{err}
		}
		return 0, errors.New("the answer is of another range than was asked for")
	}
	switch coding {
	case "", "identity":
	case "gzip", "x-gzip": // nobody asked for it, but some proxies do
		if body, err = gzip.NewReader(body); err != nil {
			return 0, fmt.Errorf("the answer is no gzip: %w", err)
		}
	default:
		return 0, permanent{fmt.Errorf("the answer comes in the coding %q, which was not asked for", t.hub.printable(coding))}
	}
	if resp.StatusCode != http.StatusPartialContent {
		if err := t.file.Truncate(0); err != nil {
			return 0, permanent{err}
		}
		have = 0
	}
	if tag := resp.Header.Get("ETag"); strings.HasPrefix(tag, `"`) { // a weak one does not speak of bytes
		t.etag = tag
	}
	if _, err := t.file.Seek(have, io.SeekStart); err != nil {
		return 0, permanent{err}
	}
	if t.content.size >= 0 {
		body = io.LimitReader(body, t.content.size-have+1)
	}
	to := &told{t: t, at: have, size: t.content.size, alive: alive}
	if to.size < 0 && resp.ContentLength > 0 {
		to.size = have + resp.ContentLength
	}
	n, err = io.CopyBuffer(to, body, make([]byte, 256<<10))
	if to.err != nil {
		return n, permanent{fmt.Errorf("keep what is fetched: %w", to.err)}
	}
	if err == nil && t.content.size >= 0 && have+n < t.content.size {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return n, fmt.Errorf("after %d bytes: %w", have+n, err)
	}
	if t.content.size >= 0 && have+n > t.content.size {
		return n, permanent{fmt.Errorf("more came than the %d bytes that are due", t.content.size)}
	}
	return n, nil
}

// told writes, and tells who watches.
type told struct {
	t        *transfer
	at, size int64
	alive    func()
	err      error // of the disk
}

func (w *told) Write(p []byte) (int, error) {
	w.alive()
	n, err := w.t.file.Write(p)
	w.at += int64(n)
	w.err = err
	if progress := w.t.hub.Progress; progress != nil {
		progress(w.t.content.name, w.at, w.size)
	}
	return n, err
}

// rangeStart is where the answer begins, -1 where it does not say.
func rangeStart(header http.Header) int64 {
	text, ok := strings.CutPrefix(header.Get("Content-Range"), "bytes ")
	from, _, dash := strings.Cut(text, "-")
	n, err := strconv.ParseInt(from, 10, 64)
	if !ok || !dash || err != nil {
		return -1
	}
	return n
}

// errSilent ends a request that nothing came of.
var errSilent = fmt.Errorf("nothing came for %v", silence)

// awake is a context that ends when alive was not called for a while.
func awake(ctx context.Context) (_ context.Context, alive func(), stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	t := time.AfterFunc(silence, func() { cancel(errSilent) })
	return ctx, func() { t.Reset(silence) }, func() { t.Stop(); cancel(nil) }
}

// cause is err, or why ctx ended where it did.
func cause(ctx context.Context, err error) error {
	if err != nil && errors.Is(context.Cause(ctx), errSilent) {
		return errSilent
	}
	return err
}
