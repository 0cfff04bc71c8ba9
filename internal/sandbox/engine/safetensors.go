package engine

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
)

// The safetensors form: eight bytes with the little-endian length of a JSON header, the header, the numbers end to end.
// Source: https://github.com/huggingface/safetensors.

// maxHeader bounds the header that is read; ours have about a hundred bytes a tensor.
const maxHeader = 16 << 20

const metadataKey = "__metadata__"

// tensor is one to be written or read: span s of slab, under its name in the file. half has it in 16 bits there.
type tensor struct {
	span
	name string
	slab []float32
	half bool
}

// width is the bytes of a number in the file.
func (t tensor) width() int {
	if t.half {
		return 2
	}
	return 4
}

func (t tensor) dtype() string {
	if t.half {
		return "BF16"
	}
	return "F32"
}

// shape is how the tensor appears in the file: without padding, perhaps the other way round.
func (t tensor) shape() []int {
	switch {
	case t.gain:
		return []int{t.keepCols}
	case t.swap:
		return []int{t.keepCols, t.keepRows}
	}
	return []int{t.keepRows, t.keepCols}
}

func (t tensor) bytes() int64 { return int64(t.keepRows) * int64(t.keepCols) * int64(t.width()) }

// places yields the index in the slab of every number, in the order of the file.
func (t tensor) places(yield func(int) bool) {
	rows, cols, down, right := t.keepRows, t.keepCols, t.cols, 1
	if t.swap {
		rows, cols, down, right = cols, rows, right, down
	}
	for i := range rows {
		for j := range cols {
			if !yield(t.off + i*down + j*right) {
				return
			}
		}
	}
}

// entry is a tensor's line in the header.
type entry struct {
	DType   string   `json:"dtype"`
	Shape   []int    `json:"shape"`
	Offsets [2]int64 `json:"data_offsets"`
}

func writeTensors(w io.Writer, metadata map[string]string, tensors []tensor) error {
	var head bytes.Buffer
	head.WriteString("{")
	if err := writeField(&head, metadataKey, metadata); err != nil {
		return err
	}
	at := int64(0)
	for _, t := range tensors {
		head.WriteString(",")
		if err := writeField(&head, t.name, entry{t.dtype(), t.shape(), [2]int64{at, at + t.bytes()}}); err != nil {
			return err
		}
		at += t.bytes()
	}
	head.WriteString("}")
	for head.Len()%8 != 0 {
		head.WriteByte(' ')
	}
	out := bufio.NewWriterSize(w, 1<<16)
	length := binary.LittleEndian.AppendUint64(nil, uint64(head.Len()))
	out.Write(length)
	out.Write(head.Bytes())
	var number [4]byte
	for _, t := range tensors {
		for i := range t.places {
			bits := math.Float32bits(t.slab[i])
			if t.half {
				bits = halfOf(bits) << 16
			}
			binary.LittleEndian.PutUint32(number[:], bits)
			out.Write(number[4-t.width():])
		}
	}
	return out.Flush() // a bufio.Writer keeps its first error
}

func writeField[T any](w *bytes.Buffer, name string, value T) error {
	key, err := json.Marshal(name)
	if err != nil {
		return err
	}
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	w.Write(key)
	w.WriteByte(':')
	w.Write(text)
	return nil
}

// header is what a file says of itself; entries are in the order of their data, which has no gaps.
type header struct {
	metadata map[string]string
	names    []string
	entries  map[string]entry
}

// readHeader reads up to the first number and believes nothing: every name and shape is still to be compared.
func readHeader(r io.Reader) (*header, error) {
	var size [8]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return nil, fmt.Errorf("reading the length of the header: %w", err)
	}
	n := binary.LittleEndian.Uint64(size[:])
	if n > maxHeader {
		return nil, fmt.Errorf("a header of %d bytes: want at most %d; this is no safetensors file of ours", n, maxHeader)
	}
	text, err := io.ReadAll(io.LimitReader(r, int64(n)))
	if err == nil && uint64(len(text)) < n {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, fmt.Errorf("reading the header: %w", err)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil {
		return nil, fmt.Errorf("reading the header: %w", err)
	}
	h := &header{entries: map[string]entry{}}
	for name, raw := range fields {
		if name == metadataKey {
			err = json.Unmarshal(raw, &h.metadata)
		} else {
			var e entry
			err = json.Unmarshal(raw, &e)
			h.entries[name], h.names = e, append(h.names, name)
		}
		if err != nil {
			return nil, fmt.Errorf("reading the header: %q: %w", name, err)
		}
	}
	return h, h.order()
}

// order sorts the names by their data and refuses gaps and overlaps.
func (h *header) order() error {
	slices.SortFunc(h.names, func(a, b string) int {
		return cmp.Or(cmp.Compare(h.entries[a].Offsets[0], h.entries[b].Offsets[0]), cmp.Compare(a, b))
	})
	at := int64(0)
	for _, name := range h.names {
		o := h.entries[name].Offsets
		if o[0] != at || o[1] < at {
			return fmt.Errorf("tensor %q lies at %d to %d: want it to begin at %d", name, o[0], o[1], at)
		}
		at = o[1]
	}
	return nil
}

// readTensor fills t.slab from the reader; a nil slab skips the numbers.
func readTensor(r io.Reader, t tensor, e entry) error {
	if e.DType != t.dtype() || !slices.Equal(e.Shape, t.shape()) || e.Offsets[1]-e.Offsets[0] != t.bytes() {
		return fmt.Errorf("tensor %q is %s %v in %d bytes: want %s %v in %d",
			t.name, e.DType, e.Shape, e.Offsets[1]-e.Offsets[0], t.dtype(), t.shape(), t.bytes())
	}
	if t.slab == nil {
		_, err := io.CopyN(io.Discard, r, t.bytes())
		return err
	}
	var number [4]byte
	for i := range t.places {
		if _, err := io.ReadFull(r, number[4-t.width():]); err != nil { // the upper bytes; those below stay 0
			return fmt.Errorf("reading tensor %q: %w", t.name, err)
		}
		t.slab[i] = math.Float32frombits(binary.LittleEndian.Uint32(number[:]))
	}
	return nil
}
