package journal

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func marked(s Salvaged) any { return note{s.Kept, s.Records} }

// TestSalvageKeepsWhatStandsBeforeTheDamage flips a byte of each record but the last, and salvages.
func TestSalvageKeepsWhatStandsBeforeTheDamage(t *testing.T) {
	whole := bytes.Clone(journalOf(t, 6))
	lines := bytes.SplitAfter(whole, []byte("\n"))
	for bad := 1; bad < 5; bad++ {
		data := bytes.Join([][]byte{bytes.Join(lines[:bad], nil), bytes.Replace(lines[bad], []byte("note"), []byte("nope"), 1), bytes.Join(lines[bad+1:], nil)}, nil)
		dir := folderWith(t, data)
		s, err := Salvage(dir, "salvage", marked)
		if err != nil {
			t.Fatal(err)
		}
		if s.Records != bad || s.Damage.Line != bad+1 || s.Kept != "journal.damaged-1" {
			t.Errorf("record %d: %+v", bad, s)
		}
		if kept, err := os.ReadFile(filepath.Join(dir, s.Kept)); err != nil || !bytes.Equal(kept, data) {
			t.Errorf("record %d: the damaged journal is not kept: %v", bad, err)
		}
		j, records, err := Open(dir)
		if err != nil || len(records) != bad+1 || records[bad].Type != "salvage" {
			t.Fatalf("record %d: %d records, %v", bad, len(records), err)
		}
		appendTo(t, j, "note", nil)
		mustClose(t, j)
		if s, err := Salvage(dir, "salvage", marked); s != nil || err != nil {
			t.Errorf("record %d: again: %+v, %v", bad, s, err)
		}
	}
}

func TestSalvageWithNothingToSave(t *testing.T) {
	whole := journalOf(t, 3)
	dir := folderWith(t, bytes.Replace(whole, []byte("note"), []byte("nope"), 1))
	if s, err := Salvage(dir, "salvage", marked); err == nil || s != nil || !strings.Contains(err.Error(), "no record is before it") {
		t.Errorf("%+v, %v", s, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 2 { // the journal and the lock
		t.Errorf("%v, %v", left, err)
	}
	j := mustOpen(t, folderWith(t, whole), 3)
	if _, err := Salvage(filepath.Dir(j.path), "salvage", marked); err == nil {
		t.Error("a journal that another has open was salvaged")
	}
	mustClose(t, j)
}
