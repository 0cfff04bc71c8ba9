// Package pretrained holds the weights of sandbox/pretrained-tiny: a file of 16-bit numbers inside the binary. It is a cache of
// what package curriculum teaches: command gen writes the same bytes again on any machine. The rounding to 16 bits comes before
// everything else, so the base's hash and whatever is trained from it are the file's alone.
package pretrained

import (
	"bytes"
	_ "embed"
	"fmt"
	"sync"

	"trainer/internal/sandbox/engine"
)

//go:embed tiny.safetensors
var file []byte

var tiny = sync.OnceValue(func() *engine.Base {
	b, err := engine.LoadBase(bytes.NewReader(file))
	if err != nil {
		panic(fmt.Sprintf("the pretrained weights in this program: %v", err))
	}
	return b
})

// Tiny returns the weights, read at the first call and shared by all. Safe for concurrent use.
func Tiny() *engine.Base { return tiny() }
