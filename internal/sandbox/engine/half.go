package engine

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// SaveBase writes the weights as a safetensors file of 16-bit numbers (bfloat16, rounded to the nearest, ties to even), half
// the size of Save's, which LoadBase reads. It refuses an adapter, which is no base by itself. The bytes are a function of
// the weights.
func (w *Weights) SaveBase(out io.Writer) error {
	if w.lora != nil {
		return errors.New("saving a base: these weights are a LoRA adapter; a base has all weights")
	}
	var all []tensor
	for _, s := range w.spans {
		all = append(all, tensor{span: s, name: s.name, slab: w.params, half: true})
	}
	meta, err := metadata(w.base, nil, w.steps)
	if err == nil {
		err = writeTensors(out, meta, all)
	}
	if err != nil {
		return fmt.Errorf("saving a base: %w", err)
	}
	return nil
}

// LoadBase reads what SaveBase wrote; the base has the rounded weights, and the hash that is of them. A file of another engine
// version is read too: that version decides how weights go on, not what they are. It refuses bytes that are no such file.
func LoadBase(r io.Reader) (*Base, error) {
	b, err := loadBase(bufio.NewReaderSize(r, 1<<16))
	if err != nil {
		return nil, fmt.Errorf("loading a base: %w", err)
	}
	return b, nil
}

func loadBase(r io.Reader) (*Base, error) {
	h, err := readHeader(r)
	if err != nil {
		return nil, err
	}
	var c Config
	if err := json.Unmarshal([]byte(h.metadata[keyConfig]), &c); err != nil {
		return nil, fmt.Errorf("%s: %w", keyConfig, err)
	}
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("%s: %w", keyConfig, err)
	}
	_, size := newNetwork(c, nil)
	known := map[string]tensor{}
	want := int64(0)
	for _, s := range size.spans {
		t := tensor{span: s, name: s.name, half: true}
		known[s.name], want = t, want+t.bytes()
	}
	// Nothing as large as the shape says is made before the file says the same.
	if n := len(h.names); n != len(known) || h.entries[h.names[n-1]].Offsets[1] != want {
		return nil, fmt.Errorf("%d tensors: want %d, in %d bytes", n, len(known), want)
	}
	net, _ := newNetwork(c, make([]float32, size.size))
	for _, name := range h.names {
		t, ok := known[name]
		if !ok {
			return nil, fmt.Errorf("tensor %q is none of this shape's", name)
		}
		t.slab = net.slab
		if err := readTensor(r, t, h.entries[name]); err != nil {
			return nil, err
		}
	}
	if _, err := io.ReadFull(r, make([]byte, 1)); !errors.Is(err, io.EOF) {
		return nil, errors.New("there are bytes after the last tensor")
	}
	return finish(c, net), nil
}

// halfOf is the upper half of a float32's bits, rounded to the nearest, ties to even. A NaN stays one.
func halfOf(bits uint32) uint32 {
	if bits&0x7fffffff > 0x7f800000 {
		return bits>>16 | 0x40
	}
	return (bits + 0x7fff + bits>>16&1) >> 16
}
