package report

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// Fetching tells of files that come from the hub and take their time: nothing in the first second, then a line from time to time, on
// a terminal the same one again and again. It is safe for concurrent use.
type Fetching struct {
	Out io.Writer
	TTY bool

	mu    sync.Mutex
	files map[string][2]int64 // bytes that are here, and all; by name
	began time.Time
	said  time.Time
	drawn bool // a line of a terminal is not ended
	now   func() time.Time
}

// Move takes how many bytes of a file are here; size is -1 where it is not known.
func (f *Fetching) Move(name string, done, size int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.files == nil {
		f.files = map[string][2]int64{}
	}
	if f.now == nil {
		f.now = time.Now
	}
	now := f.now()
	if len(f.files) == 0 {
		f.began, f.said = now, now
	}
	f.files[name] = [2]int64{done, size}
	all, whole := f.whole()
	every := sayEvery
	if f.TTY {
		every = time.Second / 4
	}
	if now.Sub(f.began) < time.Second || now.Sub(f.said) < every && !(whole && f.drawn) {
		f.forget(whole)
		return
	}
	f.said = now
	f.say(name, all)
	f.forget(whole)
}

// forget begins anew behind files that are whole: the next ones are another wait.
func (f *Fetching) forget(whole bool) {
	if whole {
		f.files, f.drawn = nil, false
	}
}

// whole adds up the files, and says whether all of each is here.
func (f *Fetching) whole() (all [2]int64, whole bool) {
	whole = true
	for _, of := range f.files {
		all[0] += of[0]
		if of[1] < 0 || all[1] < 0 {
			all[1] = -1
		} else {
			all[1] += of[1]
		}
		whole = whole && of[0] == of[1]
	}
	return all, whole
}

func (f *Fetching) say(name string, all [2]int64) {
	what := printable(name)
	if len(f.files) > 1 {
		what = fmt.Sprintf("%d files", len(f.files))
	}
	text := fmt.Sprintf("fetching %s: %s", what, Bytes(all[0]))
	if all[1] >= 0 {
		text += " of " + Bytes(all[1])
	}
	if !f.TTY {
		fmt.Fprintln(f.Out, text)
		return
	}
	end := ""
	if f.drawn = all[0] != all[1]; !f.drawn {
		end = "\n"
	}
	fmt.Fprintf(f.Out, "\r\x1b[K%s%s", text, end)
}
