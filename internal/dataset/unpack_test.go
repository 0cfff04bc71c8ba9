package dataset

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	pq "github.com/parquet-go/parquet-go"

	"trainer/internal/hub"
	"trainer/recipe"
)

func gzipped(text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(text)); err != nil {
		panic(err)
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	return b.String()
}

func zstded(text string) string {
	w, err := zstd.NewWriter(nil)
	if err != nil {
		panic(err)
	}
	return string(w.EncodeAll([]byte(text), nil))
}

type pairOf struct {
	Prompt     string `parquet:"prompt"`
	Completion string `parquet:"completion"`
}

func parqueted(t testing.TB, prefix string, n int) string {
	t.Helper()
	rows := make([]pairOf, n)
	for i := range rows {
		rows[i] = pairOf{fmt.Sprintf("%s%d", prefix, i), "x"}
	}
	var b bytes.Buffer
	if err := pq.Write(&b, rows, pq.MaxRowsPerRowGroup(7)); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// However rows are packed, they are the same rows in the same order, and so is each by itself.
func TestPackedRowsAreThePlainOnes(t *testing.T) {
	const n = 50
	text := numbered("q", n)
	list := "[" + strings.ReplaceAll(strings.TrimSpace(text), "\n", ",\n") + "]"
	cut := len(text) / 3
	for name, file := range map[string]string{
		"lines": text, "a list": list, "gzip": gzipped(text), "a list in gzip": gzipped(list), "gzip in members": gzipped(text[:cut]) + gzipped(text[cut:]),
		"zstd": zstded(text), "zstd in frames": zstded(text[:cut]) + zstded(text[cut:]), "zstd behind a frame that is skipped": "\x50\x2a\x4d\x18\x02\x00\x00\x00ab" + zstded(text),
		"Parquet": parqueted(t, "q", n),
	} {
		t.Run(name, func(t *testing.T) {
			want := make([]string, n)
			for i := range want {
				want[i] = chatRow(fmt.Sprintf("q%d", i), "x")
			}
			for _, limit := range []*int{nil, ptr(1), ptr(8), ptr(n), ptr(n + 1)} {
				f := newFixture(t, map[string]string{"rows": file}, recipe.Source{Path: "rows", Limit: limit})
				due := want
				if limit != nil {
					due = want[:min(*limit, n)]
				}
				set := f.mustOpen(t).Train
				if got := f.rows(t, set); !slices.Equal(got, due) {
					t.Errorf("got %q, want %q", got, due)
				}
				last := set.At(set.Len() - 1)
				if last.File != "rows" || last.Line != len(due) {
					t.Errorf("row %d is at %s", len(due), last)
				}
				again := f.mustOpen(t).Train // from the copy, where there is one
				if got := f.rows(t, again); !slices.Equal(got, due) || again.Hash() != set.Hash() {
					t.Errorf("again: %q, want %q", got, due)
				}
			}
		})
	}
}

func TestTheHashIsOfThePackedBytes(t *testing.T) {
	a := newFixture(t, map[string]string{"rows": gzipped(pairRow)}, recipe.Source{Path: "rows"}).mustOpen(t).Train.Sources()[0].SHA256
	b := newFixture(t, map[string]string{"rows": pairRow}, recipe.Source{Path: "rows"}).mustOpen(t).Train.Sources()[0].SHA256
	if a == b || len(a) != 64 {
		t.Errorf("packed %s, plain %s", a, b)
	}
}

// copies are the files of a fixture's cache.
func (f *fixture) copies(t testing.TB) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(f.hub.Cache, "rows", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestACopyIsMadeOnceAndMayBeRemoved(t *testing.T) {
	f := newFixture(t, map[string]string{"a.gz": gzipped(numbered("a", 3)), "b.gz": gzipped(numbered("b", 3))}, recipe.Source{Path: "*.gz"})
	f.mustOpen(t)
	first := f.copies(t)
	if len(first) != 2 {
		t.Fatalf("copies %q, want one a file", first)
	}
	before, err := os.Stat(first[0])
	if err != nil {
		t.Fatal(err)
	}
	f.mustOpen(t)
	if after, err := os.Stat(first[0]); err != nil || !os.SameFile(before, after) || !after.ModTime().Equal(before.ModTime()) {
		t.Errorf("the copy was made again: %v", err)
	}
	if err := os.Remove(first[0]); err != nil {
		t.Fatal(err)
	}
	f.mustOpen(t)
	if again := f.copies(t); !slices.Equal(again, first) {
		t.Errorf("copies %q, want %q", again, first)
	}
}

func TestACopyThatIsDamagedIsNoticed(t *testing.T) {
	f := newFixture(t, map[string]string{"a.gz": gzipped(numbered("a", 3))}, recipe.Source{Path: "a.gz"})
	f.mustOpen(t)
	path := f.copies(t)[0]
	if err := os.WriteFile(path, []byte(numbered("b", 3)), 0o600); err != nil {
		t.Fatal(err)
	}
	want := "a.gz: its unpacked copy, " + path + ", is damaged; remove it, and it is made anew"
	if _, err := f.open(); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestACopyOfTheFirstRowsIsNotTakenForAll(t *testing.T) {
	f := newFixture(t, map[string]string{"a.gz": gzipped(numbered("a", 3000))}, recipe.Source{Path: "a.gz", Limit: ptr(2)})
	if n := f.mustOpen(t).Train.Len(); n != 2 {
		t.Fatalf("%d rows, want 2", n)
	}
	f.r.Dataset.Train[0].Limit = nil
	if n := f.mustOpen(t).Train.Len(); n != 3000 {
		t.Errorf("%d rows, want all 3000", n)
	}
	f.r.Dataset.Train[0].Limit = ptr(5)
	if n := f.mustOpen(t).Train.Len(); n != 5 || len(f.copies(t)) != 2 {
		t.Errorf("%d rows from %q, want 5 from the copy of all", n, f.copies(t))
	}
}

func TestManyOpenOneFileAtATime(t *testing.T) {
	f := newFixture(t, map[string]string{"a.gz": gzipped(numbered("a", 2000))}, recipe.Source{Path: "a.gz"})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if data, err := f.open(); err != nil || data.Train.Len() != 2000 {
				t.Errorf("%v", err)
			}
		})
	}
	wg.Wait()
	if found := f.copies(t); len(found) != 1 {
		t.Errorf("left in the cache: %q", found)
	}
}

func TestWhatDeadProcessesLeftIsSwept(t *testing.T) {
	f := newFixture(t, map[string]string{"a.gz": gzipped(numbered("a", 3))}, recipe.Source{Path: "a.gz"})
	dir := filepath.Join(f.hub.Cache, "rows")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, age := range map[string]time.Duration{"old.part": 2 * deadTime, "new.part": 0, "old.jsonl": 2 * deadTime} {
		path, at := filepath.Join(dir, name), time.Now().Add(-age)
		if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Chtimes(path, at, at)); err != nil {
			t.Fatal(err)
		}
	}
	f.mustOpen(t)
	var names []string
	for _, p := range f.copies(t) {
		names = append(names, filepath.Base(p))
	}
	if slices.Contains(names, "old.part") || !slices.Contains(names, "new.part") || !slices.Contains(names, "old.jsonl") {
		t.Errorf("left are %q", names)
	}
}

func TestACacheThatCannotBeWritten(t *testing.T) {
	f := newFixture(t, map[string]string{"a.gz": gzipped(numbered("a", 3)), "cache": ""}, recipe.Source{Path: "a.gz"})
	f.hub = &hub.Hub{Cache: filepath.Join(f.dir, "cache")} // a file, where a folder is due
	want := "a.gz: unpacking into the cache " + filepath.Join(f.dir, "cache", "rows") + ": not a directory; set TRAINER_CACHE to a folder that can be written to and has room"
	if _, err := f.open(); err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	f.hub = &hub.Hub{}
	want = "a.gz: packed rows are unpacked into a cache folder, and there is none; set TRAINER_CACHE to a folder with room, or unpack the file first"
	if _, err := f.open(); err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestUnpackingStopsWithItsContext(t *testing.T) {
	f := newFixture(t, map[string]string{"a.gz": gzipped(numbered("a", 3))})
	files, err := f.hub.Open(context.Background(), "a.gz", f.dir)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	cause := errors.New("enough")
	cancel(cause)
	if _, err := (unpacker{f.hub.Cache}).find(ctx, files[0], -1); !errors.Is(err, cause) {
		t.Errorf("got %v, want %v", err, cause)
	}
	if found := slices.DeleteFunc(f.copies(t), func(p string) bool { return !strings.HasSuffix(p, partial) }); len(found) > 0 {
		t.Errorf("left in the cache: %q", found)
	}
}

func TestAFileThatChangesBeforeItIsUnpacked(t *testing.T) {
	f := newFixture(t, map[string]string{"a.gz": gzipped(numbered("a", 3))})
	files, err := f.hub.Open(context.Background(), "a.gz", f.dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(files[0].Path, []byte(gzipped(numbered("b", 3))), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := (unpacker{f.hub.Cache}).find(context.Background(), files[0], -1); err == nil || err.Error() != "the file changed while it was read" {
		t.Errorf("got %v", err)
	}
	entries, err := os.ReadDir(f.hub.Cache)
	if err != nil || len(entries) > 0 {
		t.Errorf("left in the cache: %v (%v)", entries, err)
	}
}

// FuzzUnpack reads files that were packed by a stranger: they give rows or a fault, and one that unpacks gives what was
// packed.
func FuzzUnpack(f *testing.F) {
	for _, s := range []string{gzipped(pairRow), zstded(pairRow), gzipped("")} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		dir := t.TempDir()
		for _, file := range []string{string(b), gzipped(string(b)), zstded(string(b))} {
			path := filepath.Join(dir, "rows")
			if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
				t.Fatal(err)
			}
			files, err := (&hub.Hub{}).Open(t.Context(), "rows", dir)
			if err != nil {
				t.Fatal(err)
			}
			got, err := unpacker{filepath.Join(dir, "cache")}.find(t.Context(), files[0], -1)
			if file == string(b) {
				continue
			}
			if err != nil {
				t.Fatalf("%q: %v", file, err)
			}
			if text, err := os.ReadFile(got.path); err != nil || !bytes.Equal(text, b) {
				t.Fatalf("%q is unpacked to %q (%v)", b, text, err)
			}
		}
	})
}
