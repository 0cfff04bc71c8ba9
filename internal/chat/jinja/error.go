package jinja

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Error is what Parse and Render return.
type Error struct {
	// Line and Col count from 1, Col in characters: where in the template. Both are 0 where no place is known.
	Line, Col int
	// Kind is the class that Python raises for it (UndefinedError, TypeError, TemplateSyntaxError, ...). Two are our own:
	// LimitError, a bound of Limits, and Unsupported, a part of the language that this package does not have.
	Kind string
	Msg  string

	at int // byte offset, -1 for unknown
}

// Error is "3:14: 'x' is undefined (UndefinedError)".
func (e *Error) Error() string {
	s := fmt.Sprintf("%s (%s)", e.Msg, e.Kind)
	if e.Line == 0 {
		return s
	}
	return fmt.Sprintf("%d:%d: %s", e.Line, e.Col, s)
}

// fail abandons a render; the place is where the render stands.
func fail(kind, format string, a ...any) { failAt(-1, kind, format, a...) }

// failAt abandons a parse or a render at a byte of the source.
func failAt(at int, kind, format string, a ...any) {
	panic(&Error{Kind: kind, Msg: fmt.Sprintf(format, a...), at: at})
}

// unsupported abandons at something that Python has and this package has not.
func unsupported(format string, a ...any) {
	fail("Unsupported", format+" is not supported in a chat template", a...)
}

// caught turns what a deferred function has recovered into *err, with its place in src, and lets every panic that is no
// fail go on. at is where a render stands.
func caught(err *error, src string, at *int, recovered any) {
	switch r := recovered.(type) {
	case nil:
	case *Error:
		if r.at < 0 {
			r.at = *at
		}
		r.Line, r.Col = place(src, r.at)
		*err = r
	default:
		panic(r)
	}
}

// place is the line and the column of a byte of src; 0, 0 for a byte that is not in it.
func place(src string, at int) (line, col int) {
	if at < 0 || at > len(src) {
		return 0, 0
	}
	before := src[:at]
	return 1 + strings.Count(before, "\n"), 1 + utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:])
}
