package sandbox

import (
	"sync"

	"trainer/internal/sandbox/engine"
)

// bases keeps the frozen weights that sessions share, each made once. Safe for concurrent use.
type bases struct {
	made   sync.Map // base model and ref → func() *engine.Base: what is drawn
	loaded sync.Map // ref → *engine.Base: what was registered here
}

func (b *bases) get(m model, ref string) *engine.Base {
	build := sync.OnceValue(func() *engine.Base { return engine.NewBase(m.config, baseSeed(m.name, ref)) })
	first, _ := b.made.LoadOrStore([2]string{m.name, ref}, build)
	return first.(func() *engine.Base)()
}
