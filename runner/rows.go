package runner

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"sync"

	"trainer/internal/dataset"
	"trainer/loss"
)

// fromRows gives the batches of a dataset. Batches never cross an epoch. Safe for concurrent use.
type fromRows struct {
	set       *dataset.Set
	seed      int64
	batch     int // rows a step
	perEpoch  int // steps an epoch
	reduction string
	parts     func(n, each int) int // requests that carry n times so many sequences, which stay together
	soft      *loss.ForwardKL       // sends a row as copies; nil: the loss sends it once

	mu    sync.Mutex
	epoch int
	order []int // of epoch; nil before the first
}

// next implements batches.
func (f *fromRows) next(_ context.Context, step int) (Batch, error) {
	rows := f.rows(step)
	data := make([]loss.Datum, 0, len(rows))
	places := make([]string, 0, len(rows))
	for _, i := range rows {
		row, err := f.set.Row(i)
		if err != nil {
			return Batch{}, fmt.Errorf("step %d: %w", step+1, drifted(err))
		}
		data = append(data, row.Data...)
		places = append(places, row.At.String())
	}
	each := f.set.PerRow() // what is compared stays together
	if each > 1 && each*len(rows) != len(data) {
		return Batch{}, fmt.Errorf("step %d: %d rows make %d sequences", step+1, len(rows), len(data))
	}
	var b Batch
	var err error
	if f.soft != nil {
		b, err = assembleCopies(data, f.reduction, f.soft, f.parts)
	} else {
		b, err = assemble(data, f.reduction, f.parts(len(data)/each, each), each)
	}
	if err != nil {
		return Batch{}, fmt.Errorf("step %d: %w", step+1, err)
	}
	b.Rows = places
	b.Metrics["epoch"] = float64(step+1) / float64(f.perEpoch)
	return b, nil
}

// drifted marks the error of a row that is not what the lock has.
func drifted(err error) error {
	if errors.Is(err, dataset.ErrChanged) {
		return fmt.Errorf("%w: %w", ErrDrift, err)
	}
	return err
}

// release implements batches: rows need no weights.
func (f *fromRows) release(context.Context, int) error { return nil }

// rows are the indices of step's rows in the set.
func (f *fromRows) rows(step int) []int {
	f.mu.Lock()
	defer f.mu.Unlock()
	if epoch := step / f.perEpoch; f.order == nil || epoch != f.epoch {
		f.epoch, f.order = epoch, f.set.Order(f.seed, epoch)
	}
	lo := (step % f.perEpoch) * f.batch
	return f.order[lo:min(lo+f.batch, len(f.order))]
}

// assemble reduces data over the whole step, where the loss has a reduction, then cuts it into parts of nearly equal
// counts; so many sequences each stay together.
func assemble(data []loss.Datum, reduction string, parts, each int) (Batch, error) {
	reduced := data
	if reduction != "" {
		var err error
		if reduced, err = loss.Reduce(data, reduction); err != nil {
			return Batch{}, err
		}
	}
	b := Batch{}
	for _, d := range data {
		for _, w := range d.Weights {
			b.Sum += w
		}
	}
	switch reduction {
	case "sum":
		b.Scale = 1
	case "token_mean":
		b.Scale = 1 / b.Sum
	}
	b.carry(data, reduced, parts, each)
	return b, nil
}

// carry cuts reduced, which is made of data, into parts.
func (b *Batch) carry(data, reduced []loss.Datum, parts, each int) {
	b.Hash, b.Metrics, b.Parts, b.Raw = hashData(data), map[string]float64{}, nil, nil
	tokens, trained := 0, 0
	for _, d := range data {
		tokens += len(d.Input) + 1
		for _, w := range d.Weights {
			if w != 0 {
				trained++
			}
		}
	}
	b.Metrics["tokens"], b.Metrics["trained_tokens"] = float64(tokens), float64(trained)
	n := len(data) / each
	for i := range parts {
		lo, hi := i*n/parts*each, (i+1)*n/parts*each
		raw := make([][]float64, 0, hi-lo)
		for _, d := range data[lo:hi] {
			raw = append(raw, d.Weights)
		}
		b.Parts, b.Raw = append(b.Parts, reduced[lo:hi]), append(b.Raw, raw)
	}
}

// hashData is over the tokens and the weights of data, in order, and what else of them is trained on.
func hashData(data []loss.Datum) string {
	h := sha256.New()
	var buf []byte
	for _, d := range data {
		buf = binary.LittleEndian.AppendUint64(buf[:0], uint64(len(d.Input)))
		for t := range d.Input {
			buf = binary.LittleEndian.AppendUint32(buf, uint32(d.Input[t]))
			buf = binary.LittleEndian.AppendUint32(buf, uint32(d.Targets[t]))
			buf = binary.LittleEndian.AppendUint64(buf, math.Float64bits(d.Weights[t]))
			if d.Advantages != nil {
				buf = binary.LittleEndian.AppendUint64(buf, math.Float64bits(d.Advantages[t]))
				buf = binary.LittleEndian.AppendUint64(buf, math.Float64bits(d.OldLogprobs[t]))
			}
			if d.RefLogprobs != nil {
				buf = binary.LittleEndian.AppendUint64(buf, math.Float64bits(d.RefLogprobs[t]))
			}
			if d.TeacherLogprobs != nil {
				buf = binary.LittleEndian.AppendUint64(buf, math.Float64bits(d.TeacherLogprobs[t]))
			}
		}
		h.Write(buf)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// partsFor says how many requests carry a step's sequences, each of which stay together: as many as asked for, or as few as
// the service's limit allows; never more than there are to carry.
func partsFor(maxBatch, accumulation int) func(n, each int) int {
	return func(n, each int) int {
		parts := max(accumulation, 1)
		if maxBatch > 0 {
			most := max(1, maxBatch/each)
			parts = max(parts, (n+most-1)/most)
		}
		return max(1, min(parts, n))
	}
}
