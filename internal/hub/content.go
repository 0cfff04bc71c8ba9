package hub

import (
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
)

// content is bytes that are known by a hash before they are here.
type content struct {
	name   string // for messages
	url    string
	commit string // of the hub, which says of every file what commit it is of; empty elsewhere
	size   int64  // -1: not known
	sha256 string // or
	git    string // which needs the size
}

// key names it in the cache.
func (c content) key() string {
	if c.sha256 != "" {
		return "sha256-" + c.sha256
	}
	return "git-" + c.git
}

// mismatch is content that is not what its name says.
type mismatch struct{ text string }

func (m *mismatch) Error() string { return m.text }

// check reads the file at path and compares it with what c says of it; the error is a *mismatch where it is another. sum is the
// SHA-256 of its bytes, size their number.
func (c content) check(ctx context.Context, path string) (sum string, size int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	h, g := sha256.New(), hash.Hash(nil)
	w := io.Writer(h)
	if c.git != "" {
		g = sha1.New()
		fmt.Fprintf(g, "blob %d\x00", c.size)
		w = io.MultiWriter(h, g)
	}
	if size, err = io.CopyBuffer(w, reader{ctx, f}, make([]byte, 1<<20)); err != nil {
		return "", 0, err
	}
	sum = hex.EncodeToString(h.Sum(nil))
	switch {
	case c.size >= 0 && size != c.size:
		return "", 0, &mismatch{fmt.Sprintf("has %d bytes, and %d are due", size, c.size)}
	case c.sha256 != "" && sum != c.sha256:
		return "", 0, &mismatch{fmt.Sprintf("has the sha256 %s, and %s is due", sum, c.sha256)}
	case g != nil && hex.EncodeToString(g.Sum(nil)) != c.git:
		return "", 0, &mismatch{fmt.Sprintf("has the git hash %x, and %s is due", g.Sum(nil), c.git)}
	}
	return sum, size, nil
}

// bring returns the content under its own name at path: what is there, what the cache has, or what is fetched. Damage is
// found by the hash, and mended by fetching again where that is allowed.
func (h *Hub) bring(ctx context.Context, c content, path string) (File, error) {
	var wrong *mismatch
	sum, size, err := c.check(ctx, path)
	if errors.As(err, &wrong) && h.Offline != "" {
		return File{}, fmt.Errorf("%s: the cache is damaged: %s %v; %s", c.name, path, wrong, h.Offline)
	}
	if err != nil && (errors.Is(err, os.ErrNotExist) || wrong != nil) {
		if err = h.store(ctx, c, path); err == nil {
			sum, size, err = c.check(ctx, path)
		}
	}
	if ctx.Err() != nil {
		return File{}, context.Cause(ctx)
	}
	if err != nil {
		return File{}, err
	}
	return File{Name: c.name, Path: path, SHA256: sum, Size: size}, nil
}

// store makes the content be in the cache, and links it to path.
func (h *Hub) store(ctx context.Context, c content, path string) error {
	blob := h.blob(c.key())
	if _, _, err := c.check(ctx, blob); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if h.Offline != "" {
			return &Uncached{c.name, h.Offline}
		}
		if err := h.fetch(ctx, c, blob); err != nil {
			return err
		}
	}
	return link(blob, path)
}

// link puts the blob under path: by a hard link where the file system has such, else by a copy.
func link(blob, path string) error {
	if err := os.MkdirAll(parent(path), 0o700); err != nil {
		return fmt.Errorf("keep what was fetched: %w", err)
	}
	part := fmt.Sprintf("%s.%d.link", path, os.Getpid())
	_ = os.Remove(part)
	err := os.Link(blob, part)
	if err != nil {
		err = copyFile(blob, part)
	}
	if err == nil {
		err = os.Rename(part, path)
	}
	// A rename of a link over one of the same file leaves both.
	_ = os.Remove(part)
	if err != nil {
		return fmt.Errorf("keep what was fetched: %w", err)
	}
	return nil
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if cerr := out.Close(); err == nil {
		err = cerr
	}
	return err
}
