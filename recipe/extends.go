package recipe

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"trainer/internal/diag"
)

// The bounds of a family of recipes.
const (
	maxParents = 10 // generations
	maxFiles   = 64
)

// loader reads a recipe and its parents. read is readFile, or a test's.
type loader struct {
	read     func(path string) ([]byte, *diag.Problem)
	problems diag.List
	sources  []*source // in the order in which they were read: the recipe first
	layers   int
	orphan   bool // a parent could not be read
}

// load returns the mapping of a file with its parents below it, or nil.
func (l *loader) load(path string, data []byte, chain []string) *node {
	src := &source{file: path, dir: filepath.Dir(path), data: data, main: len(chain) == 0}
	l.sources = append(l.sources, src)
	n := parseFile(src, &l.problems)
	if n == nil {
		return nil
	}
	var below *node
	for _, parent := range l.parents(n, src, append(chain, path)) {
		below = merge(below, parent)
	}
	l.layers++
	src.layer = l.layers
	return merge(below, n)
}

// parents loads what extends names, earlier first. Faults of a parent stand in the parent, a parent that can't be named
// or read stands where it is named.
func (l *loader) parents(n *node, src *source, chain []string) []*node {
	ext := n.get("extends")
	if ext == nil {
		return nil
	}
	if ext.shape != list {
		if !src.main { // of the recipe itself the decoder says it
			l.problems.Add(ext.pos, "extends", "must be a list, not %s", ext.show())
		}
		return nil
	}
	var out []*node
	for i, item := range ext.items {
		name, key := item.word(), join("extends", strconv.Itoa(i))
		if name == "" {
			if !src.main || item.shape == scalar && !item.null {
				l.problems.Add(item.pos, key, "must name a file, not %s", item.show())
			}
			continue
		}
		path := filepath.FromSlash(name)
		if !filepath.IsAbs(path) {
			path = filepath.Join(src.dir, path)
		}
		if msg := l.refuses(name, path, chain); msg != "" {
			l.orphan = true
			l.problems.Add(item.pos, key, "%s", msg)
			continue
		}
		data, bad := l.read(path)
		if bad != nil {
			l.orphan = true
			l.problems.Add(item.pos, key, "%s: %s", name, bad.Msg)
			continue
		}
		if parent := l.load(path, data, chain); parent != nil {
			out = append(out, parent)
		} else {
			l.orphan = true
		}
	}
	return out
}

// refuses says why a parent is not even read, or is "".
func (l *loader) refuses(name, path string, chain []string) string {
	switch {
	case strings.Contains(name, "://"):
		return fmt.Sprintf("%q: parents are local files", name)
	case inChain(chain, path):
		return "a recipe can't extend itself: " + strings.Join(append(chain, path), " → ")
	case len(chain) > maxParents:
		return fmt.Sprintf("more than %d generations of parents", maxParents)
	case len(l.sources) >= maxFiles:
		return fmt.Sprintf("more than %d files", maxFiles)
	}
	return ""
}

// inChain also knows a file under another name, through a link.
func inChain(chain []string, path string) bool {
	real := realPath(path)
	for _, c := range chain {
		if c == path || realPath(c) == real {
			return true
		}
	}
	return false
}

func realPath(path string) string {
	p, err := filepath.EvalSymlinks(path)
	if err != nil {
		p = path
	}
	if abs, err := filepath.Abs(p); err == nil {
		return abs
	}
	return p
}
