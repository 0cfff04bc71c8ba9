package runner

import (
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"trainer/internal/journal"
	"trainer/loss"
)

// What was scored comes back to the bit, and a file that is cut is not half of it.
func TestScoredRowsComeBack(t *testing.T) {
	want := [][]float64{{-0.1, math.SmallestNonzeroFloat64, -1e300}, {}, {0}}
	data := appendRows(nil, want)
	got, err := readRows(data)
	if err != nil || len(got) != 3 || !reflect.DeepEqual(got[0], want[0]) || len(got[1]) != 0 || got[2][0] != 0 {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
	for n := range data {
		rows, err := readRows(data[:n])
		if err == nil && len(rows) == len(want) {
			t.Errorf("%d of %d bytes are read as %v", n, len(data), rows)
		}
	}
	if _, err := readRows([]byte{255, 255, 255, 255, 1}); err == nil {
		t.Error("a length beyond the file is read")
	}
}

func TestReferencesAreFoundByTheirTokens(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "reference")
	open := func(space string) *references {
		s := &references{dir: dir}
		if err := s.open(journal.Files{}, space); err != nil {
			t.Fatal(err)
		}
		return s
	}
	a := loss.Datum{Input: []int32{1, 2}, Targets: []int32{2, 3}}
	b := loss.Datum{Input: []int32{1, 2}, Targets: []int32{2, 4}} // differs in what is predicted last
	s := open("x")
	for want, rows := range map[string][][]float64{"1 sequences of 2": {{-1, -2}}, "1 tokens of 2": {{-1, -2}, {-3}}} {
		if err := s.put([]loss.Datum{a, b}, rows); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("of %v: got %v, want %q", rows, err, want)
		}
	}
	if err := s.put([]loss.Datum{a, b}, [][]float64{{-1, -2}, {-3, -4}}); err != nil {
		t.Fatal(err)
	}
	for _, s := range []*references{s, open("x")} {
		for d, want := range map[*loss.Datum][]float64{&a: {-1, -2}, &b: {-3, -4}} {
			if got, err := s.of(*d); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%v: got %v, %v", d.Targets, got, err)
			}
		}
	}
	if other := open("y"); other.has(a) {
		t.Error("other weights are taken for these")
	}
	if _, err := s.of(loss.Datum{Input: []int32{9}, Targets: []int32{9}}); err == nil {
		t.Error("a sequence that was not scored has log-probabilities")
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	data, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	for at := range data {
		bad := append([]byte(nil), data...)
		bad[at] ^= 16
		if err := os.WriteFile(files[0], bad, 0o600); err != nil {
			t.Fatal(err)
		}
		if s := open("x"); s.has(a) || s.has(b) {
			t.Fatalf("a file with another byte %d is read", at)
		}
	}
}
