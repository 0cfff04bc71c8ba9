package hub

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
)

// Source is what a recipe says of where rows come from.
type Source struct {
	Name   string // a path, a glob, hf://datasets/… or https://…
	Dir    string // where a relative path starts
	Subset string // of hf://; empty: the only or the default one
	Split  string // of hf://; empty: train
	SHA256 string // of the bytes at https://, where it is required
}

// Rows resolves a source of rows to its files, in order. The error is an *Uncached where they are not here and nothing may be
// fetched. A file of the hub is named by what the recipe gives and its path.
func (h *Hub) Rows(ctx context.Context, s Source) ([]File, error) {
	switch {
	case strings.HasPrefix(s.Name, Scheme):
		return h.dataset(ctx, s)
	case strings.HasPrefix(s.Name, "https://"):
		f, err := h.web(ctx, s)
		if err != nil {
			return nil, err
		}
		return []File{f}, nil
	}
	return h.Open(ctx, s.Name, s.Dir)
}

func (h *Hub) dataset(ctx context.Context, s Source) ([]File, error) {
	n, err := parse(s.Name)
	if err != nil {
		return nil, err
	}
	if n.kind != datasets {
		return nil, fmt.Errorf("%s: names a model; a dataset is hf://datasets/%s", s.Name, strings.TrimPrefix(s.Name, Scheme))
	}
	snap, err := h.snapshot(ctx, n)
	if err != nil {
		return nil, err
	}
	entries, err := snap.of(n, s)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.Name, err)
	}
	return h.files(ctx, snap, entries)
}

// of are the files that a source means: those that its name names, else those of its subset and split.
func (s *snapshot) of(n name, src Source) ([]entry, error) {
	switch {
	case n.path == "":
		return s.choose(src.Subset, orTrain(src.Split))
	case src.Subset != "":
		return nil, errors.New("names files, so that a subset has no effect; leave subset out")
	case orTrain(src.Split) != "train":
		return nil, errors.New("names files, so that a split has no effect; leave split out")
	}
	return pick(s.Files, []string{n.path})
}

func orTrain(split string) string {
	if split == "" {
		return "train"
	}
	return split
}

// atOnce is how many files are fetched at a time.
const atOnce = 4

// files brings entries of a snapshot, several at a time, and returns them in their order.
func (h *Hub) files(ctx context.Context, s *snapshot, entries []entry) ([]File, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	out := make([]File, len(entries))
	free := make(chan struct{}, atOnce)
	var all sync.WaitGroup
	for i, e := range entries {
		free <- struct{}{}
		all.Go(func() {
			defer func() { <-free }()
			f, err := h.file(ctx, s, e)
			if err != nil {
				cancel(err) // the first one is the cause
				return
			}
			out[i] = f
		})
	}
	all.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return out, nil
}

func (h *Hub) file(ctx context.Context, s *snapshot, e entry) (File, error) {
	if ctx.Err() != nil {
		return File{}, context.Cause(ctx)
	}
	at := s.name.given
	if s.name.path != "" {
		at = strings.TrimSuffix(at, "/"+s.name.path)
	}
	c := content{name: at + "/" + e.Path, url: h.page(s.name) + "/resolve/" + s.Commit + "/" + escaped(e.Path),
		commit: s.Commit, size: e.Size, sha256: e.SHA256, git: e.Git}
	f, err := h.bring(ctx, c, filepath.Join(h.folder(s), filepath.FromSlash(e.Path)))
	var no *refusal
	if errors.As(err, &no) {
		n := s.name
		n.given = c.name
		return f, h.explain(n, err)
	}
	return f, named(c.name, err)
}

// named puts the name before an error that does not have it.
func named(name string, err error) error {
	if err == nil || strings.HasPrefix(err.Error(), name) {
		return err
	}
	return fmt.Errorf("%s: %w", name, err)
}

func escaped(p string) string {
	parts := strings.Split(p, "/")
	for i := range parts {
		parts[i] = url.PathEscape(parts[i])
	}
	return strings.Join(parts, "/")
}

// web brings what stands at an address. Its hash is known before, so that the address is asked once at most.
func (h *Hub) web(ctx context.Context, s Source) (File, error) {
	u, err := url.Parse(s.Name)
	sum := strings.ToLower(s.SHA256)
	switch {
	case err != nil || u.Hostname() == "":
		return File{}, fmt.Errorf("%s: is no address", s.Name)
	case u.User != nil:
		return File{}, fmt.Errorf("https://%s…: carries a password; what needs one is downloaded by hand, and its path given", u.Hostname())
	case !hexDigits(sum, 64):
		return File{}, fmt.Errorf("%s: needs the sha256 of its bytes, 64 hexadecimal digits: what stands at an address can change", s.Name)
	case s.Subset != "":
		return File{}, fmt.Errorf("%s: only an hf:// dataset has subsets; leave subset out", s.Name)
	case h.Cache == "":
		return File{}, &Uncached{s.Name, "there is no folder for what is fetched: set TRAINER_CACHE to one"}
	}
	name := path.Base(u.Path)
	if !safe(name) {
		name = "rows"
	}
	c := content{name: s.Name, url: s.Name, size: -1, sha256: sum}
	f, err := h.bring(ctx, c, filepath.Join(h.Cache, "web", sum, name))
	return f, named(s.Name, err)
}

// Missing says what of a source is not here, without reading what is; nil where all is, or where asking for it will tell what is wrong.
func (h *Hub) Missing(ctx context.Context, s Source) *Uncached {
	away := &Hub{Cache: h.Cache, Endpoint: h.Endpoint, Pins: h.Pins, Offline: h.Offline, commits: h.Commits()}
	if away.Offline == "" {
		away.Offline = "it is to be fetched"
	}
	var err error
	switch {
	case strings.HasPrefix(s.Name, Scheme):
		err = away.lacks(ctx, s)
	case strings.HasPrefix(s.Name, "https://"):
		if sum := strings.ToLower(s.SHA256); hexDigits(sum, 64) && !there(h.blob(content{sha256: sum}.key()), -1) {
			return &Uncached{s.Name, away.Offline}
		}
	}
	var un *Uncached
	if errors.As(err, &un) {
		return un
	}
	return nil
}

// lacks is an *Uncached where the listing or a file of a dataset is not here.
func (h *Hub) lacks(ctx context.Context, s Source) error {
	n, err := parse(s.Name)
	if err != nil || n.kind != datasets {
		return err
	}
	snap, err := h.snapshot(ctx, n)
	if err != nil {
		return err
	}
	entries, err := snap.of(n, s)
	for _, e := range entries {
		if !there(h.blob(content{sha256: e.SHA256, git: e.Git}.key()), e.Size) {
			return &Uncached{s.Name, h.Offline}
		}
	}
	return err
}

// there says whether a file of so many bytes is at path; -1: of any number.
func there(path string, size int64) bool {
	info, err := os.Stat(path)
	return err == nil && (size < 0 || info.Size() == size)
}
