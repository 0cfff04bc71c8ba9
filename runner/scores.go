package runner

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"

	"trainer/internal/journal"
)

// Log-probabilities that a gradient is made of are on the disk before it is sent, each answer in a file of its own beside
// the stored requests: a later life goes on with the same numbers. A file is, for each sequence, how many there are and
// then each of them, little-endian.

func outName(key string) string { return key + ".out" }

func (l *ledger) outPath(key string) string { return filepath.Join(l.dir, outName(key)) }

// keep brings the log-probabilities of o to the disk, and takes them out of the memory.
func (l *ledger) keep(o *operation) error {
	data := appendRows(nil, o.res.Logprobs)
	if err := journal.Put(l.disk, l.outPath(o.key), data); err != nil {
		return &journalError{fmt.Errorf("store what %v has scored: %w", o.slot, err)}
	}
	o.out, o.res.Logprobs = hashOf(data), nil
	return nil
}

// outLost tells whether the file is gone, or not what it was.
func (l *ledger) outLost(o *operation) bool {
	data, err := os.ReadFile(l.outPath(o.key))
	return err != nil || hashOf(data) != o.out
}

// scored waits for ops and returns their log-probabilities, of all sequences in order, [B][T].
func (l *ledger) scored(ctx context.Context, ops []*operation) ([][]float64, error) {
	var all [][]float64
	for _, o := range ops {
		if _, err := o.wait(ctx); err != nil {
			return nil, err
		}
		data, err := os.ReadFile(l.outPath(o.key))
		if err == nil && (o.out == "" || hashOf(data) != o.out) {
			err = errors.New("it is not what was stored")
		}
		if err != nil {
			return nil, fmt.Errorf("read what %v has scored: %w", o.slot, err)
		}
		rows, err := readRows(data)
		if err != nil {
			return nil, fmt.Errorf("read what %v has scored: %w", o.slot, err)
		}
		all = append(all, rows...)
	}
	return all, nil
}

// score submits items that only score, and returns their log-probabilities; what fails is asked for again.
func (l *ledger) score(ctx context.Context, items []item) (now [][]float64, err error) {
	for range harmlessTries {
		var ops []*operation
		if ops, err = l.submit(ctx, items...); err != nil {
			return nil, err
		}
		if now, err = l.scored(ctx, ops); err == nil || l.tainted() != nil || costs(failureOf(err), false) != askAgain {
			break
		}
	}
	return now, err
}

func appendRows(dst []byte, rows [][]float64) []byte {
	for _, row := range rows {
		dst = binary.LittleEndian.AppendUint32(dst, uint32(len(row)))
		for _, v := range row {
			dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(v))
		}
	}
	return dst
}

func readRows(data []byte) (rows [][]float64, err error) {
	for r := bytes.NewReader(data); r.Len() > 0; {
		var n uint32
		if err := binary.Read(r, binary.LittleEndian, &n); err != nil || r.Len() < 8*int(n) {
			return nil, errors.New("it is cut")
		}
		row := make([]float64, n)
		if err := binary.Read(r, binary.LittleEndian, row); err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}
