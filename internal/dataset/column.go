package dataset

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"

	"trainer/recipe"
)

// column says where in a row one of our fields is: under a path, or several whose texts are joined.
type column struct {
	paths []string
	regex *regexp.Regexp // nil: the text as it is
	seen  []atomic.Bool  // [paths]: some row has it
}

func newColumn(paths ...string) *column {
	return &column{paths: paths, seen: make([]atomic.Bool, len(paths))}
}

func compileColumn(f recipe.Field) (*column, error) {
	if len(f.Columns) == 0 {
		return nil, fmt.Errorf("names no column")
	}
	for _, c := range f.Columns {
		if c == "" {
			return nil, fmt.Errorf("an empty column name")
		}
	}
	c := newColumn(f.Columns...)
	if f.Regex == "" {
		return c, nil
	}
	var err error
	if c.regex, err = regexp.Compile(f.Regex); err != nil {
		return nil, fmt.Errorf("regex: %w", err)
	}
	return c, nil
}

// whole tells whether the column can hold something else than text.
func (c *column) whole() bool { return len(c.paths) == 1 && c.regex == nil }

// String is how messages name the column.
func (c *column) String() string { return strings.Join(c.paths, "+") }

// raw is the value under the first path, nil when the row has none.
func (c *column) raw(row value) value { return lookup(row, c.paths[0]) }

// text is the field as text: the texts under the paths joined by a blank line, empty ones left out, cut by the regex.
func (c *column) text(row value) (string, *fault) {
	parts := make([]string, 0, len(c.paths))
	for i, path := range c.paths {
		v := lookup(row, path)
		if v != nil && !c.seen[i].Load() {
			c.seen[i].Store(true)
		}
		if len(c.paths) > 1 && (v == nil || v.isBlank()) {
			continue
		}
		if v == nil {
			return "", missing(row, path)
		}
		if !v.isText() {
			return "", bad(path, "%s where text is due", v.kind())
		}
		parts = append(parts, v.text())
	}
	if len(parts) == 0 {
		return "", bad(c.String(), "all of these columns are empty or missing")
	}
	return c.cut(strings.Join(parts, "\n\n"))
}

func (c *column) cut(text string) (string, *fault) {
	if c.regex == nil {
		return text, nil
	}
	m := c.regex.FindStringSubmatch(text)
	if m == nil {
		return "", bad(c.String(), "%s does not match %q", brief(text), c.regex)
	}
	return m[min(1, len(m)-1)], nil
}

// lookup follows a dotted path. A key that has dots in it wins over the path it looks like; a number indexes a list.
func lookup(v value, path string) value {
	if v.isObject() {
		if found := v.member(path); found != nil {
			return found
		}
	}
	head, rest, dotted := strings.Cut(path, ".")
	var found value
	switch {
	case v.isObject() && dotted:
		found = v.member(head)
	case v.isList():
		if n, err := strconv.Atoi(head); err == nil && n >= 0 {
			found = v.item(n)
		}
	}
	if found == nil || !dotted {
		return found
	}
	return lookup(found, rest)
}

// brief shows the start of a text in quotes.
func brief(text string) string {
	if r := []rune(text[:min(len(text), 200)]); len(r) > 40 {
		return strconv.Quote(string(r[:40]) + "…")
	}
	return strconv.Quote(text)
}
