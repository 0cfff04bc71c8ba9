package runner

import (
	"context"
	"fmt"

	"trainer/internal/hub"
	"trainer/internal/tokenizer"
)

// OpenTokenizer opens a tokenizer by the name that a recipe would give it: a folder or file of this machine, or hf://org/name.
// "bytes" is the vocabulary of the sandbox's own models.
func OpenTokenizer(ctx context.Context, h *hub.Hub, name string) (*tokenizer.Tokenizer, error) {
	if own := tokenizer.Bytes(); name == own.Name() {
		return own, nil
	}
	f, err := h.Folder(ctx, name, ".", tokenizerFiles...)
	if err != nil {
		return nil, err
	}
	t, err := tokenizer.Open(f.Path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name, err)
	}
	return t, nil
}
