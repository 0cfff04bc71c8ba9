package engine

import (
	"errors"
	"slices"

	"trainer/internal/sandbox/engine/kernel"
)

// ErrHead is a merge that no base can be made of: the adapter has a pair for the head, and a base's head is its input table.
var ErrHead = errors.New("the adapter has a pair for the head, so merged weights have a head of their own")

// Base returns what w stands for as weights to start from: its own, or those of its base with the adapter added. The error
// is ErrHead.
func (w *Weights) Base() (*Base, error) {
	var slab []float32
	switch {
	case w.lora == nil:
		slab = slices.Clone(w.params)
	case w.lora.TrainUnembed:
		return nil, ErrHead
	default:
		slab = w.forward().merge().slab
	}
	net, _ := newNetwork(w.base.config, slab)
	net.each((*matrix).transpose)
	b := &Base{config: w.base.config, net: net, hash: hashOf(slab)}
	b.rotary()
	return b, nil
}

// merge is the base's weights with the adapter added to the layers.
func (m *Model) merge() *network {
	net, _ := newNetwork(m.base.config, slices.Clone(m.base.net.slab))
	for i := range net.layers {
		for j, p := range net.layers[i].projections() {
			kernel.Add(p.w, m.delta(m.adapter.layers[i][j], p.rows, p.cols))
		}
	}
	return net
}
