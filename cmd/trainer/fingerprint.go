package main

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"trainer/internal/chat"
)

// print is the fingerprint of a row's tokens, and the number of the row.
type print struct {
	of  [16]byte
	row int
}

// fingerprint is of the tokens of a row, whatever they weigh: two rows with the same one are the same to a model.
func fingerprint(exs []chat.Example) [16]byte {
	h := sha256.New()
	var buf []byte
	for _, ex := range exs {
		buf = binary.LittleEndian.AppendUint64(buf[:0], uint64(len(ex.IDs)))
		for _, id := range ex.IDs {
			buf = binary.LittleEndian.AppendUint32(buf, uint32(id))
		}
		h.Write(buf)
	}
	return [16]byte(h.Sum(nil))
}

// repeat is a row that has the tokens of an earlier one: the first of them.
type repeat struct{ again, first int }

// repeats finds them, in the order of the rows that repeat. It sorts prints.
func repeats(prints []print) []repeat {
	slices.SortFunc(prints, func(a, b print) int {
		return cmp.Or(bytes.Compare(a.of[:], b.of[:]), cmp.Compare(a.row, b.row))
	})
	var out []repeat
	first := 0
	for i := 1; i < len(prints); i++ {
		if prints[i].of != prints[first].of {
			first = i
			continue
		}
		out = append(out, repeat{prints[i].row, prints[first].row})
	}
	slices.SortFunc(out, func(a, b repeat) int { return cmp.Compare(a.again, b.again) })
	return out
}
