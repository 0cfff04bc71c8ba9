package engine

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"

	"trainer/internal/sandbox/engine/kernel"
)

// Base is a set of weights that sessions start from. It never changes after NewBase or LoadBase and may be shared by any number of
// models and goroutines.
type Base struct {
	config Config
	net    *network
	hash   [32]byte
	// cos and sin of the rotary angles are [Context][headDim/2].
	cos, sin []float32
}

// NewBase returns random weights of shape c. The same c and seed give the same weights on every machine. It panics where
// c.Validate reports an error.
func NewBase(c Config, seed uint64) *Base {
	if err := c.Validate(); err != nil {
		panic(fmt.Sprintf("engine: %v", err))
	}
	_, size := newNetwork(c, nil)
	net, cut := newNetwork(c, make([]float32, size.size))
	cut.fill(seed)
	return finish(c, net)
}

// finish makes a base of weights that have their values.
func finish(c Config, net *network) *Base {
	net.each((*matrix).transpose)
	b := &Base{config: c, net: net, hash: hashOf(net.slab)}
	b.rotary()
	return b
}

// Config returns the shape.
func (b *Base) Config() Config { return b.config }

// Contains reports whether id is in the vocabulary.
func (b *Base) Contains(id int32) bool { return id >= 0 && int(id) < b.config.Vocab }

// Hash is the SHA-256 of the weights.
func (b *Base) Hash() [32]byte { return b.hash }

// rotary fills the tables. Source: Su et al. 2021 (arXiv 2104.09864), theta 10,000, halves rotated as Llama does.
func (b *Base) rotary() {
	half := b.config.headDim() / 2
	b.cos, b.sin = make([]float32, b.config.Context*half), make([]float32, b.config.Context*half)
	for i := range half {
		frequency := kernel.Exp64(-float64(i) / float64(half) * kernel.Log(10000))
		for t := range b.config.Context {
			s, c := kernel.SinCos(float64(float64(t)*frequency) / (2 * math.Pi))
			b.cos[t*half+i], b.sin[t*half+i] = float32(c), float32(s)
		}
	}
}

// hashOf is the SHA-256 of the little-endian bytes of x.
func hashOf(x []float32) [32]byte {
	h := sha256.New()
	var block [4096]byte
	for len(x) > 0 {
		n := min(len(x), len(block)/4)
		for i, v := range x[:n] {
			binary.LittleEndian.PutUint32(block[i*4:], math.Float32bits(v))
		}
		h.Write(block[:n*4])
		x = x[n:]
	}
	return [32]byte(h.Sum(nil))
}
