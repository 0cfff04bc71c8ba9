package hub

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
)

// open hashes one existing file.
func open(ctx context.Context, name, dir string) (File, error) {
	path := under(dir, name)
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return File{}, fmt.Errorf("%s: %w", name, plain(err))
	case info.IsDir():
		return File{}, fmt.Errorf("%s: is a folder; name a file, or %s for its files", name, name+"/*.jsonl")
	case !info.Mode().IsRegular():
		return File{}, fmt.Errorf("%s: not a regular file; rows are read more than once, so write them to a file first", name)
	}
	f, err := os.Open(path)
	if err != nil {
		return File{}, fmt.Errorf("%s: %w", name, plain(err))
	}
	defer f.Close()
	h := sha256.New()
	size, err := io.CopyBuffer(h, reader{ctx, f}, make([]byte, 1<<20))
	if err != nil {
		return File{}, fmt.Errorf("%s: %w", name, plain(err))
	}
	return File{Name: shown(dir, name), Path: path, SHA256: hex.EncodeToString(h.Sum(nil)), Size: size}, nil
}

// reader stops at a cancelled context. It has no WriterTo, so that io.CopyBuffer keeps asking it.
type reader struct {
	ctx context.Context
	r   io.Reader
}

func (r reader) Read(p []byte) (int, error) {
	if err := context.Cause(r.ctx); err != nil {
		return 0, err
	}
	return r.r.Read(p)
}
