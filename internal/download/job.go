package download

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// Job is one checkpoint into one folder.
type Job struct {
	Of     Label
	Source Source
	Dir    string // is made when it is missing
	Force  bool   // replace what is in Dir under the names of the files
	// Tell hears of every move, one call at a time; nil: nobody.
	Tell func(State)
	// Block is after how many bytes a part is brought to the disk, which is what kill -9 with a power cut can cost of a file;
	// 0: 64 MiB.
	Block int64

	disk func(io.Writer) io.Writer // stands before each file in tests; nil: nothing does
}

// atOnce is how many files are fetched side by side.
const atOnce = 4

// Run fetches what is missing. An error, that of ctx too, leaves what is there so that the same job goes on from it.
func (j Job) Run(ctx context.Context) (Done, error) {
	files, err := j.Source.Files(ctx)
	if err != nil {
		return Done{}, err
	}
	if err := check(files); err != nil {
		return Done{}, err
	}
	t := &transfer{job: j, files: files, block: j.Block}
	if t.block <= 0 {
		t.block = 64 << 20
	}
	if err := t.begin(); err != nil {
		return Done{}, err
	}
	defer func() { _ = t.root.Close() }() // nothing is written through it any more
	if err := t.all(ctx); err != nil {
		return Done{}, err
	}
	return t.done, t.end()
}

// transfer is a job under way.
type transfer struct {
	job   Job
	root  *os.Root // no name and no link leads out of it
	block int64

	mu     sync.Mutex
	files  []File // addresses are renewed in here
	record record
	state  State
	done   Done

	told     sync.Mutex // one call of Tell at a time
	renewing sync.Mutex // one request for new addresses at a time
}

// begin makes the folder and its record, and refuses one with things in it that are not this checkpoint's.
func (t *transfer) begin() (err error) {
	dir := t.job.Dir
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("make the folder: %w", err)
	}
	was, err := readRecord(dir)
	if err != nil && !t.job.Force {
		return fmt.Errorf("%w; --force replaces what is in the folder", err)
	}
	if t.job.Force {
		if err := makeRoom(dir, was, t.files); err != nil {
			return fmt.Errorf("make room in %s: %w", dir, err)
		}
		was = nil
	}
	if was != nil && !was.same(t.job.Of) {
		return fmt.Errorf("%s holds checkpoint %s (%s): give another folder, or --force to replace it", dir, was.Checkpoint, was.Kind)
	}
	if err := refuseOthers(dir, was != nil, t.files); err != nil {
		return err
	}
	t.record = record{Label: t.job.Of, Synced: map[string]int64{}}
	if was != nil && was.Synced != nil {
		t.record.Synced = was.Synced
	}
	for _, f := range t.files {
		t.record.Files = append(t.record.Files, entry{f.Name, f.Size})
		t.state.Size += f.Size
	}
	t.state.Files, t.done.Files, t.done.Size = len(t.files), len(t.files), t.state.Size
	if err := t.record.write(dir); err != nil {
		return err
	}
	t.root, err = os.OpenRoot(dir)
	return err
}

// makeRoom removes what stands where files will be, and what another download has left.
func makeRoom(dir string, was *record, files []File) error {
	all := record{}
	if was != nil {
		all = *was
	}
	for _, f := range files {
		all.Files = append(all.Files, entry{Name: f.Name})
	}
	return all.clear(dir)
}

// refuseOthers names what is in the way: everything, unless the folder is this checkpoint's, whose whole files may stand.
func refuseOthers(dir string, ours bool, files []File) error {
	var wrong []string
	for _, f := range files {
		for _, name := range []string{f.Name, f.Name + partEnd} {
			info, err := os.Lstat(filepath.Join(dir, name))
			switch {
			case errors.Is(err, fs.ErrNotExist):
			case err != nil:
				return err
			case !ours:
				wrong = append(wrong, name+" is there already")
			case !info.Mode().IsRegular():
				wrong = append(wrong, name+" is no plain file")
			case name == f.Name && info.Size() != f.Size:
				wrong = append(wrong, fmt.Sprintf("%s has %d bytes where the checkpoint's has %d", name, info.Size(), f.Size))
			}
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	return fmt.Errorf("%s: %s: nothing is overwritten without --force", dir, strings.Join(wrong, "; "))
}

// all fetches the files, several at once; the first error ends the others.
func (t *transfer) all(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan File)
	var wg sync.WaitGroup
	var first error
	var once sync.Once
	for range min(atOnce, len(t.files)) {
		wg.Go(func() {
			for f := range next {
				if err := t.file(ctx, f); err != nil {
					once.Do(func() { first = err; cancel(err) })
				}
			}
		})
	}
	for _, f := range t.list() {
		select {
		case next <- f:
			continue
		case <-ctx.Done():
		}
		break
	}
	close(next)
	wg.Wait()
	if first == nil {
		first = context.Cause(ctx)
	}
	return first
}

func (t *transfer) list() []File {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]File{}, t.files...)
}

// end brings the names to the disk; what the record says of parts is of no use any more.
func (t *transfer) end() error {
	if err := syncFolder(t.root); err != nil {
		return fmt.Errorf("bringing %s to the disk: %w", t.job.Dir, err)
	}
	t.record.Synced = nil
	return t.record.write(t.job.Dir)
}

func syncFolder(root *os.Root) error {
	f, err := root.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
