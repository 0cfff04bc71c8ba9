package runner_test

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"trainer/internal/journal"
)

// death is how a process ends at an operation of its disk. Where it is killed, what it has written stays; where the power
// is cut, only what was synced has to.
type death string

const (
	killedBefore death = "killed before"
	killedWithin death = "killed within" // half of a write is in the file
	cutBefore    death = "power cut before"
	cutWithin    death = "power cut within" // half of what is not synced has come to the disk all the same
	cutAfter     death = "power cut after"
)

var deaths = []death{killedBefore, killedWithin, cutBefore, cutWithin, cutAfter}

// mortal is the file system as the disk of processes that die at one of its operations. It outlives them: what one has left
// unsynced is still so in the life of the next. It brings nothing to a real disk, and remembers what would be there.
type mortal struct {
	journal.Files
	vault string     // holds a hard link to every file that is written or moved, so that a lost name can come back
	dice  *rand.Rand // draws which names survive a cut

	mu      sync.Mutex
	how     death
	at      int    // the last operation; 0: none is
	n       int    // operations of this life
	dead    bool   // every later operation fails
	cut     func() // takes the process along
	inodes  []*inode
	names   map[string]*inode
	changed map[string][]move // of the names in a folder, since it was synced
	folders map[string]bool   // those whose own names are on the disk
}

// inode is a file without its name.
type inode struct {
	link         string // in the vault
	size, synced int64
	gone         []byte // cut off behind synced, and not yet synced to be so
}

// move is a change of names: all of it comes to the disk, or nothing.
type move []struct {
	name     string
	was, now *inode // nil: there is none of that name
}

func newMortal(vault string, seed uint64, dir string) *mortal {
	d := &mortal{vault: vault, dice: rand.New(rand.NewPCG(seed, 1))}
	d.settle(dir)
	return d
}

// settle takes everything that is there for being on the disk.
func (d *mortal) settle(dir string) {
	d.inodes, d.names, d.changed, d.folders = nil, map[string]*inode{}, map[string][]move{}, map[string]bool{}
	d.firm(dir)
}

// live begins the life of a process, which cut ends at operation at.
func (d *mortal) live(how death, at int, cut func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.how, d.at, d.cut, d.n, d.dead = how, at, cut, 0, false
}

func (d *mortal) isDead() bool { d.mu.Lock(); defer d.mu.Unlock(); return d.dead }

// perform does an operation, unless it is the last: that is done not at all, by half where it has one, or wholly, and
// nobody hears of it.
func (d *mortal) perform(half func(), whole func() error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.dead {
		return errDead
	}
	d.n++
	if d.n != d.at {
		return whole()
	}
	switch d.how {
	case cutAfter:
		_ = whole()
	case killedWithin, cutWithin:
		if half != nil {
			half()
		}
	}
	d.dead = true
	d.cut()
	return errDead
}

// OpenFile implements journal.Disk.
func (d *mortal) OpenFile(path string, flag int, mode fs.FileMode) (journal.File, error) {
	var f *mortalFile
	err := d.perform(nil, func() error {
		was, err := d.known(path)
		if err != nil {
			return err
		}
		file, err := d.Files.OpenFile(path, flag, mode)
		if err != nil {
			return err
		}
		now, err := d.known(path)
		if was == nil && now != nil {
			now.synced = 0
			d.change(path, move{{path, nil, now}})
		}
		f = &mortalFile{file, d, now}
		return err
	})
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return f, nil
}

// known is the file of a name, which is on the disk as it is where nothing is known of it; nil: there is none.
func (d *mortal) known(path string) (*inode, error) {
	if i := d.names[path]; i != nil {
		return i, nil
	}
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	i := &inode{link: filepath.Join(d.vault, fmt.Sprint(d.dice.Uint64())), size: info.Size(), synced: info.Size()}
	d.names[path], d.inodes = i, append(d.inodes, i)
	return i, os.Link(path, i.link)
}

// change notes what has become of names, all of them in the folder of path.
func (d *mortal) change(path string, c move) {
	for _, e := range c {
		if d.names[e.name] = e.now; e.now == nil {
			delete(d.names, e.name)
		}
	}
	d.changed[filepath.Dir(path)] = append(d.changed[filepath.Dir(path)], c)
}

// Rename implements journal.Disk.
func (d *mortal) Rename(from, to string) error {
	return d.perform(nil, func() error {
		moved, err1 := d.known(from)
		replaced, err2 := d.known(to)
		if err := cmp.Or(err1, err2, d.Files.Rename(from, to)); err != nil {
			return err
		}
		d.change(to, move{{from, moved, nil}, {to, replaced, moved}})
		return nil
	})
}

// Remove implements journal.Disk.
func (d *mortal) Remove(path string) error {
	return d.perform(nil, func() error {
		was, err := d.known(path)
		if err := cmp.Or(err, d.Files.Remove(path)); err != nil {
			return err
		}
		d.change(path, move{{path, was, nil}})
		return nil
	})
}

// SyncFolder implements journal.Disk.
func (d *mortal) SyncFolder(dir string) error {
	return d.perform(nil, func() error {
		delete(d.changed, dir)
		d.firm(dir)
		return nil
	})
}

// firm notes the folders in dir, whose names are on the disk.
func (d *mortal) firm(dir string) {
	for _, sub := range subfolders(dir) {
		d.folders[sub] = true
	}
}

func subfolders(dir string) (subs []string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if e.IsDir() {
			subs = append(subs, filepath.Join(dir, e.Name()))
		}
	}
	return subs
}

type mortalFile struct {
	journal.File
	disk *mortal
	node *inode
}

func (f *mortalFile) Write(p []byte) (n int, err error) {
	put := func(p []byte) error {
		n, err = f.File.Write(p)
		f.node.size += int64(n)
		return err
	}
	err = f.disk.perform(func() { _ = put(p[:len(p)/2]) }, func() error { return put(p) })
	return n, err
}

func (f *mortalFile) Sync() error {
	return f.disk.perform(nil, func() error {
		f.node.synced, f.node.gone = f.node.size, nil
		return nil
	})
}

func (f *mortalFile) Truncate(size int64) error {
	return f.disk.perform(nil, func() error {
		if data, err := os.ReadFile(f.node.link); err == nil && size < f.node.synced {
			f.node.gone = append(data[size:f.node.synced:f.node.synced], f.node.gone...)
			f.node.synced = size
		}
		f.node.size = size
		return f.File.Truncate(size)
	})
}

// restart makes the run folder what is found in it when the machine is on again; a process that was killed leaves it as
// it is. Of the changes of names that were not synced some have come to the disk, and none that builds on a lost one.
func (d *mortal) restart(dir string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.how == killedBefore || d.how == killedWithin {
		return nil
	}
	var errs []error
	for _, folder := range slices.Sorted(maps.Keys(d.changed)) {
		errs = append(errs, d.forget(d.changed[folder]))
	}
	for _, sub := range subfolders(dir) {
		if !d.folders[sub] && d.dice.IntN(2) == 0 {
			errs = append(errs, os.RemoveAll(sub))
		}
	}
	for _, i := range d.inodes {
		errs = append(errs, i.lose(d.how == cutWithin))
	}
	d.settle(dir)
	return errors.Join(errs...)
}

// forget undoes half of the changes, and those that build on them, the last one first.
func (d *mortal) forget(changes []move) error {
	lost, undo := map[string]bool{}, []move(nil)
	for _, c := range changes {
		drop := d.dice.IntN(2) == 0
		for _, e := range c {
			drop = drop || lost[e.name]
		}
		if !drop {
			continue
		}
		for _, e := range c {
			lost[e.name] = true
		}
		undo = append(undo, c)
	}
	for _, c := range slices.Backward(undo) {
		for _, e := range c {
			if err := os.Remove(e.name); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			if e.was == nil {
				continue
			}
			if err := os.Link(e.was.link, e.name); err != nil {
				return err
			}
		}
	}
	return nil
}

// lose takes from a file what was not synced, or half of it.
func (i *inode) lose(half bool) error {
	keep := i.synced
	if half {
		keep += (i.size - i.synced) / 2
	}
	if err := os.Truncate(i.link, keep); err != nil || i.gone == nil || half {
		return err
	}
	f, err := os.OpenFile(i.link, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(i.gone, i.synced)
	return errors.Join(err, f.Close())
}
