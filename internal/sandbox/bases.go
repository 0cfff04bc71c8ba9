package sandbox

import (
	"strings"
	"sync"

	"trainer/internal/sandbox/engine"
)

// bases keeps the frozen weights that sessions share, each made once. Safe for concurrent use.
type bases struct {
	made   sync.Map // base model and ref → func() *engine.Base: what is drawn
	loaded sync.Map // ref → *engine.Base: what was registered here
}

// drawn are those of the sandbox's own models: they are small, and whatever opens one server after another draws them once.
var drawn sync.Map

func (b *bases) get(m model, ref string) *engine.Base {
	build := sync.OnceValue(func() *engine.Base { return m.weights(ref) })
	made := &b.made
	if strings.HasPrefix(m.name, ownPrefix) {
		made = &drawn
	}
	first, _ := made.LoadOrStore([2]string{m.name, ref}, build)
	return first.(func() *engine.Base)()
}
