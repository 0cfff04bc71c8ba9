// Package parquet writes the rows of Parquet files as JSON lines, one object a row, keys in the order of the columns.
//
// What the file means is kept: integers of any size, decimals and floats by their digits, lists with their nulls, dates and
// times as ISO 8601 text. A member of a nested struct that is null is left out, as a struct has every member in every row and
// cannot tell null from absent; a null column stays null. Bytes that are no text are an object that gives their number, so
// that only a field that wants them is at fault.
//
// Files come from strangers: sizes are looked at before memory is taken for them, and what panics in a decoder is an error.
package parquet

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"

	pq "github.com/parquet-go/parquet-go"
)

// Magic begins and ends every file.
const Magic = "PAR1"

const batch = 64 // rows that are in memory at a time

// Convert writes the first limit rows of the file in r, all of them where limit is negative. The error is of the context,
// of w, or says what is wrong with the file; what was written before it is sound.
func Convert(ctx context.Context, r io.ReaderAt, size int64, limit int, w *bufio.Writer) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("damaged: %v", p)
			if _, ours := p.(runtime.Error); ours { // its words are of code, and not of the file
				err = errors.New("damaged: a part of it is not what the file says it is; fetch or write it anew")
			}
		}
	}()
	if err := footerFits(r, size); err != nil {
		return err
	}
	f, err := pq.OpenFile(r, size, pq.SkipPageIndex(true), pq.SkipBloomFilters(true))
	if err != nil {
		return fmt.Errorf("damaged: %w", err)
	}
	root := f.Root()
	row, err := newNode(root)
	if err != nil {
		return err
	}
	row.rooted()
	c := &converter{w: w, row: row, columns: make([][]pq.Value, row.leaves), left: limit, rows: make([]pq.Row, batch)}
	for i, g := range f.RowGroups() {
		if c.left == 0 || g.NumRows() == 0 {
			continue
		}
		if err := pagesFit(r, size, &f.Metadata().RowGroups[i]); err != nil {
			return err
		}
		if err := c.group(ctx, g); err != nil {
			return err
		}
	}
	return nil
}

type converter struct {
	w       *bufio.Writer
	row     *node
	columns [][]pq.Value // of the row at hand, [leaves]
	rows    []pq.Row
	left    int // rows to write; negative: all
	text    []byte
}

func (c *converter) group(ctx context.Context, g pq.RowGroup) (err error) {
	rows := g.Rows()
	defer func() { err = errors.Join(err, rows.Close()) }()
	for want := g.NumRows(); want > 0 && c.left != 0; {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		n, err := rows.ReadRows(c.rows)
		for _, row := range c.rows[:n] {
			if c.left == 0 {
				return nil
			}
			if err := c.write(row); err != nil {
				return err
			}
			c.left--
		}
		if want -= int64(n); err != nil && err != io.EOF {
			return fmt.Errorf("damaged: %w", err)
		}
		if n == 0 && want > 0 {
			return fmt.Errorf("damaged: a row group ends %d rows early", want)
		}
	}
	return nil
}

// write cuts the row into its columns.
func (c *converter) write(row pq.Row) (err error) {
	clear(c.columns)
	for i := 0; i < len(row); {
		column, from := row[i].Column(), i
		for i < len(row) && row[i].Column() == column {
			i++
		}
		if column < 0 || column >= len(c.columns) {
			return errTorn
		}
		c.columns[column] = row[from:i]
	}
	if c.text, err = c.row.append(c.text[:0], c.columns, 0, 0); err != nil {
		return err
	}
	c.text = append(c.text, '\n')
	_, err = c.w.Write(c.text)
	return err
}
