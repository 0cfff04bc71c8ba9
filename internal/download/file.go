package download

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// staleTries is how many addresses of a file are asked for in a row without a byte coming of it.
const staleTries = 3

// file fetches one file, unless it is there.
func (t *transfer) file(ctx context.Context, f File) error {
	_, err := t.root.Lstat(f.Name)
	if err == nil { // begin has compared its size
		t.move(f, f.Size, 0, func(s *State) { s.Done, s.Skipped = true, true })
		return nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	w, err := t.open(f)
	if err != nil {
		return err
	}
	t.move(f, w.at, 0, nil)
	if err = t.fetch(ctx, f, w); err == nil {
		err = w.finish()
	} else {
		err = errors.Join(err, w.keep())
	}
	if err = errors.Join(err, w.f.Close()); err != nil {
		return fmt.Errorf("download %s: %w", f.Name, err)
	}
	if err := t.name(f); err != nil {
		return fmt.Errorf("download %s: %w", f.Name, err)
	}
	t.move(f, f.Size, 0, func(s *State) { s.Done = true })
	return nil
}

// fetch fills w, and asks for a new address when one is refused.
func (t *transfer) fetch(ctx context.Context, f File, w *part) error {
	for stale := 0; ; {
		before := w.at
		err := t.job.Source.Fetch(ctx, f, w.at, w)
		if w.err != nil {
			return w.err
		}
		if !errors.Is(err, ErrStale) {
			if err == nil && w.at != f.Size {
				return fmt.Errorf("%d of %d bytes came", w.at, f.Size)
			}
			return err
		}
		if w.at > before {
			stale = 0
		}
		if stale++; stale > staleTries {
			return err
		}
		if f, err = t.renew(ctx, f); err != nil {
			return err
		}
	}
}

// renew returns f with another address; those that went stale with it are renewed together.
func (t *transfer) renew(ctx context.Context, f File) (File, error) {
	t.renewing.Lock()
	defer t.renewing.Unlock()
	find := func() (File, error) {
		for _, now := range t.list() {
			if now.Name == f.Name && now.Size == f.Size {
				return now, nil
			}
		}
		return f, errors.New("the service does not list it any more, or with another size")
	}
	if now, err := find(); err != nil || now.URL != f.URL {
		return now, err
	}
	files, err := t.job.Source.Files(ctx)
	if err != nil {
		return f, fmt.Errorf("ask for a new address: %w", err)
	}
	t.mu.Lock()
	t.files = files
	t.mu.Unlock()
	return find()
}

// part is a file that is not whole, and the writer of its next bytes.
type part struct {
	t      *transfer
	f      *os.File
	w      io.Writer // f
	file   File
	at     int64
	synced int64
	err    error // of the disk
}

// open goes on with the part of f as far as it is certain, or begins one.
func (t *transfer) open(f File) (*part, error) {
	file, err := t.root.OpenFile(f.Name+partEnd, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	w := &part{t: t, f: file, w: file, file: f}
	if t.job.disk != nil {
		w.w = t.job.disk(file)
	}
	if err == nil {
		w.at = min(info.Size(), t.mark(f.Name), f.Size)
		w.synced = w.at
		_, err = file.Seek(w.at, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return w, nil
}

func (t *transfer) mark(name string) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return max(0, t.record.Synced[name])
}

// Write implements io.Writer.
func (w *part) Write(b []byte) (int, error) {
	n, err := w.w.Write(b)
	w.at += int64(n)
	w.t.move(w.file, w.at, n, nil)
	if err == nil && w.at-w.synced >= w.t.block {
		err = w.sync()
	}
	if err != nil {
		w.err = fmt.Errorf("%w: %d bytes are still to come; what is there stays as %s, and the same again goes on from it",
			err, w.file.Size-w.at, w.f.Name())
	}
	return n, w.err
}

// sync brings the bytes so far to the disk, then writes down that they are there.
func (w *part) sync() error {
	if err := w.f.Sync(); err != nil {
		return err
	}
	w.synced = w.at
	w.t.mu.Lock()
	defer w.t.mu.Unlock()
	w.t.record.Synced[w.file.Name] = w.at
	return w.t.record.write(w.t.job.Dir)
}

// keep makes an end that is none durable. Where the disk is full the mark of before stands, and that much is kept.
func (w *part) keep() error {
	if w.at == w.synced || w.err != nil {
		_ = w.f.Sync() // the first error says more
		return nil
	}
	return w.sync()
}

// finish makes the part whole: as long as the file, and on disk.
func (w *part) finish() error {
	info, err := w.f.Stat()
	if err == nil && info.Size() > w.file.Size {
		err = w.f.Truncate(w.file.Size)
	}
	if err != nil {
		return err
	}
	return w.f.Sync()
}

// name gives a whole file its name. Another one may have come to stand there meanwhile.
func (t *transfer) name(f File) error {
	if info, err := t.root.Lstat(f.Name); err == nil {
		if info.Mode().IsRegular() && info.Size() == f.Size { // the same job, twice at once
			return t.root.Remove(f.Name + partEnd)
		}
		return fmt.Errorf("%s has come to be there meanwhile: nothing is overwritten without --force", f.Name)
	}
	return t.root.Rename(f.Name+partEnd, f.Name)
}

// move tells that a file stands at so many bytes, of which n came now.
func (t *transfer) move(f File, here int64, n int, more func(*State)) {
	t.told.Lock()
	defer t.told.Unlock()
	t.mu.Lock()
	t.state.File, t.state.Here, t.state.Whole, t.state.Done, t.state.Skipped = f.Name, here, f.Size, false, false
	t.done.Fetched += int64(n)
	if more != nil {
		more(&t.state)
	}
	switch {
	case t.state.Skipped:
		t.done.Skipped++
		t.state.Bytes += f.Size
	case !t.state.Done && n == 0: // it begins where it was
		t.state.Bytes += here
	default:
		t.state.Bytes += int64(n)
	}
	s := t.state
	t.mu.Unlock()
	if t.job.Tell != nil {
		t.job.Tell(s)
	}
}
