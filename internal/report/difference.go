package report

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Excerpts are what one of two ways of reading a row has around the first token at which they differ.
type Excerpts struct {
	Name   string       `json:"name"`
	Before []ShownPiece `json:"before"`
	From   []ShownPiece `json:"from"` // that token, and what follows; empty at the end
	Cut    bool         `json:"-"`    // there is more before
}

// Difference writes the first token at which the sides differ: a line with the place, and one for each side, with the token
// between ⟦ and ⟧. example is of the row, token of the example, both from 1; 0 leaves them out.
func Difference(w io.Writer, at string, example, token int, what string, sides []Excerpts) error {
	var b strings.Builder
	fmt.Fprintf(&b, "row %s", printable(at))
	if example > 0 {
		fmt.Fprintf(&b, " example %d", example)
	}
	if token > 0 {
		fmt.Fprintf(&b, " token %d", token)
	}
	fmt.Fprintf(&b, ": %s\n", printable(what))
	longest := 0
	for _, s := range sides {
		longest = max(longest, utf8.RuneCountInString(printable(s.Name)))
	}
	for _, s := range sides {
		fmt.Fprintf(&b, "  %-*s  %s\n", longest, printable(s.Name), s.text())
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("writing a difference: %w", err)
	}
	return nil
}

func (e Excerpts) text() string {
	var b strings.Builder
	if e.Cut {
		b.WriteString("…")
	}
	for _, p := range e.Before {
		b.WriteString(inLine(p))
	}
	if len(e.From) == 0 {
		return b.String() + "⟦⟧ ends here"
	}
	first := e.From[0]
	fmt.Fprintf(&b, "⟦%s⟧", inLine(first))
	for _, p := range e.From[1:] {
		b.WriteString(inLine(p))
	}
	fmt.Fprintf(&b, "  (id %d, weight %s)", first.IDs[0], weightText(first.Weight))
	return b.String()
}

// inLine is the text of p, drawn, without a break.
func inLine(p ShownPiece) string { return strings.ReplaceAll(p.drawn(), "\n", "") }
