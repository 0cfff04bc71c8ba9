package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// The two lines that the protocol gives as its vector.
const vector = `{"n":0,"t":1700000000000,"type":"run","format":1,"crc":"b6d3f9fe"}
{"n":1,"t":1700000000001,"type":"life","crc":"69cbe94a"}
`

type note struct {
	Text string `json:"text"`
	Step int    `json:"step"`
}

func TestVectorIsRead(t *testing.T) {
	dir := folderWith(t, []byte(vector))
	records, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := []Record{
		{0, time.UnixMilli(1700000000000), "run", json.RawMessage(strings.Split(vector, "\n")[0])},
		{1, time.UnixMilli(1700000000001), "life", json.RawMessage(strings.Split(vector, "\n")[1])},
	}
	if !reflect.DeepEqual(records, want) {
		t.Errorf("got %v, want %v", records, want)
	}
}

func TestVectorIsWritten(t *testing.T) {
	var got []byte
	crc := firstCRC
	for i, v := range []struct {
		kind string
		own  any
	}{{"run", struct {
		Format int `json:"format"`
	}{1}}, {"life", nil}} {
		members, err := membersOf(v.kind, v.own)
		if err != nil {
			t.Fatal(err)
		}
		var line []byte
		line, crc = encode(crc, int64(i), time.UnixMilli(1700000000000+int64(i)), members)
		got = append(got, line...)
	}
	if string(got) != vector {
		t.Errorf("got\n%swant\n%s", got, vector)
	}
}

func TestAppendedRecordsComeBack(t *testing.T) {
	dir := t.TempDir()
	j := mustOpen(t, dir, 0)
	before := time.Now().Truncate(time.Millisecond)
	for i := range 3 {
		appendTo(t, j, "note", note{fmt.Sprintf("line\n%d <&> \u2028 ü", i), i})
	}
	if err := j.Add("quiet", nil); err != nil {
		t.Fatal(err)
	}
	mustClose(t, j)

	j = mustOpen(t, dir, 4)
	appendTo(t, j, "note", note{"after", 4})
	mustClose(t, j)

	records, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range records {
		if r.N != int64(i) || r.Time.Before(before) || r.Time.After(time.Now()) {
			t.Errorf("record %d: n %d, time %v", i, r.N, r.Time)
		}
	}
	var got note
	if err := json.Unmarshal(records[1].Data, &got); err != nil || got != (note{"line\n1 <&> \u2028 ü", 1}) {
		t.Errorf("record 1 is %+v, %v", got, err)
	}
	if len(records) != 5 || records[3].Type != "quiet" || records[4].Type != "note" {
		t.Errorf("got %d records: %v", len(records), records)
	}
}

func TestFilesAreTheOwnersAlone(t *testing.T) {
	dir := t.TempDir()
	mustClose(t, mustOpen(t, dir, 0))
	for _, name := range []string{fileName, lockName} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", name, info.Mode().Perm())
		}
	}
}

func TestRecordsThatCannotComeBackAreRefused(t *testing.T) {
	j := mustOpen(t, t.TempDir(), 0)
	defer mustClose(t, j)
	for name, c := range map[string]struct {
		kind string
		v    any
	}{
		"no type":                          {"", nil},
		"a type that needs an escape":      {"a\"b", nil},
		"a list":                           {"x", []int{1}},
		"a string":                         {"x", "text"},
		"a nil pointer":                    {"x", (*note)(nil)},
		"a member of the journal":          {"x", map[string]int{"crc": 1}},
		"one that differs in letter case":  {"x", map[string]int{"Type": 1}},
		"what JSON cannot hold":            {"x", map[string]float64{"loss": nan()}},
		"raw bytes that are no whole JSON": {"x", json.RawMessage(`{"a":`)},
	} {
		if err := j.Append(c.kind, c.v); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	appendTo(t, j, "x", map[string]any{"step": 1, "nested": map[string]int{"n": 1}})
}

func TestTornAtEveryByteOfTheLastRecord(t *testing.T) {
	whole := []byte(vector)
	last := bytes.LastIndexByte(whole[:len(whole)-1], '\n') + 1
	for size := last + 1; size < len(whole); size++ {
		dir := folderWith(t, whole[:size])
		j := mustOpen(t, dir, 1)
		if got, want := j.Torn(), int64(size-last); got != want {
			t.Fatalf("cut at %d: torn %d bytes, want %d", size, got, want)
		}
		kept, err := os.ReadFile(filepath.Join(dir, "journal.torn-1"))
		if err != nil || !bytes.Equal(kept, whole[last:size]) {
			t.Fatalf("cut at %d: kept %q, %v", size, kept, err)
		}
		appendTo(t, j, "note", note{"again", 1})
		mustClose(t, j)
		mustClose(t, mustOpen(t, dir, 2))
	}
}

func TestEveryPrefixIsAJournal(t *testing.T) {
	whole := []byte(vector)
	for size := range len(whole) + 1 {
		lines := bytes.Count(whole[:size], []byte{'\n'})
		dir := folderWith(t, whole[:size])
		if records, err := Read(dir); err != nil || len(records) != lines {
			t.Fatalf("prefix of %d bytes: Read gives %d records, %v; want %d", size, len(records), err, lines)
		}
		if size%5 > 0 {
			continue // a sync is slow; every byte of a record is in the test above
		}
		j := mustOpen(t, dir, lines)
		appendTo(t, j, "note", note{"on", 0})
		mustClose(t, j)
		if records, err := Read(dir); err != nil || len(records) != lines+1 {
			t.Fatalf("prefix of %d bytes: %d records after an append, %v", size, len(records), err)
		}
	}
}

func TestZeroesThatACrashLeftAreATornTail(t *testing.T) {
	dir := folderWith(t, append([]byte(vector), make([]byte, 4096)...))
	j := mustOpen(t, dir, 2)
	mustClose(t, j)
	if j.Torn() != 4096 {
		t.Errorf("torn %d bytes", j.Torn())
	}
}

func TestTornTailsAreKeptApart(t *testing.T) {
	dir := t.TempDir()
	for i, tail := range []string{"first", "second"} {
		write(t, dir, append([]byte(vector), tail...))
		mustClose(t, mustOpen(t, dir, 2))
		kept, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("journal.torn-%d", i+1)))
		if err != nil || string(kept) != tail {
			t.Errorf("kept %q, %v; want %q", kept, err, tail)
		}
	}
}

func TestAFlippedByteIsNeverReadAsARecord(t *testing.T) {
	whole := journalOf(t, 4)
	ends := lineEnds(whole)
	for at := range whole {
		for _, mask := range []byte{0x01, 0x80, '\n' ^ whole[at]} {
			if mask == 0 {
				continue
			}
			bad := bytes.Clone(whole)
			bad[at] ^= mask
			line := lineOf(ends, at)
			dir := folderWith(t, bad)
			records, err := Read(dir)
			if len(records) != line {
				t.Fatalf("byte %d ^ %#x: %d records, want the %d before it", at, mask, len(records), line)
			}
			var damaged *Damaged
			switch last := line == len(ends)-1; {
			case last && err != nil:
				t.Fatalf("byte %d ^ %#x, in the last line: %v", at, mask, err)
			case last:
			case !errors.As(err, &damaged):
				t.Fatalf("byte %d ^ %#x, in line %d: %v, want *Damaged", at, mask, line+1, err)
			case damaged.Line != line+1 || damaged.Offset != int64(start(ends, line)):
				t.Fatalf("byte %d ^ %#x: damage at line %d, byte %d; want %d, %d", at, mask, damaged.Line, damaged.Offset, line+1, start(ends, line))
			}
		}
	}
}

func TestDamageIsNotRepaired(t *testing.T) {
	lines := bytes.SplitAfter(journalOf(t, 5), []byte{'\n'})
	for name, bad := range map[string][][]byte{
		"a line is missing":         {lines[0], lines[2], lines[3]},
		"two lines are swapped":     {lines[0], lines[2], lines[1], lines[3]},
		"a line stands twice":       {lines[0], lines[1], lines[1], lines[2]},
		"the first line is missing": {lines[1], lines[2]},
		"zeroes over a line":        {lines[0], make([]byte, len(lines[1])), lines[2], lines[3]},
		"zeroes over two lines":     {lines[0], make([]byte, len(lines[1])+len(lines[2])), lines[3]},
	} {
		dir := folderWith(t, bytes.Join(bad, nil))
		j, records, err := Open(dir)
		var damaged *Damaged
		if !errors.As(err, &damaged) || j != nil {
			t.Errorf("%s: got %v, want *Damaged", name, err)
			continue
		}
		if want := damaged.Line - 1; len(records) != want {
			t.Errorf("%s: %d records before line %d", name, len(records), damaged.Line)
		}
		if after, _ := os.ReadFile(filepath.Join(dir, fileName)); !bytes.Equal(after, bytes.Join(bad, nil)) {
			t.Errorf("%s: the file was changed", name)
		}
		write(t, dir, []byte(vector))
		mustClose(t, mustOpen(t, dir, 2)) // the lock was given back
	}
}

func TestOpenNamesWhatIsMissing(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "none")
	if _, _, err := Open(missing); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Open of a missing folder: %v", err)
	}
	if _, err := Read(missing); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Read of a missing folder: %v", err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(vector))
	f.Add([]byte(vector[:100]))
	f.Add([]byte(vector + vector))
	f.Add([]byte(strings.Replace(vector, "run", "rux", 1)))
	f.Add([]byte(`{"n":{"n":{"n":` + vector))
	f.Add([]byte("\n\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		p := parse(data)
		if p.end < 0 || p.end > int64(len(data)) {
			t.Fatalf("end %d of %d", p.end, len(data))
		}
		crc := firstCRC
		var again []byte
		for i, r := range p.records {
			if r.N != int64(i) || !json.Valid(r.Data) {
				t.Fatalf("record %d: %+v", i, r)
			}
			body, own, ok := split(r.Data)
			if !ok || own != sum(crc, body) {
				t.Fatalf("record %d does not follow the one before", i)
			}
			crc = own
			again = append(append(again, r.Data...), '\n')
		}
		if !bytes.Equal(again, data[:p.end]) {
			t.Fatalf("the records are not what stands before byte %d", p.end)
		}
		good := parse(data[:p.end])
		if good.damage != nil || good.end != p.end || len(good.records) != len(p.records) || good.crc != p.crc {
			t.Fatal("the good part reads otherwise alone")
		}
	})
}

func mustOpen(t *testing.T, dir string, want int) *Journal {
	t.Helper()
	j, records, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(records) != want {
		t.Fatalf("opened %d records, want %d", len(records), want)
	}
	return j
}

func mustClose(t *testing.T, j *Journal) {
	t.Helper()
	if err := j.Close(); err != nil {
		t.Error(err)
	}
}

func appendTo(t *testing.T, j *Journal, kind string, v any) {
	t.Helper()
	if err := j.Append(kind, v); err != nil {
		t.Error(err)
	}
}

// journalOf is the bytes of a journal of n records, each with an object in it that begins like a line.
func journalOf(t *testing.T, n int) []byte {
	t.Helper()
	dir := t.TempDir()
	j := mustOpen(t, dir, 0)
	for i := range n {
		appendTo(t, j, "note", map[string]any{"metrics": map[string]any{"n": i}, "text": `{"n":1,"t":2,"type":"x","crc":"00000000"}`})
	}
	mustClose(t, j)
	data, err := os.ReadFile(filepath.Join(dir, fileName))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func folderWith(t *testing.T, data []byte) string {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, data)
	return dir
}

func write(t *testing.T, dir string, data []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, fileName), data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func lineEnds(data []byte) (ends []int) {
	for i, b := range data {
		if b == '\n' {
			ends = append(ends, i+1)
		}
	}
	return ends
}

func lineOf(ends []int, at int) int {
	return slices.IndexFunc(ends, func(end int) bool { return at < end })
}

func start(ends []int, line int) int {
	if line == 0 {
		return 0
	}
	return ends[line-1]
}

func nan() float64 { var zero float64; return zero / zero }
