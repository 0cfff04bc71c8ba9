package sandbox

import (
	"strings"
	"testing"

	"trainer/internal/wire"
)

// BenchmarkStep is a forward-backward and an optim-step through the API, waited for: what the server adds to the compute.
func BenchmarkStep(b *testing.B) {
	for name, dir := range map[string]string{"memory": "", "disk": b.TempDir()} {
		b.Run(name, func(b *testing.B) {
			_, c := open(b, Options{Dir: dir})
			id := c.tiny()
			body := batch(b, "", row(strings.Repeat("x", 9)))
			c.keys = 1 << 20
			for b.Loop() {
				c.run(id, wire.KindForwardBackward, body, nil)
				c.run(id, wire.KindOptimStep, `{}`, nil)
			}
		})
	}
}
