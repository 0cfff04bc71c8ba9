package hub

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// Folder is local files of one name: a folder, or one file.
type Folder struct {
	Name   string // as given
	Path   string // to open it by
	Commit string // of the hub; empty where it is local
}

// Folder resolves a local folder or file, which is returned as it is, or a model on the hub, of which the files that the
// patterns fit are brought into one folder; a pattern that fits nothing is passed over, but for at least one file. A relative name starts at
// dir. The error is an *Uncached where something is not here and nothing may be fetched.
func (h *Hub) Folder(ctx context.Context, given, dir string, patterns ...string) (Folder, error) {
	if !strings.HasPrefix(given, Scheme) {
		if err := local(given); err != nil {
			return Folder{}, err
		}
		path := under(dir, given)
		_, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) {
			return Folder{}, missing(given, path)
		}
		if err != nil {
			return Folder{}, fmt.Errorf("%s: %w", given, plain(err))
		}
		return Folder{Name: given, Path: path}, nil
	}
	n, err := parse(given)
	switch {
	case err != nil:
		return Folder{}, err
	case n.kind != models:
		return Folder{}, fmt.Errorf("%s: names a dataset; a model is due, as hf://org/name", given)
	case n.path != "":
		return Folder{}, fmt.Errorf("%s: names a file of the model; give hf://%s alone", given, n.id)
	}
	s, err := h.snapshot(ctx, n)
	if err != nil {
		return Folder{}, err
	}
	found := slices.DeleteFunc(slices.Clone(s.Files), func(e entry) bool {
		return !slices.ContainsFunc(patterns, func(p string) bool {
			g, err := newGlob(p)
			return err == nil && g.fits(e.Path)
		})
	})
	if len(found) == 0 {
		return Folder{}, fmt.Errorf("%s: has none of %s", given, strings.Join(patterns, ", "))
	}
	if _, err := h.files(ctx, s, found); err != nil {
		return Folder{}, err
	}
	return Folder{Name: given, Path: h.folder(s), Commit: s.Commit}, nil
}
