package report

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"trainer/internal/download"
)

// Transfer shows a download: on a terminal a bar with bytes, speed and what remains, elsewhere a line a file, and one from
// time to time while a file takes long.
type Transfer struct {
	Out   io.Writer
	TTY   bool
	Width int // columns of the terminal; 0 is 80
	Color bool

	mu    sync.Mutex // the frames are drawn on a goroutine of mpb's
	state download.State
	from  int64 // bytes that were there at the first move
	began time.Time
	said  time.Time
	bars  *mpb.Progress
	bar   *mpb.Bar
	now   func() time.Time
}

// sayEvery is how long a file may take without a line.
const sayEvery = 10 * time.Second

// Open starts to draw.
func (t *Transfer) Open() {
	if t.now == nil {
		t.now = time.Now
	}
	t.began, t.said, t.from = t.now(), t.now(), -1
	if !t.TTY {
		return
	}
	t.bars = mpb.New(mpb.WithOutput(fromTheLeft{t.Out}), mpb.ForceTTY(), mpb.WithRefreshRate(150*time.Millisecond), mpb.WithAutoRefresh())
	bar, err := t.bars.Add(0, mpb.BarFillerFunc(t.draw), mpb.BarFillerTrim())
	if err != nil { // without a bar there are lines
		t.bars = nil
		return
	}
	t.bar = bar
}

// Move takes how far the download is.
func (t *Transfer) Move(s download.State) {
	t.mu.Lock()
	if t.from < 0 {
		t.from = s.Bytes
	}
	t.state = s
	line := ""
	switch {
	case s.Skipped:
		line = printable(s.File) + " is there"
	case s.Done:
		line = printable(s.File) + ", " + Bytes(s.Whole)
	case t.bars == nil && t.now().Sub(t.said) >= sayEvery:
		line = t.figures()
	}
	if line != "" {
		t.said = t.now()
	}
	t.mu.Unlock()
	if line == "" {
		return
	}
	out := t.Out
	if t.bars != nil {
		out = t.bars
	}
	_, _ = io.WriteString(out, line+"\n") // a terminal that has gone stops no download
}

// figures are bytes, speed and what remains; mu is held.
func (t *Transfer) figures() string {
	text := fmt.Sprintf("%s of %s", Bytes(t.state.Bytes), Bytes(t.state.Size))
	took := t.now().Sub(t.began).Seconds()
	if came := float64(t.state.Bytes - max(0, t.from)); took > 0 && came > 0 {
		speed := came / took
		text += fmt.Sprintf("  %s/s", Bytes(int64(speed)))
		if left := t.state.Size - t.state.Bytes; left > 0 {
			text += "  eta " + Duration(seconds(float64(left)/speed))
		}
	}
	return text
}

// draw is a frame.
func (t *Transfer) draw(w io.Writer, _ decor.Statistics) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	width := t.Width
	if width <= 0 {
		width = 80
	}
	share := 0
	if t.state.Size > 0 {
		share = int(t.state.Bytes * 1000 / t.state.Size)
	}
	full, rest := bar(min(mostBar, max(leastBar, width-50)), share, 1000)
	b := board{color: t.Color}
	_, err := io.WriteString(w, b.paint(cyan, full)+b.paint(dim, rest)+" "+fit(t.figures(), max(0, width-mostBar-2)))
	return err
}

// Close leaves the last frame.
func (t *Transfer) Close() {
	if t.bars != nil {
		t.bar.Abort(false)
		t.bars.Wait()
	}
}
