package engine

import (
	"errors"
	"fmt"

	"trainer/internal/sandbox/engine/kernel"
)

// NormEpsilon is added to a mean square before its root.
const NormEpsilon = kernel.NormEpsilon

// flatVocab is the largest vocabulary with a single softmax.
const flatVocab = 1024

// Config is the shape of a model.
type Config struct {
	Vocab   int // ids are 0 to Vocab-1
	Dim     int // width of the residual stream, a multiple of 16
	Layers  int
	Heads   int // Dim/Heads is a multiple of 16
	Hidden  int // width of the gated layer, a multiple of 16
	Context int // the most tokens that a sequence may have
}

// Tiny is the default body: d=64, two layers, about 100,000 weights besides the vocabulary's.
func Tiny(vocab int) Config {
	return Config{Vocab: vocab, Dim: 64, Layers: 2, Heads: 4, Hidden: 176, Context: 2048}
}

// Small has d=128 and four layers, about 800,000 weights besides the vocabulary's.
func Small(vocab int) Config {
	return Config{Vocab: vocab, Dim: 128, Layers: 4, Heads: 4, Hidden: 352, Context: 2048}
}

// Validate reports every reason why no model can have this shape.
func (c Config) Validate() error {
	var errs []error
	need := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	need(c.Vocab >= 2 && c.Vocab <= 1<<24, "vocabulary of %d ids: want 2 to %d", c.Vocab, 1<<24)
	need(c.Dim > 0 && c.Dim <= 4096 && c.Dim%16 == 0, "width %d: want a multiple of 16 up to 4096", c.Dim)
	need(c.Layers > 0 && c.Layers <= 256, "%d layers: want 1 to 256", c.Layers)
	need(c.Heads > 0 && c.Dim%(16*max(1, c.Heads)) == 0, "%d heads of a width of %d: want heads of a multiple of 16", c.Heads, c.Dim)
	need(c.Hidden > 0 && c.Hidden <= 16384 && c.Hidden%16 == 0, "hidden width %d: want a multiple of 16 up to 16384", c.Hidden)
	need(c.Context > 0 && c.Context <= 1<<17, "context of %d tokens: want 1 to %d", c.Context, 1<<17)
	return errors.Join(errs...)
}

// headDim is the width of one attention head.
func (c Config) headDim() int { return c.Dim / c.Heads }

// twoLevel says whether ids are pairs (high, low).
func (c Config) twoLevel() bool { return c.Vocab > flatVocab }

// low is the number of low parts: about the root of the vocabulary, a multiple of 16. A flat vocabulary has all ids there.
func (c Config) low() int {
	if !c.twoLevel() {
		return c.Vocab
	}
	n := 16
	for n*n < c.Vocab {
		n += 16
	}
	return n
}

// high is the number of high parts in use; 1 for a flat vocabulary.
func (c Config) high() int { return (c.Vocab + c.low() - 1) / c.low() }

// lowIn is how many low parts stand for an id where the high part is high: fewer than low in the last row of the grid.
func (c Config) lowIn(high int) int { return min(c.low(), c.Vocab-high*c.low()) }

func pad16(n int) int { return (n + 15) &^ 15 }
