// Package journal keeps append-only records that survive a kill, a crash and a full disk: one JSON object a line, each
// with a checksum over itself and the line before, so that what is read back is exactly what was appended, in order,
// without a gap. It knows nothing of training; what a record means is its writer's business.
//
// A folder has one writer at a time, held by a lock that dies with the process. Append returns when the record is on
// disk, and concurrent ones share a sync. Once a write or a sync went wrong nothing more is written: a record after a
// hole would be a lie, and the caller has to stop.
//
// A line is
//
//	{"n":0,"t":1700000000000,"type":"run","format":1,"crc":"b6d3f9fe"}
//
// n counts from 0, t is wall-clock milliseconds for people, then come the record's own members, and crc is CRC-32C over
// the crc of the line before ("00000000" before the first) and this line up to `,"crc"`. It finds accidents, not forgery.
package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
)

const (
	fileName = "journal.jsonl"
	lockName = "run.lock"
)

// addDelay is how long an added record may wait for the disk.
const addDelay = time.Second

// Record is one line.
type Record struct {
	N    int64
	Time time.Time // wall clock of the writer, to the millisecond
	Type string
	Data json.RawMessage // the whole object, so that json.Unmarshal(r.Data, &v) reads the record's own members
}

// Journal appends to the journal of one folder. Safe for concurrent use.
type Journal struct {
	path string
	disk Disk
	file File
	lock *os.File
	torn int64

	mu    sync.Mutex // guards what follows; held for a write, never for a sync
	size  int64      // bytes of whole lines
	next  int64      // n of the next record
	crc   string     // of the last line
	err   error      // the first failure; final
	timer *time.Timer

	syncing sync.Mutex // held for a sync: who waits for it finds the work done
	synced  int64      // records on disk; guarded by mu

	unsynced bool // a sync has failed: what was accepted may be lost
}

// Open takes the lock of dir, which must exist, reads its journal and makes it ready to append to; a journal that is
// missing is created, and dir and its parent are synced. A torn tail is kept beside it as journal.torn-N and cut off, and
// what an earlier writer has left in dir of files that it did not come to naming is removed.
//
// *Locked when another process, or this one, has the folder open. *Damaged when valid lines follow a bad one; the records
// before it are returned with it, and nothing is changed.
func Open(dir string) (*Journal, []Record, error) { return OpenOn(Files{}, dir) }

// OpenOn is Open on a disk.
func OpenOn(d Disk, dir string) (*Journal, []Record, error) {
	lock, err := takeLock(dir)
	if err != nil {
		return nil, nil, err
	}
	j, records, err := openLocked(d, dir)
	if err != nil {
		return nil, records, errors.Join(err, lock.Close())
	}
	j.lock = lock
	return j, records, nil
}

func openLocked(d Disk, dir string) (*Journal, []Record, error) {
	Sweep(d, dir)
	path := filepath.Join(dir, fileName)
	f, err := d.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, nil, fmt.Errorf("opening the journal: %w", err)
	}
	j, records, err := replay(d, f, path)
	if err != nil {
		return nil, records, errors.Join(err, f.Close())
	}
	return j, records, nil
}

// replay reads f and cuts its torn tail.
func replay(d Disk, f File, path string) (*Journal, []Record, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the journal: %w", err)
	}
	p := parse(data)
	if p.damage != nil {
		p.damage.Path = path
		return nil, p.records, p.damage
	}
	if tail := data[p.end:]; len(tail) > 0 {
		if err := cut(d, f, path, p.end, tail); err != nil {
			return nil, p.records, err
		}
	}
	// Also when the file was there: the process that created it may have died before it came to this.
	if err := syncFolders(d, filepath.Dir(path)); err != nil {
		return nil, p.records, err
	}
	n := int64(len(p.records))
	return &Journal{path: path, disk: d, file: f, size: p.end, torn: int64(len(data)) - p.end, next: n, synced: n, crc: p.crc}, p.records, nil
}

// cut keeps the tail in a file of its own before it takes it off, so that a crash between the two loses nothing.
func cut(d Disk, f File, path string, end int64, tail []byte) error {
	if _, err := aside(d, filepath.Dir(path), "journal.torn", tail); err != nil {
		return fmt.Errorf("keeping the torn tail of the journal: %w", err)
	}
	if err := errors.Join(f.Truncate(end), f.Sync()); err != nil {
		return fmt.Errorf("cutting the torn tail of the journal: %w", err)
	}
	return nil
}

// aside writes data into the first of the files name-1, name-2 and so on in dir that there is not yet.
func aside(d Disk, dir, name string, data []byte) (kept string, err error) {
	for n := 1; ; n++ {
		kept = filepath.Join(dir, fmt.Sprintf("%s-%d", name, n))
		if _, err := os.Lstat(kept); err == nil {
			continue
		}
		return kept, Put(d, kept, data)
	}
}

// Read returns the records of dir's journal without a lock, for reports; a torn tail, which may be a line that is being
// written, is left out. *Damaged as in Open, with the records before the damage.
func Read(dir string) ([]Record, error) {
	path := filepath.Join(dir, fileName)
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the journal: %w", err)
	}
	p := parse(data)
	if p.damage != nil {
		p.damage.Path = path
		return p.records, p.damage
	}
	return p.records, nil
}

// Torn returns how many bytes Open cut off the end.
func (j *Journal) Torn() int64 { return j.torn }

// Append writes a record and returns when it, and every record before it, is on disk. kind is its type, of letters, digits
// and underscores; v marshals to a JSON object, nil to an empty one, without the members n, t, type and crc. After an
// error of the disk every later Append and Add returns that error.
func (j *Journal) Append(kind string, v any) error {
	n, err := j.write(kind, v, false)
	if err != nil {
		return err
	}
	return j.flush(n + 1)
}

// Add writes a record, which then survives the process; it is on disk with the next Append, or within a second. kind, v
// and the error are as in Append.
func (j *Journal) Add(kind string, v any) error {
	_, err := j.write(kind, v, true)
	return err
}

// write hands one line to the operating system and returns its n.
func (j *Journal) write(kind string, v any, later bool) (int64, error) {
	members, err := membersOf(kind, v)
	if err != nil {
		return 0, fmt.Errorf("journal record %q: %w", kind, err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.err != nil {
		return 0, j.err
	}
	line, crc := encode(j.crc, j.next, time.Now(), members)
	if _, err := j.file.Write(line); err != nil {
		j.err = fmt.Errorf("writing record %d (%s) of %s: %w", j.next, kind, j.path, err)
		return 0, j.err
	}
	j.crc = crc
	j.size += int64(len(line))
	j.next++
	if later && j.timer == nil {
		// What goes wrong then is in j.err, where the next call meets it.
		j.timer = time.AfterFunc(addDelay, func() { _ = j.flush(j.written()) })
	}
	return j.next - 1, nil
}

func (j *Journal) written() int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.next
}

// flush returns when the first count records are on disk. One sync serves everybody who wrote before it began.
func (j *Journal) flush(count int64) error {
	j.syncing.Lock()
	defer j.syncing.Unlock()
	from, to, err := j.due(count)
	if err != nil || from == to {
		return err
	}
	err = j.file.Sync()

	j.mu.Lock()
	defer j.mu.Unlock()
	if err != nil {
		j.unsynced = true
		if j.err == nil {
			j.err = fmt.Errorf("bringing records %d to %d of %s to the disk: %w", from, to-1, j.path, err)
		}
		return j.err
	}
	j.synced = to
	return nil
}

// due says which records a sync has to cover so that the first count are on disk; none when they are.
func (j *Journal) due(count int64) (from, to int64, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.synced >= count {
		return 0, 0, nil
	}
	if j.timer != nil {
		j.timer.Stop() // the sync now does what it is for
		j.timer = nil
	}
	return j.synced, j.next, j.err
}

// Close brings what was added to the disk, and gives the folder free. It is an error when a record that was accepted did
// not get there; a second Close returns nil.
func (j *Journal) Close() error {
	if j.isClosed() {
		return nil
	}
	err := j.flush(j.written())
	j.mu.Lock()
	defer j.mu.Unlock()
	if errors.Is(j.err, os.ErrClosed) {
		return nil
	}
	j.err = fmt.Errorf("%s: %w", j.path, os.ErrClosed)
	err = errors.Join(err, j.file.Close())
	if j.lock != nil {
		err = errors.Join(err, j.lock.Close())
	}
	return err
}

func (j *Journal) isClosed() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return errors.Is(j.err, os.ErrClosed)
}
