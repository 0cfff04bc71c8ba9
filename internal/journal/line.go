package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strconv"
	"strings"
	"time"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// firstCRC stands for the line before the first.
const firstCRC = "00000000"

// A line ends in crcMember, eight digits, crcEnd and a newline.
const (
	crcMember = `,"crc":"`
	crcEnd    = `"}`
	crcWidth  = 8
	tailWidth = len(crcMember) + crcWidth + len(crcEnd)
)

// sum is the crc of a line: prev is the one of the line before, body the line up to crcMember.
func sum(prev string, body []byte) string {
	c := crc32.Update(crc32.Checksum([]byte(prev), castagnoli), castagnoli, body)
	return fmt.Sprintf("%0*x", crcWidth, c)
}

// membersOf is the part of a line that does not depend on its place: `"type":"run","format":1`.
func membersOf(kind string, v any) ([]byte, error) {
	if !plain(kind) {
		return nil, errors.New("a type is letters, digits and underscores")
	}
	out := []byte(`"type":"` + kind + `"`)
	if v == nil {
		return out, nil
	}
	object, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	if err := checkMembers(object); err != nil {
		return nil, err
	}
	if own := object[1 : len(object)-1]; len(own) > 0 {
		out = append(append(out, ','), own...)
	}
	return out, nil
}

// checkMembers refuses what would not come back: something else than an object, or a member that the line has already.
// Letter case does not count, as it does not for encoding/json.
func checkMembers(object []byte) error {
	d := json.NewDecoder(bytes.NewReader(object))
	if first, err := d.Token(); err != nil || first != json.Delim('{') {
		return errors.New("the value is not a JSON object")
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		for _, taken := range []string{"n", "t", "type", "crc"} {
			if strings.EqualFold(fmt.Sprint(key), taken) {
				return fmt.Errorf("member %q belongs to the journal", key)
			}
		}
		var skipped json.RawMessage
		if err := d.Decode(&skipped); err != nil {
			return err
		}
	}
	return nil
}

// encode makes a line, newline included, and returns its crc too.
func encode(prev string, n int64, t time.Time, members []byte) (line []byte, crc string) {
	line = make([]byte, 0, len(members)+tailWidth+48)
	line = append(line, `{"n":`...)
	line = strconv.AppendInt(line, n, 10)
	line = append(line, `,"t":`...)
	line = strconv.AppendInt(line, t.UnixMilli(), 10)
	line = append(line, ',')
	line = append(line, members...)
	crc = sum(prev, line)
	line = append(line, crcMember...)
	line = append(line, crc...)
	line = append(line, crcEnd...)
	return append(line, '\n'), crc
}

// split parts a line, without its newline, at its crc; ok is false when it does not end in one.
func split(line []byte) (body []byte, crc string, ok bool) {
	at := len(line) - tailWidth
	if at < 0 || !bytes.HasPrefix(line[at:], []byte(crcMember)) || !bytes.HasSuffix(line, []byte(crcEnd)) {
		return nil, "", false
	}
	return line[:at], string(line[at+len(crcMember) : len(line)-len(crcEnd)]), true
}

// decode reads a line that follows prev and has number n. The record's Data is the line itself.
func decode(prev string, n int64, line []byte) (Record, string, error) {
	body, crc, ok := split(line)
	if !ok {
		return Record{}, "", errors.New("the line does not end in a checksum")
	}
	if want := sum(prev, body); crc != want {
		return Record{}, "", fmt.Errorf("checksum %q, want %s", crc, want)
	}
	r, err := header(line)
	if err != nil {
		return Record{}, "", err
	}
	if r.N != n {
		return Record{}, "", fmt.Errorf("record %d where %d is due", r.N, n)
	}
	return r, crc, nil
}

// header reads the three members that open a line by their place, since a record's own may have any name.
func header(line []byte) (Record, error) {
	if !json.Valid(line) {
		return Record{}, errors.New("the line is not JSON")
	}
	n, rest, okN := number(line, `{"n":`)
	ms, rest, okT := number(rest, `,"t":`)
	rest, okType := bytes.CutPrefix(rest, []byte(`,"type":"`))
	kind, _, okEnd := bytes.Cut(rest, []byte{'"'})
	if !okN || !okT || !okType || !okEnd || !plain(string(kind)) {
		return Record{}, errors.New("the line does not begin with n, t and type")
	}
	return Record{N: n, Time: time.UnixMilli(ms), Type: string(kind), Data: slices.Clip(line)}, nil
}

// number reads the whole number behind prefix, and returns what follows it.
func number(line []byte, prefix string) (n int64, rest []byte, ok bool) {
	line, ok = bytes.CutPrefix(line, []byte(prefix))
	end := bytes.IndexByte(line, ',')
	if !ok || end < 0 {
		return 0, nil, false
	}
	n, err := strconv.ParseInt(string(line[:end]), 10, 64)
	return n, line[end:], err == nil
}

// plain tells a type that needs no escape: letters, digits and underscores.
func plain(kind string) bool {
	for _, c := range kind {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' {
			return false
		}
	}
	return kind != ""
}
