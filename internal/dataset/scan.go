package dataset

import (
	"context"
	"hash/crc32"
	"runtime"

	"golang.org/x/sync/errgroup"

	"trainer/internal/diag"
)

// checked is what became of a block, or of a file or a source that could not be cut into blocks.
type checked struct {
	source  *source
	entries []entry
	read    int64 // bytes of the source so far
	of      int64 // bytes of the source
	faults  []placed
	dropped int
	cut     int
	same    []diag.Problem // pairs of two equal sides, left out
	fatal   []diag.Problem // a file ended before its end
	refused *problem       // no row of the source can be read
}

// placed is a fault with its row.
type placed struct {
	fault
	pos diag.Pos
}

// scan checks every row of the sources and hands what came of them to collect, in file order, from one goroutine. A few
// blocks are in memory at a time, however large the files. The error is the context's.
func (x *index) scan(ctx context.Context, sources []*source, collect func(checked)) error {
	g, ctx := errgroup.WithContext(ctx)
	workers := runtime.GOMAXPROCS(0)
	work, order := make(chan *block), make(chan *block, 2*workers)
	g.Go(func() error {
		defer close(work)
		defer close(order)
		return x.cutAll(ctx, sources, order, work)
	})
	for range workers {
		g.Go(func() error {
			for b := range work {
				b.done <- x.check(b)
			}
			return nil
		})
	}
	g.Go(func() error {
		for b := range order {
			select {
			case c := <-b.done:
				collect(c)
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		return nil
	})
	return g.Wait()
}

// cutAll sends every block to order, and to work where it has rows to check.
func (x *index) cutAll(ctx context.Context, sources []*source, order, work chan<- *block) error {
	for _, s := range sources {
		err := x.cut(ctx, s, func(b *block) error {
			if err := send(ctx, order, b); err != nil || len(b.rows) == 0 {
				return err
			}
			return send(ctx, work, b)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func send(ctx context.Context, to chan<- *block, b *block) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	select {
	case to <- b:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// check renders every row of the block.
func (x *index) check(b *block) checked {
	c, start := checked{source: b.source, entries: make([]entry, 0, len(b.rows)), read: b.read, of: b.of}, 0
	for _, r := range b.rows {
		pos := diag.Pos{File: x.files[b.file].Name, Line: r.line}
		if r.long {
			c.faults = append(c.faults, placed{*bad("", "longer than %d MiB; cut it up, or dataset.on_bad_row: skip leaves it out", maxRow>>20), pos})
			continue
		}
		raw := b.buf[start : start+r.length]
		start += r.length
		made, f := x.encode(b.source, raw)
		switch {
		case f != nil:
			c.faults = append(c.faults, placed{*f, pos})
			continue
		case made.dropped:
			c.dropped++
			continue
		case made.same:
			c.same = append(c.same, diag.Problem{Pos: pos, Msg: "the chosen and the rejected side are the same"})
			continue
		case made.cut:
			c.cut++
		}
		tokens, trained := x.sent(made.sides)
		c.entries = append(c.entries, entry{offset: r.offset, length: int32(r.length), line: int32(r.line), tokens: int32(tokens),
			trained: int32(trained), longest: int32(longestOf(made.sides)), taught: int32(len(made.taught)), file: int32(b.file), sum: crc32.ChecksumIEEE(raw)})
	}
	return c
}
