package journal

import (
	"bytes"
	"errors"
	"fmt"
)

// Damaged is a journal with valid lines after a bad one: no crash does that, so it is not repaired. What stands before
// Offset is good.
type Damaged struct {
	Path   string
	Line   int   // of the bad line, from 1
	Offset int64 // of its first byte
	Reason string
}

func (d *Damaged) Error() string {
	return fmt.Sprintf("%s:%d: damaged at byte %d: %s; valid records follow, so this is no torn write: restore the file from a copy, or go on from the records before that line",
		d.Path, d.Line, d.Offset, d.Reason)
}

// parsed is a journal as read: the good records, where they end, the crc that the next line follows, and the damage.
// Bytes after end without damage are a torn tail.
type parsed struct {
	records []Record
	end     int64
	crc     string
	damage  *Damaged
}

func parse(data []byte) parsed {
	p := parsed{crc: firstCRC}
	for int(p.end) < len(data) {
		rest := data[p.end:]
		line, _, ended := bytes.Cut(rest, []byte{'\n'})
		r, crc, err := decode(p.crc, int64(len(p.records)), line)
		if err == nil && !ended {
			// Nobody was told that it is on disk.
			err = errors.New("the line has no end")
		}
		if err != nil {
			if recordWithin(rest[1:]) {
				p.damage = &Damaged{Line: len(p.records) + 1, Offset: p.end, Reason: err.Error()}
			}
			return p
		}
		p.records = append(p.records, r)
		p.crc = crc
		p.end += int64(len(line)) + 1
	}
	return p
}

// recordWithin tells whether a whole line stands anywhere in data, whatever its checksum: what it was chained to may be
// the part that is bad. It is looked for also inside lines, as the byte that went bad may have been a newline; an object
// inside a record does not pass for one, as the record goes on behind it.
func recordWithin(data []byte) bool {
	for {
		at := bytes.Index(data, []byte(`{"n":`))
		if at < 0 {
			return false
		}
		data = data[at:]
		line, _, ended := bytes.Cut(data, []byte{'\n'})
		if _, _, ok := split(line); ok && ended {
			if _, err := header(line); err == nil {
				return true
			}
		}
		data = data[1:]
	}
}
