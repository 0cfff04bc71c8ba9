package engine

import (
	"fmt"
	"io"

	"trainer/internal/sandbox/engine/kernel"
)

// SaveMerged writes the full weights that w stands for, a LoRA adapter added to its base, as a safetensors file with the names
// and shapes of Transformers' Llama: for a flat vocabulary its loaders read it. Where the adapter has a pair for the head,
// lm_head.weight is a tensor of its own; else the head is the input table. A two-level vocabulary has tables of its own kind:
// see the package comment.
func (w *Weights) SaveMerged(out io.Writer) error {
	if w.lora == nil {
		return w.Save(out)
	}
	m := w.forward()
	net := m.merge()
	var all []tensor
	for _, s := range net.spans {
		all = append(all, tensor{s, s.name, net.slab})
	}
	for i, pair := range m.adapter.heads {
		table := net.tables[i]
		head := make([]float32, len(table.w))
		kernel.Transpose(head, m.delta(pair, table.cols, table.rows), table.cols, table.rows)
		kernel.Add(head, table.w)
		s := table.span
		s.off = 0
		all = append(all, tensor{s, headName(w.base.config, i) + ".weight", head})
	}
	meta, err := metadata(w.base, nil, w.steps)
	if err == nil {
		err = writeTensors(out, meta, all)
	}
	if err != nil {
		return fmt.Errorf("saving merged weights: %w", err)
	}
	return nil
}

// delta is what a pair adds to its matrix [in][out].
func (m *Model) delta(p pair, in, out int) []float32 {
	d := make([]float32, in*out)
	kernel.Mul(kernel.Rows(d, out), kernel.Rows(p.a.w, p.rank), kernel.Rows(p.b.w, out), in, out, p.rank, false)
	kernel.Scale(d, float32(m.lora.Alpha/float64(m.lora.Rank)))
	return d
}

// headName is the name of the head of a table.
func headName(c Config, table int) string {
	if !c.twoLevel() {
		return "lm_head"
	}
	return "lm_head." + []string{"high", "low"}[table]
}

// HeadModules are the names of the linear maps that TrainUnembed adapts, as adapter files have them.
func (c Config) HeadModules() []string {
	if !c.twoLevel() {
		return []string{headName(c, 0)}
	}
	return []string{headName(c, 0), headName(c, 1)}
}

// Split is the number of high parts and of low parts of a two-level vocabulary; ok is false for a flat one.
func (c Config) Split() (high, low int, ok bool) { return c.high(), c.low(), c.twoLevel() }
