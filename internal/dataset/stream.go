package dataset

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"trainer/internal/chat"
	"trainer/internal/dataset/parquet"
	"trainer/internal/diag"
	"trainer/recipe"
)

// Stream reads rows that come by once, from a file or a pipe, in bounded memory: nothing is indexed, shuffled or cut to
// length, and a row that trains nothing is as good as any. The first row tells the format, as in a dataset under format: auto.
type Stream struct {
	Name     string         // of the file, in messages
	Template *chat.Template // may be nil: then only rows of text, ids and tokens can be read
	// NoTemplate says why there is no template, where a row needs one; nil: that there is none.
	NoTemplate error
	IDs        bool // every row is {"ids": […]}, to be turned back into text
	Limit      int  // rows; 0 is all
	// Render appends what goes out for a row to dst. It is called on several goroutines at once.
	Render func(dst []byte, row Passing) ([]byte, error)
}

// Passing is a row of a stream: one of Text, IDs and Examples, by the format of the stream.
type Passing struct {
	At       diag.Pos
	Format   string // ids, text or another name of a dataset's formats
	Text     string
	IDs      []int32
	Examples []chat.Example
}

// Run copies rows from r to w, rendered, in the order in which they come. It ends at the first fault: the rows before it
// have then been written. The error is a diag.List where the rows are at fault; else it is the context's, or of reading
// or writing.
func (s *Stream) Run(ctx context.Context, r io.Reader, w io.Writer) error {
	rows, err := s.open(r)
	if err != nil {
		return s.placed(err)
	}
	g, ctx := errgroup.WithContext(ctx)
	workers := runtime.GOMAXPROCS(0)
	work, order := make(chan *passage), make(chan *passage, 2*workers)
	g.Go(func() error {
		defer close(work)
		defer close(order)
		return s.cut(ctx, rows, order, work)
	})
	for range workers {
		g.Go(func() error {
			for p := range work {
				p.done <- s.render(p)
			}
			return nil
		})
	}
	g.Go(func() error {
		for p := range order {
			select {
			case out := <-p.done:
				if _, err := w.Write(out.text); err != nil {
					return err
				}
				rooms.Put(&out.text)
				if out.err != nil {
					return out.err
				}
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		return nil
	})
	return g.Wait()
}

// passage is some rows on their way through a stream.
type passage struct {
	source *source // nil: rows of ids
	buf    []byte  // the rows, one behind the other
	rows   []rawRow
	end    error // what ends the stream behind them
	done   chan went
}

// went is what became of a passage: the text of its rows up to the first fault.
type went struct {
	text []byte
	err  error
}

// rooms are for the text of passages, from one to the next; they are of one size, that of some blocks.
var rooms = sync.Pool{New: func() any { return new([]byte) }}

// open looks through gzip and zstd, and finds the first row.
func (s *Stream) open(r io.Reader) (*splitter, error) {
	in := bufio.NewReaderSize(r, 1<<20)
	start, err := in.Peek(4)
	if err != nil && err != io.EOF {
		return nil, err
	}
	var from io.Reader = in
	switch text := string(start); {
	case strings.HasPrefix(text, "\x1F\x8B"):
		from, err = gunzip(in)
	case text == "\x28\xB5\x2F\xFD":
		from, err = unzstd(in)
	case text == parquet.Magic:
		return nil, errors.New("a Parquet file is not read as a stream; name it in a recipe, as dataset.train, and give the recipe")
	default:
		return newSplitter(in)
	}
	if err != nil {
		return nil, unsound(err)
	}
	return newSplitter(from)
}

// placed is a fault of the file as a whole, with its place.
func (s *Stream) placed(err error) error {
	var f *splitFault
	if errors.As(err, &f) {
		return diag.List{{Pos: diag.Pos{File: s.Name, Line: f.line}, Msg: f.msg}}
	}
	return diag.List{{Pos: diag.Pos{File: s.Name}, Msg: err.Error()}}
}

// cut sends the rows out in passages.
func (s *Stream) cut(ctx context.Context, split *splitter, order, work chan<- *passage) error {
	p, n := &passage{done: make(chan went, 1)}, 0
	flush := func() error {
		out := p
		p = &passage{source: out.source, done: make(chan went, 1)}
		if err := pass(ctx, order, out); err != nil {
			return err
		}
		return pass(ctx, work, out)
	}
	for ; s.Limit == 0 || n < s.Limit; n++ {
		buf, row, err := split.next(p.buf)
		if err == io.EOF {
			break
		}
		if err != nil {
			p.end = s.placed(err)
			return flush()
		}
		raw := buf[len(p.buf):]
		p.buf, p.rows = buf, append(p.rows, row)
		if n == 0 && !s.IDs {
			if row.long || check(raw) != nil || !trimmed(raw).isObject() {
				return flush() // it is at fault, and without it there is no format
			}
			if p.source, p.end = s.begin(trimmed(raw), row.line); p.end != nil {
				p.buf, p.rows = nil, nil
				return flush()
			}
		}
		if len(p.buf) >= blockBytes || len(p.rows) >= blockRows {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	if n == 0 {
		p.end = s.placed(errors.New("empty; there is no row in it"))
	}
	return flush()
}

func pass(ctx context.Context, to chan<- *passage, p *passage) error {
	select {
	case to <- p:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// passing are the formats of a stream: prompts alone are not among them, as every row with a prompt could be one.
var passing = []string{"messages", "prompt_completion", "text", "tokens", "preference", "labelled"}

// begin settles the format by the first row.
func (s *Stream) begin(row value, line int) (*source, error) {
	src := &source{section: recipe.Source{Format: "auto", Path: s.Name}, takes: passing}
	at := diag.Pos{File: s.Name, Line: line}
	if row.member("text") != nil { // before any other: plain text needs neither template nor rows of one shape
		src.format, _ = named("text", noColumn)
		src.columns = map[string]*column{"text": newColumn("text")}
		return src, nil
	}
	p := src.begin(row, at, s.Template)
	switch {
	case p == nil:
		return src, nil
	case s.Template == nil && s.NoTemplate != nil:
		return nil, diag.List{{Pos: at, Msg: fmt.Sprintf("the row needs a template: %v", s.NoTemplate)}}
	}
	return nil, diag.List{{Pos: at, Msg: p.msg}}
}

// render renders the rows of a passage, up to the first that cannot be.
func (s *Stream) render(p *passage) went {
	out, start := went{text: (*rooms.Get().(*[]byte))[:0]}, 0
	for _, r := range p.rows {
		raw := p.buf[start : start+r.length]
		start += r.length
		row := Passing{At: diag.Pos{File: s.Name, Line: r.line}}
		f := s.read(p.source, &row, raw, r.long)
		if f != nil {
			out.err = diag.List{f.at(row.At)}
			return out
		}
		if out.text, out.err = s.Render(out.text, row); out.err != nil {
			return out
		}
	}
	out.err = p.end
	return out
}

// read fills row from its bytes.
func (s *Stream) read(src *source, row *Passing, raw []byte, long bool) (f *fault) {
	if long {
		return bad("", "longer than %d MiB", maxRow>>20)
	}
	if err := check(raw); err != nil {
		return bad("", "not JSON: %v", err)
	}
	v := trimmed(raw)
	if !v.isObject() {
		return bad("", "%s where a row is due, as {\"…\": …}", v.kind())
	}
	if s.IDs {
		row.Format = "ids"
		ids := v.member("ids")
		if ids == nil {
			return missing(v, "ids")
		}
		if !ids.isList() {
			return bad("ids", "%s where a list of token ids is due", ids.kind())
		}
		row.IDs, f = idList(ids)
		return f
	}
	if row.Format = src.format.name; row.Format == "text" {
		row.Text, f = src.columns["text"].text(v)
		return f
	}
	row.Examples, f = src.examples(v, s.Template)
	return f
}

// idList reads ids of any number, none included.
func idList(v value) (ids []int32, f *fault) {
	for i, item := range v.items() {
		id, ok := item.whole()
		if !ok || id < 0 || id > math.MaxInt32 {
			return nil, bad(element("ids", i, ""), "%s is not a token id; a whole number of 0 to %d", brief(string(item)), math.MaxInt32)
		}
		ids = append(ids, int32(id))
	}
	return ids, nil
}

// examples renders a row, neither cut nor held to train anything.
func (s *source) examples(row value, t *chat.Template) ([]chat.Example, *fault) {
	made, f := s.render(row, t)
	if f != nil && f.other {
		f.msg += s.shape()
	}
	return made.sides, f
}
