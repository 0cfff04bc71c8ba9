package recipe

import (
	"strconv"

	"trainer/internal/diag"
)

// trace is where the values of a recipe came from, by dotted key.
type trace struct {
	path          string
	sources       []*source
	places        map[string]diag.Pos // of what was given
	dirs          map[string]string   // of what was given: where a relative path starts
	origins       map[string]origin
	useless       map[string]bool // keys without an effect here
	usesReference bool
}

// origin is a line of a file, or a label.
type origin struct {
	label string // --set, default, derived from …; empty: a line
	file  string
	line  int
	main  bool
}

func (o origin) String() string {
	switch {
	case o.label != "":
		return o.label
	case o.main:
		return oneLine(o.file) + ":" + strconv.Itoa(o.line)
	}
	return "parent " + oneLine(o.file) + ":" + strconv.Itoa(o.line)
}

func newTrace(path string, sources []*source) trace {
	return trace{path: path, sources: sources, places: map[string]diag.Pos{}, dirs: map[string]string{},
		origins: map[string]origin{}, useless: map[string]bool{}}
}

// note remembers that the value at key is n.
func (t *trace) note(key string, n *node) {
	o := origin{label: n.src.label, file: n.src.file, line: n.pos.Line, main: n.src.main}
	t.origins[key] = o
	if o.label == defaults.label {
		return
	}
	t.places[key], t.dirs[key] = n.pos, n.src.dir
}

// Path is the file that was loaded, as it was given to Load.
func (t *trace) Path() string { return t.path }

// At is the place of the value at a dotted key (dataset.train.0.path), or of the nearest mapping above it that was
// given; the file itself when there is none. A value of --set has a place without a line.
func (t *trace) At(key string) diag.Pos {
	for key != "" {
		if p, ok := t.places[key]; ok {
			return p
		}
		key = above(key)
	}
	if p, ok := t.places[""]; ok {
		return p
	}
	return diag.Pos{File: t.path}
}

// Given says whether the key stands in the file, in a parent or in a --set, whatever its value.
func (t *trace) Given(key string) bool {
	_, ok := t.places[key]
	return ok
}

// Dir is the folder where a relative path at key starts: that of the file the value stands in, and the working
// directory for a value of --set.
func (t *trace) Dir(key string) string {
	for key != "" {
		if dir, ok := t.dirs[key]; ok {
			return dir
		}
		key = above(key)
	}
	return t.dirs[""]
}

// File is a recipe's file as it was read.
type File struct {
	Path string
	Data []byte
}

// Files are the recipe and its parents, each once, the recipe first.
func (t *trace) Files() []File {
	var out []File
	seen := map[string]bool{}
	for _, s := range t.sources {
		if !seen[s.file] {
			seen[s.file] = true
			out = append(out, File{s.file, append([]byte(nil), s.data...)})
		}
	}
	return out
}
