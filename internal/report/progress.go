package report

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"

	"trainer/runner"
)

// Progress is a sink for a terminal: the stage, then a bar with loss, learning rate, tokens a second, dollars so far
// and what remains; evaluations, checkpoints, retries and warnings are lines above it. The bar and a line with the
// outcome stay. What does not fit the width leaves, the least wanted first.
type Progress struct {
	Out   io.Writer
	Width int // columns, where Out is not a terminal's file, which is asked at each frame; 0 is 80
	Color bool
	Brief bool // no line with the outcome: it is printed on the same terminal by who closes this

	mu    sync.Mutex // the frames are drawn on a goroutine of mpb's
	board *board
	bars  *mpb.Progress
	bar   *mpb.Bar
	end   *runner.Event
	now   func() time.Time
}

var _ runner.Sink = (*Progress)(nil)

// Open implements runner.Sink: it starts to draw.
func (p *Progress) Open(_ context.Context, r runner.RunInfo) error {
	if p.now == nil {
		p.now = time.Now
	}
	p.board = newBoard(r, p.Color, p.now())
	p.bars = mpb.New(mpb.WithOutput(fromTheLeft{p.Out}), mpb.ForceTTY(), mpb.WithRefreshRate(150*time.Millisecond), mpb.WithAutoRefresh())
	bar, err := p.bars.Add(0, mpb.BarFillerFunc(p.draw), mpb.BarFillerTrim())
	if err != nil {
		return fmt.Errorf("starting the progress bar: %w", err)
	}
	p.bar = bar
	p.above(p.board.opening())
	return nil
}

// fromTheLeft begins each frame in the first column. The bar's library goes up and clears from where the cursor is, and
// the ^C that a terminal echoes has moved it: without this a piece of the old bar stays.
type fromTheLeft struct{ io.Writer }

// Write gets one frame whole.
func (w fromTheLeft) Write(frame []byte) (int, error) {
	n, err := w.Writer.Write(append([]byte{'\r'}, frame...))
	return max(0, n-1), err
}

// draw is a frame.
func (p *Progress) draw(w io.Writer, _ decor.Statistics) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	// A terminal breaks the line when its last column is used, which would leave a ghost of the bar behind.
	_, err := io.WriteString(w, p.board.live(p.columns()-1, p.now()))
	return err
}

// columns of the terminal as it is now.
func (p *Progress) columns() int {
	if f, ok := p.Out.(*os.File); ok {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
			return w
		}
	}
	if p.Width > 0 {
		return p.Width
	}
	return 80
}

// Emit implements runner.Sink.
func (p *Progress) Emit(e runner.Event) {
	p.mu.Lock()
	lines := p.board.add(e)
	p.mu.Unlock()
	if e.Kind == runner.EndEvent {
		p.end = &e
	}
	p.above(lines)
}

func (p *Progress) above(lines []string) {
	for _, line := range lines {
		// It fails only after Close, where nothing is drawn any more.
		_, _ = io.WriteString(p.bars, line+"\n")
	}
}

// Close implements runner.Sink: it leaves the last frame and writes the outcome under it, unless it is Brief.
func (p *Progress) Close(context.Context) error {
	if p.bars == nil {
		return nil
	}
	p.bar.Abort(false)
	p.bars.Wait()
	err := p.bars.Error
	if p.end != nil && err == nil && !p.Brief {
		_, err = io.WriteString(p.Out, p.board.final(*p.end)+"\n")
	}
	if err != nil {
		return fmt.Errorf("drawing the progress bar: %w", err)
	}
	return nil
}
