package journal

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Salvaged is what became of a damaged journal.
type Salvaged struct {
	Damage  Damaged
	Kept    string // the name, in the folder, of the file that holds the journal as it was
	Records int    // those before the damage, which are left
	Bytes   int64  // those behind, which are cut off
}

// Salvage makes the journal of dir the records before its damage and one more, of type kind with the members that record
// gives: both in one rename, so that no one ever reads the rest without it. What was there is in a file of its own then.
// nil: the journal is not damaged, and nothing was done. *Locked where a process works in dir; an error, and nothing done,
// where no record is left.
func Salvage(dir, kind string, record func(Salvaged) any) (s *Salvaged, err error) {
	lock, err := takeLock(dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	path := filepath.Join(dir, fileName)
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the journal: %w", err)
	}
	p := parse(data)
	if p.damage == nil {
		return nil, nil
	}
	p.damage.Path = path
	if len(p.records) == 0 {
		return nil, fmt.Errorf("%w; no record is before it", p.damage)
	}
	s = &Salvaged{Damage: *p.damage, Records: len(p.records), Bytes: int64(len(data)) - p.end}
	kept, err := aside(Files{}, dir, "journal.damaged", data)
	if err != nil {
		return nil, fmt.Errorf("keeping the damaged journal: %w", err)
	}
	s.Kept = filepath.Base(kept)
	members, err := membersOf(kind, record(*s))
	if err != nil {
		return nil, fmt.Errorf("journal record %q: %w", kind, err)
	}
	line, _ := encode(p.crc, int64(len(p.records)), time.Now(), members)
	return s, WriteFile(path, append(bytes.Clone(data[:p.end]), line...))
}
