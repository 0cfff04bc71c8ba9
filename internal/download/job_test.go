package download

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// shelf is a Source: files by name, whose addresses are good for a while.
type shelf struct {
	files map[string][]byte
	names []string

	mu     sync.Mutex
	listed int
	good   int            // the listing whose addresses are good; 0: every one
	from   map[string]int // offset of the last fetch by name
	stop   map[string]int // a fetch ends in err behind so many bytes
	err    error
}

func newShelf() *shelf {
	s := &shelf{files: map[string][]byte{}, from: map[string]int{}, stop: map[string]int{}, err: errors.New("the line is cut")}
	for i, n := range []int{5000, 0, 12, 3000, 1, 777} {
		name := fmt.Sprintf("part-%d.bin", i)
		s.names, s.files[name] = append(s.names, name), bytes.Repeat([]byte{byte('a' + i)}, n)
	}
	return s
}

func (s *shelf) Files(context.Context) (out []File, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listed++
	for _, n := range s.names {
		out = append(out, File{n, int64(len(s.files[n])), fmt.Sprint(s.listed)})
	}
	return out, nil
}

func (s *shelf) Fetch(ctx context.Context, f File, from int64, w io.Writer) error {
	s.mu.Lock()
	s.from[f.Name] = int(from)
	stale := s.good != 0 && f.URL != fmt.Sprint(s.good)
	end, cut := s.stop[f.Name]
	s.mu.Unlock()
	if stale {
		return fmt.Errorf("403: %w", ErrStale)
	}
	data := s.files[f.Name]
	if cut && end < len(data) {
		data = data[:end]
	}
	for at := int(from); at < len(data); at += 100 {
		if _, err := w.Write(data[at:min(at+100, len(data))]); err != nil {
			return err
		}
	}
	if cut {
		return s.err
	}
	return ctx.Err()
}

// hold compares a folder with the shelf.
func (s *shelf) hold(t *testing.T, dir string) {
	t.Helper()
	for _, name := range s.names {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || !bytes.Equal(got, s.files[name]) {
			t.Errorf("%s: %d bytes, %v; want %d", name, len(got), err, len(s.files[name]))
		}
	}
	if parts, _ := filepath.Glob(filepath.Join(dir, "*.part")); len(parts) > 0 {
		t.Errorf("left: %v", parts)
	}
}

var label = Label{Checkpoint: "c1", Kind: "merged", Step: 4}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestFilesComeWhole(t *testing.T) {
	s, dir := newShelf(), filepath.Join(t.TempDir(), "new", "folder")
	var last State
	whole := 0
	done, err := Job{Of: label, Source: s, Dir: dir, Tell: func(now State) {
		if now.Done {
			whole++
		}
		last = now
	}}.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.hold(t, dir)
	if want := (Done{Files: 6, Size: 8790, Fetched: 8790}); done != want {
		t.Errorf("got %+v, want %+v", done, want)
	}
	if whole != 6 || last.Bytes != 8790 || last.Size != 8790 || last.Files != 6 {
		t.Errorf("%d files were told whole, the last state is %+v", whole, last)
	}
	if got, size, ok, err := Read(dir); got != label || size != 8790 || !ok || err != nil {
		t.Errorf("Read gives %+v, %d, %v, %v", got, size, ok, err)
	}
	again, err := Job{Of: label, Source: s, Dir: dir}.Run(t.Context())
	if want := (Done{Files: 6, Size: 8790, Skipped: 6}); err != nil || again != want {
		t.Errorf("again: %+v, %v, want %+v", again, err, want)
	}
	if err := Remove(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("behind Remove: %v", err)
	}
}

// What broke off goes on where it was, and only a part that is certain is trusted.
func TestABrokenDownloadGoesOn(t *testing.T) {
	s, dir := newShelf(), t.TempDir()
	s.stop["part-0.bin"], s.stop["part-3.bin"] = 1200, 300
	job := Job{Of: label, Source: s, Dir: dir, Block: 1000}
	if _, err := job.Run(t.Context()); !errors.Is(err, s.err) {
		t.Fatalf("got %v", err)
	}
	if _, _, whole, err := Read(dir); whole || err != nil {
		t.Errorf("half a folder reads as whole: %v, %v", whole, err)
	}
	// As a power cut leaves it: bytes behind the mark that were never brought to the disk.
	part, err := os.OpenFile(filepath.Join(dir, "part-0.bin.part"), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := part.Write(make([]byte, 9000)); err != nil {
		t.Fatal(err)
	}
	if err := part.Close(); err != nil {
		t.Fatal(err)
	}
	clear(s.stop)
	done, err := job.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.hold(t, dir)
	if s.from["part-0.bin"] != 1200 || done.Fetched > 8790-1200 {
		t.Errorf("it went on at %d, and fetched %d bytes", s.from["part-0.bin"], done.Fetched)
	}
}

// kill -9 in the middle leaves a part longer than its mark: the mark counts.
func TestAKilledDownloadGoesOnAtItsMark(t *testing.T) {
	s, dir := newShelf(), t.TempDir()
	put(t, filepath.Join(dir, "part-0.bin.part"), strings.Repeat("a", 2000)+strings.Repeat("\x00", 500))
	r := record{Label: label, Synced: map[string]int64{"part-0.bin": 2000}}
	if err := r.write(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := (Job{Of: label, Source: s, Dir: dir}).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.hold(t, dir)
	if s.from["part-0.bin"] != 2000 {
		t.Errorf("it went on at %d", s.from["part-0.bin"])
	}
}

func TestAnInterruptedDownloadKeepsItsParts(t *testing.T) {
	s, dir := newShelf(), t.TempDir()
	why := errors.New("Ctrl-C")
	ctx, cancel := context.WithCancelCause(t.Context())
	job := Job{Of: label, Source: s, Dir: dir, Tell: func(now State) {
		if now.File == "part-0.bin" && now.Here >= 2000 {
			cancel(why)
		}
	}}
	if _, err := job.Run(ctx); err == nil {
		t.Fatal("it came to its end")
	}
	job.Tell = nil
	if _, err := job.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.hold(t, dir)
}

func TestStaleAddressesAreAskedForAgain(t *testing.T) {
	s, dir := newShelf(), t.TempDir()
	s.good = 2
	if _, err := (Job{Of: label, Source: s, Dir: dir}).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.hold(t, dir)
	if s.listed != 2 {
		t.Errorf("%d listings for addresses that went stale together", s.listed)
	}
	s, dir = newShelf(), t.TempDir()
	s.good = -1
	if _, err := (Job{Of: label, Source: s, Dir: dir}).Run(t.Context()); !errors.Is(err, ErrStale) || s.listed > 1+atOnce*staleTries {
		t.Errorf("addresses that are never good: %v after %d listings", err, s.listed)
	}
}

func TestNothingOfOthersIsOverwritten(t *testing.T) {
	for name, c := range map[string]struct {
		lay  func(t *testing.T, dir string)
		want string
	}{
		"a file of somebody else": {func(t *testing.T, dir string) { put(t, filepath.Join(dir, "part-2.bin"), "cccccccccccc") }, "part-2.bin is there already"},
		"a part of somebody else": {func(t *testing.T, dir string) { put(t, filepath.Join(dir, "part-2.bin.part"), "c") }, "part-2.bin.part is there already"},
		"another checkpoint": {func(t *testing.T, dir string) {
			if _, err := (Job{Of: Label{Checkpoint: "c0", Kind: "merged"}, Source: newShelf(), Dir: dir}).Run(t.Context()); err != nil {
				t.Fatal(err)
			}
		}, "holds checkpoint c0 (merged)"},
		"the same one's other kind": {func(t *testing.T, dir string) {
			if _, err := (Job{Of: Label{Checkpoint: "c1", Kind: "adapter"}, Source: newShelf(), Dir: dir}).Run(t.Context()); err != nil {
				t.Fatal(err)
			}
		}, "holds checkpoint c1 (adapter)"},
		"a file of ours that was changed": {func(t *testing.T, dir string) {
			if _, err := (Job{Of: label, Source: newShelf(), Dir: dir}).Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			put(t, filepath.Join(dir, "part-2.bin"), "mine")
		}, "part-2.bin has 4 bytes where the checkpoint's has 12"},
		"a link in its place": {func(t *testing.T, dir string) {
			r := record{Label: label}
			if err := errors.Join(r.write(dir), os.Symlink("/dev/null", filepath.Join(dir, "part-2.bin"))); err != nil {
				t.Fatal(err)
			}
		}, "part-2.bin is no plain file"},
		"a record that is none": {func(t *testing.T, dir string) { put(t, filepath.Join(dir, RecordName), "{") }, "reading "},
	} {
		t.Run(name, func(t *testing.T) {
			s, dir := newShelf(), t.TempDir()
			c.lay(t, dir)
			job := Job{Of: label, Source: s, Dir: dir}
			before := tree(t, dir)
			_, err := job.Run(t.Context())
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "--force") {
				t.Fatalf("got %v, want %q and --force", err, c.want)
			}
			if after := tree(t, dir); after != before {
				t.Errorf("the folder was\n%sit is\n%s", before, after)
			}
			job.Force = true
			if _, err := job.Run(t.Context()); err != nil {
				t.Fatalf("with force: %v", err)
			}
			s.hold(t, dir)
		})
	}
}

// tree is what a folder holds.
func tree(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	text := ""
	for _, e := range entries {
		data, _ := os.ReadFile(filepath.Join(dir, e.Name()))
		text += fmt.Sprintf("%s %x\n", e.Name(), data)
	}
	return text
}

func TestUnsafeNamesAreRefused(t *testing.T) {
	for _, name := range []string{"", ".", "..", "...", "../x", "/etc/passwd", "a/b", `a\b`, "c:x", "x\x00", "a\nb", "\xff", "x.part", "X.PART",
		RecordName, strings.Repeat("n", 300), "PART-2.bin"} {
		s, dir := newShelf(), t.TempDir()
		s.names = append(s.names, name)
		s.files[name] = []byte("x")
		if _, err := (Job{Of: label, Source: s, Dir: dir, Force: true}).Run(t.Context()); err == nil {
			t.Errorf("%q was written", name)
		}
		if left := tree(t, dir); left != "" {
			t.Errorf("%q: left %s", name, left)
		}
	}
	if _, err := (Job{Of: label, Source: &shelf{}, Dir: t.TempDir()}).Run(t.Context()); err == nil {
		t.Error("a checkpoint without files came to its end")
	}
}

// A record says which files Remove takes: one that was tampered with takes nothing.
func TestRemoveStaysInItsFolder(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "precious"), "x")
	inner := filepath.Join(dir, "inner")
	if err := os.Mkdir(inner, 0o700); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(inner, RecordName), `{"checkpoint_id":"c","kind":"merged","files":[{"name":"../precious","size":1}]}`)
	if err := Remove(inner); err == nil {
		t.Error("the record was believed")
	}
	if _, err := os.Stat(filepath.Join(dir, "precious")); err != nil {
		t.Error(err)
	}
	if err := errors.Join(Remove(dir), Remove(filepath.Join(dir, "missing"))); err != nil {
		t.Errorf("folders without a record: %v", err)
	}
}

// full is a disk with room for so many bytes.
type full struct {
	w    io.Writer
	room *int
}

func (f full) Write(b []byte) (int, error) {
	n := min(len(b), *f.room)
	*f.room -= n
	if n, err := f.w.Write(b[:n]); err != nil || n == len(b) {
		return n, err
	}
	return n, &os.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}
}

func TestAFullDiskKeepsWhatThereIs(t *testing.T) {
	s, dir, room := newShelf(), t.TempDir(), 2500
	s.names = s.names[:1]
	job := Job{Of: label, Source: s, Dir: dir, Block: 1000, disk: func(w io.Writer) io.Writer { return full{w, &room} }}
	_, err := job.Run(t.Context())
	if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "2500 bytes are still to come") || !strings.Contains(err.Error(), "part-0.bin.part") {
		t.Fatalf("got %v", err)
	}
	job.disk = nil
	if _, err := job.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.hold(t, dir)
	if s.from["part-0.bin"] != 2000 {
		t.Errorf("it went on at %d, want the last mark", s.from["part-0.bin"])
	}
}
