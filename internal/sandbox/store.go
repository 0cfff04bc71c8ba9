package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
)

// store keeps the log and the files beside it. append is called by one goroutine at a time; the rest is safe for
// concurrent use.
type store interface {
	// append adds a record to the log; it is not durable yet. mark is what to pass to sync. Where there is no room for it, as
	// noRoom tells, the log is as it was, and the next record may fit.
	append(head, body []byte) (at span, mark int64, err error)
	// sync returns when every record up to mark is durable. Callers that wait at the same time share one disk write.
	sync(mark int64) error
	// read returns the bytes of a body.
	read(span) ([]byte, error)
	// put makes a file, durable and whole or not there at all, in place of an older one.
	put(name string, write func(io.Writer) error) error
	// open reads a file; fs.ErrNotExist where there is none.
	open(name string) (io.ReadCloser, error)
	close() error
}

// disk is a folder: server.log, server.lock, server.reserve, and files under sessions/, checkpoints/ and payloads/.
type disk struct {
	dir   string
	log   *os.File
	lock  *os.File
	end   int64
	chain uint32
	err   error // the first failed write: what is on disk after it is unknown

	written atomic.Int64 // what append wrote
	durable atomic.Int64 // of which the disk has
	syncing sync.Mutex
}

// temporary is the pattern of files that are being written.
const temporary = ".new-*"

// openDisk locks the folder, hands every record of its log to each, and cuts a torn tail, of cut bytes.
func openDisk(dir string, each func(head []byte, body span) error) (d *disk, cut int64, err error) {
	for _, sub := range []string{"", "sessions", "checkpoints", "payloads"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			return nil, 0, fmt.Errorf("opening the sandbox's folder: %w", err)
		}
	}
	lock, err := lockDir(dir)
	if err != nil {
		return nil, 0, err
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*", temporary)); err == nil {
		for _, name := range left {
			_ = os.Remove(name) // a put that was killed
		}
	}
	d = &disk{dir: dir, lock: lock}
	if cut, err = d.openLog(each); err == nil {
		err = d.reserve()
	}
	if err != nil {
		return nil, 0, errors.Join(err, d.close())
	}
	return d, cut, nil
}

const (
	reserveName = "server.reserve"
	// reserveSize is the room that is kept for what a server with a full disk still writes down: that things are stopped.
	reserveSize = 256 << 10
)

// noRoom says that a disk, or a quota, is full.
func noRoom(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

func (d *disk) reserve() error {
	if info, err := os.Stat(filepath.Join(d.dir, reserveName)); err == nil && info.Size() == reserveSize {
		return nil
	}
	if err := os.WriteFile(filepath.Join(d.dir, reserveName), make([]byte, reserveSize), 0o600); err != nil {
		return fmt.Errorf("keeping room for the end of the sandbox's log: %w", err)
	}
	return nil
}

func (d *disk) openLog(each func(head []byte, body span) error) (cut int64, err error) {
	path := filepath.Join(d.dir, "server.log")
	if d.log, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return 0, fmt.Errorf("opening the sandbox's log: %w", err)
	}
	info, err := d.log.Stat()
	if err != nil {
		return 0, fmt.Errorf("opening the sandbox's log: %w", err)
	}
	if d.end, d.chain, err = scan(d.log, info.Size(), each); err != nil {
		return 0, fmt.Errorf("%s: %w; move the folder away to start anew", path, err)
	}
	if cut = info.Size() - d.end; cut > 0 {
		if err := d.log.Truncate(d.end); err != nil {
			return 0, fmt.Errorf("cutting the torn end of %s: %w", path, err)
		}
	}
	if err := errors.Join(d.log.Sync(), syncDir(d.dir)); err != nil {
		return 0, fmt.Errorf("opening the sandbox's log: %w", err)
	}
	d.written.Store(d.end)
	d.durable.Store(d.end)
	return cut, nil
}

func (d *disk) append(head, body []byte) (at span, mark int64, err error) {
	if d.err != nil {
		return span{}, 0, d.err
	}
	at, mark, err = d.write(head, body)
	if noRoom(err) {
		_ = os.Remove(filepath.Join(d.dir, reserveName))
		if len(body) == 0 {
			at, mark, err = d.write(head, body)
		}
	}
	if err == nil {
		return at, mark, nil
	}
	err = fmt.Errorf("writing the sandbox's log: %w", err)
	if !noRoom(err) {
		d.err = err
	}
	return span{}, 0, err
}

// write adds a record, or as much of it as there is room for, which it cuts off again.
func (d *disk) write(head, body []byte) (span, int64, error) {
	front, back, crc := seal(d.chain, head, body)
	at := d.end
	for _, part := range [][]byte{front, body, back} {
		n, err := d.log.WriteAt(part, at)
		if noRoom(err) {
			if cut := d.log.Truncate(d.end); cut != nil {
				err = cut
			}
		}
		if err != nil {
			return span{}, 0, err
		}
		at += int64(n)
	}
	s := span{at: d.end + int64(len(front)), size: int64(len(body))}
	d.end, d.chain = at, crc
	d.written.Store(at)
	return s, at, nil
}

func (d *disk) sync(mark int64) error {
	if d.durable.Load() >= mark {
		return nil
	}
	d.syncing.Lock()
	defer d.syncing.Unlock()
	if d.durable.Load() >= mark {
		return nil // by the disk write that was waited for
	}
	upTo := d.written.Load()
	if err := d.log.Sync(); err != nil {
		return fmt.Errorf("writing the sandbox's log: %w", err)
	}
	d.durable.Store(upTo)
	return nil
}

func (d *disk) read(s span) ([]byte, error) {
	b := make([]byte, s.size)
	if _, err := d.log.ReadAt(b, s.at); err != nil {
		return nil, fmt.Errorf("reading the sandbox's log: %w", err)
	}
	return b, nil
}

func (d *disk) put(name string, write func(io.Writer) error) (err error) {
	path := filepath.Join(d.dir, filepath.FromSlash(name))
	f, err := os.CreateTemp(filepath.Dir(path), temporary)
	if err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
			err = fmt.Errorf("writing %s: %w", name, err)
		}
	}()
	err = write(f)
	if err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

func (d *disk) open(name string) (io.ReadCloser, error) {
	return os.Open(filepath.Join(d.dir, filepath.FromSlash(name)))
}

func (d *disk) close() error {
	var err error
	if d.log != nil {
		err = errors.Join(d.log.Sync(), d.log.Close())
		_ = os.Remove(filepath.Join(d.dir, reserveName))
	}
	return errors.Join(err, d.lock.Close())
}

// syncDir makes the names in a folder durable, where the system can.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// memory is a store that is gone with its server.
type memory struct {
	mu    sync.Mutex
	files map[string][]byte
}

func (m *memory) append(_, body []byte) (span, int64, error) {
	return span{size: int64(len(body)), held: body}, 0, nil
}

func (m *memory) sync(int64) error            { return nil }
func (m *memory) read(s span) ([]byte, error) { return s.held, nil }
func (m *memory) close() error                { return nil }

func (m *memory) put(name string, write func(io.Writer) error) error {
	var b bytes.Buffer
	if err := write(&b); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.files[name] = b.Bytes()
	return nil
}

func (m *memory) open(name string) (io.ReadCloser, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	b, ok := m.files[name]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return io.NopCloser(bytes.NewReader(b)), nil
}
