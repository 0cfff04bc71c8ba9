package dataset

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"

	"trainer/internal/diag"
)

// A block is large enough to be worth handing over, and small enough that the few on their way fill no memory.
const (
	blockBytes = 1 << 20
	blockRows  = 4096
)

// block is some rows of one file on their way through the scan: cut out by one goroutine, checked by any, collected in
// file order.
type block struct {
	source *source
	file   int    // in index.files
	read   int64  // bytes of the source to the end of the block
	of     int64  // bytes of the source, as far as is known
	buf    []byte // the rows, one behind the other
	rows   []rawRow
	done   chan checked
}

// cutter cuts the files of one source into blocks.
type cutter struct {
	x     *index
	s     *source
	emit  func(*block) error // in file order; the error is of the context
	left  int                // rows until the limit; negative: there is none
	begun bool               // the format is settled
	b     *block             // not yet emitted
	past  int64              // bytes of the files before this one
	at    int64              // bytes of this one, so far
	of    int64              // bytes of all; of those not yet unpacked, as they are packed
}

// cut reads the source's files in order, up to its limit. What is wrong with a file, or with the source, goes out as a
// block that is done; only the context's error comes back.
func (x *index) cut(ctx context.Context, s *source, emit func(*block) error) error {
	c := &cutter{x: x, s: s, emit: emit, left: -1}
	if s.section.Limit != nil {
		c.left = *s.section.Limit
	}
	for _, f := range s.files {
		c.of += f.Size
	}
	for i := range s.files {
		if c.left == 0 {
			break
		}
		n := s.base + i
		refused, err := c.file(ctx, n)
		var ended *fileFault
		if errors.As(err, &ended) {
			err = c.finished(checked{fatal: []diag.Problem{{Pos: diag.Pos{File: x.files[n].Name, Line: ended.line}, Msg: ended.msg}}})
		}
		if refused != nil {
			return errors.Join(err, c.finished(checked{refused: refused}))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// fileFault is what ends the reading of a file.
type fileFault struct {
	line int
	msg  string
}

func (f *fileFault) Error() string { return f.msg }

// file cuts one file. The error is a *fileFault, or the context's.
func (c *cutter) file(ctx context.Context, n int) (refused *problem, err error) {
	from, err := unpacker{c.x.copies}.find(ctx, c.x.files[n], c.left)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, &fileFault{0, err.Error()}
	}
	c.x.files[n].Path = from.path
	f, err := os.Open(from.path)
	if err != nil {
		return nil, &fileFault{0, err.Error()}
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, &fileFault{0, err.Error()}
	}
	c.of += info.Size() - c.x.files[n].Size
	defer func() { c.past, c.at = c.past+info.Size(), 0 }()
	seen := &seenBytes{r: f}
	split, err := newSplitter(seen)
	if err != nil {
		return nil, endOf(err)
	}
	c.b = c.fresh(n)
	rows := 0
	for ; c.left != 0; rows++ {
		if refused, err = c.row(split); refused != nil || err != nil {
			break
		}
		if len(c.b.buf) >= blockBytes || len(c.b.rows) >= blockRows {
			if err := c.flush(n); err != nil {
				return nil, err
			}
		}
	}
	if flushed := c.flush(n); flushed != nil {
		return refused, flushed
	}
	if err == io.EOF && from.sum != nil && *from.sum != seen.sum {
		return refused, &fileFault{0, fmt.Sprintf("its unpacked copy, %s, is damaged; remove it, and it is made anew", from.path)}
	}
	if err == io.EOF && rows == 0 {
		return refused, &fileFault{0, "empty; there is no row in it"}
	}
	return refused, endOf(err)
}

// seenBytes adds up what was read.
type seenBytes struct {
	r   io.Reader
	sum uint32
}

func (s *seenBytes) Read(b []byte) (int, error) {
	n, err := s.r.Read(b)
	s.sum = crc32.Update(s.sum, castagnoli, b[:n])
	return n, err
}

// row takes the next row into the block; the first sound one settles the format.
func (c *cutter) row(split *splitter) (*problem, error) {
	buf, r, err := split.next(c.b.buf)
	if err != nil {
		return nil, err
	}
	raw := buf[len(c.b.buf):]
	c.at = split.offset
	c.b.buf, c.b.rows = buf, append(c.b.rows, r)
	c.left--
	if c.begun || r.long || check(raw) != nil || !trimmed(raw).isObject() {
		return nil, nil
	}
	c.begun = true
	p := c.s.begin(trimmed(raw), diag.Pos{File: c.x.files[c.b.file].Name, Line: r.line}, c.x.template)
	if p != nil {
		c.b = c.fresh(c.b.file)
	}
	return p, nil
}

func (c *cutter) fresh(n int) *block {
	return &block{source: c.s, file: n, done: make(chan checked, 1)}
}

// flush emits the block, and begins another.
func (c *cutter) flush(n int) error {
	b := c.b
	b.read, b.of = c.past+c.at, c.of
	if c.b = c.fresh(n); len(b.rows) == 0 {
		return nil
	}
	return c.emit(b)
}

// finished emits what needs no checking.
func (c *cutter) finished(r checked) error {
	b := c.fresh(0)
	r.source = c.s
	b.done <- r
	return c.emit(b)
}

// endOf is nil at the end of a file, and a *fileFault for what ended it before.
func endOf(err error) error {
	var s *splitFault
	switch {
	case err == nil || err == io.EOF:
		return nil
	case errors.As(err, &s):
		return &fileFault{s.line, s.msg}
	}
	return &fileFault{0, err.Error()}
}
