package hub

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// The cache:
//
//	<host>/<kind>/<org>/<name>/refs/<revision>        the commit that it was when the hub was last asked
//	<host>/<kind>/<org>/<name>/<commit>.json          the list of its files
//	<host>/<kind>/<org>/<name>/<commit>/<path>        a file under its own name: a link to its content
//	web/<sha256>/<file name>                          the same, of an https:// source
//	blobs/<hash>, .part, .lock                        contents, whole; what is being fetched; who fetches it
//
// Nothing in it is needed: what is deleted is fetched again.

func (h *Hub) repoDir(n name) string {
	host := "hub"
	if u, err := url.Parse(h.Endpoint); err == nil {
		host = strings.ReplaceAll(u.Host, ":", "_")
	}
	return filepath.Join(h.Cache, host, n.kind, filepath.FromSlash(n.id))
}

func (h *Hub) refFile(n name) string {
	return filepath.Join(h.repoDir(n), "refs", url.PathEscape(n.rev))
}

func (h *Hub) listFile(n name, commit string) string {
	return filepath.Join(h.repoDir(n), commit+".json")
}

func (h *Hub) folder(s *snapshot) string { return filepath.Join(h.repoDir(s.name), s.Commit) }

func (h *Hub) blob(key string) string { return filepath.Join(h.Cache, "blobs", key) }

// write puts a small file in place whole.
func write(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("keep what was fetched: %w", err)
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return fmt.Errorf("keep what was fetched: %w", err)
	}
	_, err = f.Write(data)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return fmt.Errorf("keep what was fetched: %w", err)
	}
	return nil
}
