// Package diag holds problems with their places, so that whoever finds a fault says where it is and every fault of a
// file is shown at once, in file order, each on one clickable line. It reads nothing and decides nothing: recipe,
// dataset and runner add to a List, cmd/trainer prints it.
package diag

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Pos is a place in a file. Line and Col count from 1; 0 is unknown and is left out of the text. A place that is no
// file, such as "--set optimizer.learning_rate", stands in File alone. Col counts characters, not bytes.
type Pos struct {
	File      string
	Line, Col int
}

// String is "recipe.yaml:3:9", "rows.jsonl:311" or "recipe.yaml"; empty for the zero Pos.
func (p Pos) String() string {
	switch {
	case p.Line == 0:
		return p.File
	case p.Col == 0:
		return fmt.Sprintf("%s:%d", p.File, p.Line)
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Col)
}

// Problem is one line of output: where, which key (dotted; empty when the place says it all), and what is wrong with
// the way out in it.
type Problem struct {
	Pos Pos
	Key string
	Msg string
}

// String is "recipe.yaml:3:9: loss.type: message", leaving out what is empty.
func (p Problem) String() string {
	parts := make([]string, 0, 3)
	for _, s := range []string{p.Pos.String(), p.Key, p.Msg} {
		if s != "" {
			parts = append(parts, s)
		}
	}
	return strings.Join(parts, ": ")
}

// List is every problem found. The zero value is ready to use; it is not safe for concurrent use.
type List []Problem

// Add appends a problem; format and a are as in fmt.Sprintf.
func (l *List) Add(p Pos, key, format string, a ...any) {
	*l = append(*l, Problem{p, key, fmt.Sprintf(format, a...)})
}

// Sorted returns the problems in file order: files in the order in which they first appear, then line and column;
// problems of one place stay in the order in which they were added, and an exact repeat is left out.
func (l List) Sorted() List {
	rank := map[string]int{}
	for _, p := range l {
		if _, ok := rank[p.Pos.File]; !ok {
			rank[p.Pos.File] = len(rank)
		}
	}
	out := slices.Clone(l)
	slices.SortStableFunc(out, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(rank[a.Pos.File], rank[b.Pos.File]), cmp.Compare(a.Pos.Line, b.Pos.Line), cmp.Compare(a.Pos.Col, b.Pos.Col))
	})
	return slices.Compact(out)
}

// Error is the sorted problems, one a line.
func (l List) Error() string {
	lines := make([]string, len(l))
	for i, p := range l.Sorted() {
		lines[i] = p.String()
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n")
}

// Err returns the list as an error, nil when it is empty: a bare nil List in an error would not compare equal to nil.
func (l List) Err() error {
	if len(l) == 0 {
		return nil
	}
	return l
}
