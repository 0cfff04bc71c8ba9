// Package hub turns the names that recipes use into local files with their hashes; inputs come no other way. A name is a
// local path or glob, hf://org/name@revision (a model's files), hf://datasets/org/name@revision, or https://…. What it returns
// can be read again at any offset for as long as the run lasts, so a pipe or a device is refused, and what was read is named
// by content, so a changed file is noticed on resume.
//
// A revision becomes a commit once, and files are those of that commit: what a branch holds a minute later changes nothing.
// What is fetched is kept in a cache under its content, after its size and hash were compared with what the hub lists; so
// the network is asked for each content once, and a run that was planned from the cache trains on those bytes. The token
// goes to the hub's own address and to no other, whatever a redirect says, and never into an error.
package hub

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"trainer/internal/diag"
)

// Hub resolves names. The zero value is ready and resolves local names; New makes one that fetches. Its fields are set
// before use; then it is safe for concurrent use.
type Hub struct {
	// Cache is the folder that keeps what is fetched; empty: only local names are resolved.
	Cache string
	// Endpoint is the hub's address.
	Endpoint string
	// Token is sent to Endpoint alone; empty: none.
	Token string
	// Offline says, in words for a person, why nothing is fetched and how it would be; empty: what the cache lacks is fetched.
	Offline string
	// Pins are commits, 40 hexadecimal digits, by Ref: what the revision of that name is, whatever the hub says.
	Pins map[string]string
	// Progress is told of the bytes of a file that is being fetched, from any goroutine, often; nil: nobody is. size is -1
	// where it is not known.
	Progress func(name string, done, size int64)
	// Retried is told of a request that is made again; nil: nobody is.
	Retried func(text string)
	// Transport carries the requests; nil: one that goes by the proxies of the environment.
	Transport http.RoundTripper

	once    sync.Once
	client  *http.Client
	mu      sync.Mutex
	commits map[string]string // by Ref, of what this process has resolved
}

// File is a regular local file. Its hash is of the bytes at the time of Open.
type File struct {
	Name   string // for messages: under dir where dir is relative, else as given
	Path   string // to open it by
	SHA256 string // lower-case hex
	Size   int64  // bytes
}

// Open resolves a local file, or a glob to its files in order of name, directories and hidden files left out; a relative
// name starts at dir. A name that exists is never a glob. There is at least one file unless there is an error, which says
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
	case name == "-":
		return errors.New("-: standard input cannot be read more than once, as rows are; write it to a file first (./- is a file of that name)")
	case strings.ContainsRune(name, 0):
		return fmt.Errorf("%q: a NUL is no part of a file name", name)
	case !ok:
		return nil
	}
	switch strings.ToLower(scheme) {
	case "hf", "https":
		return fmt.Errorf("%s: a file of this machine is due; download it and give its path", name)
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
	if to, err := os.Readlink(path); err == nil {
		return fmt.Errorf("%s: a link to %s, which is not there", name, to)
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
