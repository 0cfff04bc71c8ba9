// Package hub turns the names that recipes use into local files with their hashes; inputs come no other way. What it
// returns can be read again at any offset for as long as the run lasts, so a pipe or a device is refused, and what was
// read is named by content, so a changed file is noticed on resume.
package hub

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"trainer/internal/diag"
)

// Hub resolves names. The zero value is ready and resolves local names; it is safe for concurrent use.
type Hub struct {
	// Cache is the folder that keeps what is made of inputs; empty: there is none.
	Cache string
}

// File is a regular local file. Its hash is of the bytes at the time of Open.
type File struct {
	Name   string // for messages: under dir where dir is relative, else as given
	Path   string // to open it by
	SHA256 string // lower-case hex
	Size   int64  // bytes
}

// Open resolves a file, or a glob to its files in order of name, directories and hidden files left out; a relative name
// starts at dir. A name that exists is never a glob. There is at least one file unless there is an error, which says
// what there is instead.
func (h *Hub) Open(ctx context.Context, name, dir string) ([]File, error) {
	if err := local(name); err != nil {
		return nil, err
	}
	path := under(dir, name)
	_, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) && strings.ContainsAny(name, "*?[") {
		return h.glob(ctx, name, dir)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, missing(name, path)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, plain(err))
	}
	f, err := open(ctx, name, dir)
	if err != nil {
		return nil, err
	}
	return []File{f}, nil
}

func (h *Hub) glob(ctx context.Context, name, dir string) ([]File, error) {
	names, err := match(name, dir)
	if err != nil {
		return nil, err
	}
	files := make([]File, 0, len(names))
	for _, n := range names {
		f, err := open(ctx, n, dir)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

// local refuses what is on no disk of ours.
func local(name string) error {
	scheme, rest, ok := strings.Cut(name, "://")
	switch {
	case name == "":
		return errors.New("empty; a file is due")
	case strings.ContainsRune(name, 0):
		return fmt.Errorf("%q: a NUL is no part of a file name", name)
	case !ok:
		return nil
	}
	switch strings.ToLower(scheme) {
	case "hf", "https":
		return fmt.Errorf("%s: fetching from %s:// is not built yet; download it and give the path of the file", name, scheme)
	case "http":
		return fmt.Errorf("%s: http:// can be changed on its way and is refused; download it and give the path of the file", name)
	case "file":
		return fmt.Errorf("%s: give the path without file://, as %s", name, rest)
	}
	return fmt.Errorf("%s: %s:// is not known; download it and give the path of the file", name, scheme)
}

// missing names what the folder has instead; where the folder itself is not there, the first part that is not.
func missing(name, path string) error {
	parent := filepath.Dir(path)
	if _, err := os.Stat(parent); errors.Is(err, fs.ErrNotExist) && parent != path {
		return fmt.Errorf("%s: no such file; the folder %s is not there%s", name, parent, didYouMean(parent))
	}
	return fmt.Errorf("%s: no such file%s", name, didYouMean(path))
}

func didYouMean(path string) string {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return ""
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	slices.Sort(names)
	return diag.DidYouMean(filepath.Base(path), names)
}

func under(dir, name string) string {
	if filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	return filepath.Join(dir, name)
}

// shown is how messages name the file, so that the place they give can be opened from where the command runs.
func shown(dir, name string) string {
	if filepath.IsAbs(dir) || filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(dir, name)
}

// plain drops the operation and the path that an os error repeats.
func plain(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}
