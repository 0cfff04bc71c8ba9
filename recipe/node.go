package recipe

import (
	"fmt"

	"trainer/internal/diag"
)

// source is where values stand: a file, the command line, or the defaults.
type source struct {
	file  string // as shown in places; empty for the command line and the defaults
	dir   string // where a relative path of it starts
	layer int    // later layers win; the defaults are 0
	label string // of an origin without lines: "--set", "default"
	data  []byte // the file's bytes
	main  bool   // the file that was given, not a parent
}

type shape int

const (
	scalar shape = iota
	list
	mapping
)

// node is a YAML value with its place, after aliases and merge keys are resolved.
type node struct {
	shape  shape
	text   string // of a scalar
	quoted bool   // a scalar that can be nothing but text
	null   bool
	items  []*node
	pairs  []pair
	pos    diag.Pos
	src    *source
}

type pair struct {
	name  string
	at    diag.Pos // of the key
	value *node
}

func (n *node) get(name string) *node {
	if n == nil {
		return nil
	}
	for _, p := range n.pairs {
		if p.name == name {
			return p.value
		}
	}
	return nil
}

// keyAt is the place of the key, or of the mapping when it has no such key.
func (n *node) keyAt(name string) diag.Pos {
	for _, p := range n.pairs {
		if p.name == name {
			return p.at
		}
	}
	return n.pos
}

// word is the text of a scalar that is not null, and "".
func (n *node) word() string {
	if n == nil || n.shape != scalar || n.null {
		return ""
	}
	return n.text
}

// show describes the value for a message; what looks like a secret is not repeated.
func (n *node) show() string {
	switch {
	case n.shape == list:
		return "a list"
	case n.shape == mapping:
		return "a mapping"
	case n.null:
		return "null"
	case secret(n.text) != "":
		return "a secret"
	case len(n.text) > 80:
		return fmt.Sprintf("%q", cut(n.text, 60))
	case n.quoted:
		return fmt.Sprintf("%q", n.text)
	}
	return n.text
}

// cut shortens s to about n characters.
func cut(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n]) + "…"
	}
	return s
}

// with returns n with the pair set, in place of one of the same name or at the end.
func (n *node) with(p pair) *node {
	out := *n
	out.pairs = append([]pair(nil), n.pairs...)
	for i := range out.pairs {
		if out.pairs[i].name == p.name {
			out.pairs[i] = p
			return &out
		}
	}
	out.pairs = append(out.pairs, p)
	return &out
}
