package worker

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"time"
)

// Command is a program that answers requests on stdin and stdout.
type Command struct {
	// Args are the program and its arguments, no shell.
	Args []string
	// Dir is where it runs, and where a program named with a slash is looked for.
	Dir string
	// Env is its whole environment, NAME=value; see Environment.
	Env []string
	// Secrets are hidden in the log and in errors.
	Secrets []string
	// Kind is reward, env or loss; Params and Run go to it in hello.
	Kind   string
	Params map[string]any
	Run    string
	// Timeout of a request, StartTimeout of getting ready; above 0.
	Timeout, StartTimeout time.Duration
	// Workers is how many run, Retries how often a request is sent again.
	Workers, Retries int
	// MaxFrame bounds an object both ways, in bytes; 0 for the 16 MiB of the protocol.
	MaxFrame int
	// PassNaN gives an answer with NaN or Infinity to who asked, as ErrNotANumber, and leaves the program running; else that is
	// a breach of the protocol. It needs a program that is asked one thing at a time.
	PassNaN bool
	// Log is told each line of stderr; nil for nobody. It is called from several goroutines.
	Log func(line string)
	// Trouble is told why an attempt at a request has brought no result, with one of the reasons of a Lost; nil for nobody. It
	// is called from several goroutines.
	Trouble func(reason, msg string)
}

// Grace is how long a process has to leave after its stdin was closed, and again after SIGTERM.
const Grace = 5 * time.Second

// maxInFlight bounds what a process may ask for.
const maxInFlight = 1024

// process is a started program that said ready.
type process struct {
	cmd      *exec.Cmd
	stdin    io.WriteCloser
	frames   chan []byte // to be written
	lines    chan []byte // read; closed at end of file
	tooLong  chan struct{}
	gone     chan struct{} // closed when the program has been waited for
	said     *listener
	most     int // bytes of a line
	inFlight int
}

// start runs the program and waits until it is ready. The error comes with what it printed.
func (c *Command) start(ctx context.Context) (p *process, said string, err error) {
	cmd := exec.Command(c.Args[0], c.Args[1:]...)
	cmd.Dir, cmd.Env = c.Dir, c.Env
	ownGroup(cmd)
	p = &process{cmd: cmd, frames: make(chan []byte, 2*maxInFlight), lines: make(chan []byte), tooLong: make(chan struct{}), gone: make(chan struct{}),
		said: &listener{masker: masker{c.Secrets}, log: c.Log}, most: c.mostBytes()}
	if p.stdin, err = cmd.StdinPipe(); err != nil {
		return nil, "", err
	}
	out, into := io.Pipe()
	cmd.Stdout, cmd.Stderr = into, p.said
	cmd.WaitDelay = Grace // for children that keep the pipes of a program that is gone
	if err := cmd.Start(); err != nil {
		return nil, "", err
	}
	go p.read(out)
	go p.write()
	go func() {
		_ = cmd.Wait() // how it ended is nobody's business: what counts is whether it answered
		_ = into.Close()
		close(p.gone)
	}()
	if err := p.hello(ctx, c); err != nil {
		p.kill()
		return nil, p.said.last(), err
	}
	return p, "", nil
}

func (c *Command) mostBytes() int {
	if c.MaxFrame > 0 {
		return c.MaxFrame
	}
	return maxFrame
}

// read passes lines on until end of file, or until one is too long.
func (p *process) read(out *io.PipeReader) {
	defer func() { _, _ = io.Copy(io.Discard, out) }() // a full pipe would block it
	defer close(p.lines)
	r := bufio.NewReaderSize(out, 64<<10)
	for {
		line, err := readLine(r, p.most)
		if errors.Is(err, bufio.ErrTooLong) {
			close(p.tooLong)
			return
		}
		if len(bytes.TrimSpace(line)) > 0 {
			p.lines <- line // somebody listens as long as the program lives; see drain
		}
		if err != nil {
			return
		}
	}
}

func readLine(r *bufio.Reader, most int) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > most:
			return nil, bufio.ErrTooLong
		case !errors.Is(err, bufio.ErrBufferFull):
			return line, err
		}
	}
}

func (p *process) write() {
	for f := range p.frames {
		if _, err := p.stdin.Write(f); err != nil {
			break
		}
	}
	for range p.frames { // nobody waits for a writer
	}
}

// send never blocks: at most inFlight requests are open.
func (p *process) send(f []byte) { p.frames <- append(f, '\n') }

// offer sends what nobody waits for, and drops it where a process that reads nothing has left no room but for requests.
func (p *process) offer(f []byte) {
	if len(p.frames) < maxInFlight {
		p.frames <- append(f, '\n')
	}
}

func (p *process) hello(ctx context.Context, c *Command) error {
	head := map[string]any{"v": version, "type": "hello", "kind": c.Kind, "params": orEmpty(c.Params), "run": c.Run}
	f, err := frame(head, []string{"v", "type", "kind", "params", "run"}, []byte("{}"), maxFrame)
	if err != nil {
		return err
	}
	p.send(f)
	timeout := time.NewTimer(c.StartTimeout)
	defer timeout.Stop()
	select {
	case line, ok := <-p.lines:
		if !ok {
			_, msg := p.ending()
			return errors.New("was not ready: " + msg)
		}
		return p.ready(line)
	case <-timeout.C:
		return fmt.Errorf("was not ready after %s", c.StartTimeout)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// ending is why there are no more lines.
func (p *process) ending() (reason, msg string) {
	select {
	case <-p.tooLong:
		return Protocol, fmt.Sprintf("it wrote a line of more than %d bytes", p.most)
	default:
		return Died, "it ended"
	}
}

func orEmpty(m map[string]any) map[string]any {
	if m == nil {
		return map[string]any{}
	}
	return m
}

// stop lets the program leave by itself, then asks it, then makes it.
func (p *process) stop() {
	p.drain()
	for _, next := range []func(){func() { p.signal(false) }, func() { p.signal(true) }} {
		select {
		case <-p.gone:
			p.signal(true) // what it left behind in its group
			return
		case <-time.After(Grace):
			next()
		}
	}
	<-p.gone
}

// kill ends the program and its children at once.
func (p *process) kill() {
	p.signal(true)
	p.drain()
	<-p.gone
}

// drain ends the talk with the program: its stdin is closed, and what it still says is dropped.
func (p *process) drain() {
	close(p.frames)
	_ = p.stdin.Close()
	go func() {
		for range p.lines {
		}
	}()
}
