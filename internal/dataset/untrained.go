package dataset

import (
	"fmt"
	"strings"

	"trainer/internal/diag"
)

// shownUntrained bounds the lines that are listed of rows that train nothing.
const shownUntrained = 12

// untrained counts the rows of a source of which nothing would train: mostly they have one cause, a mode or a template, and
// a list of a thousand faults would hide it.
type untrained struct {
	rows  int
	first []placed // the first of them
}

func (u *untrained) add(f placed) {
	if u.rows++; len(u.first) < shownUntrained {
		u.first = append(u.first, f)
	}
}

// problem says it of all of them, of seen rows, at the first.
func (u *untrained) problem(seen int) diag.Problem {
	first := u.first[0]
	p := diag.Problem{Pos: first.pos, Key: first.key}
	switch {
	case u.rows == 1:
		p.Msg = first.msg
	case u.rows == seen:
		p.Msg = fmt.Sprintf("0 of %d rows have trained tokens; first: %s: %s", seen, first.pos, first.msg)
	default:
		_, why, ok := strings.Cut(first.msg, "; ")
		if !ok {
			why = "the first: " + first.msg
		}
		p.Msg = fmt.Sprintf("%d of %d rows have no trained token: %s; %s; dataset.on_bad_row: skip leaves them out, and counts them", u.rows, seen, u.lines(), why)
	}
	return p
}

// lines are the places, the file named where it changes: rows.jsonl:3, :7, other.jsonl:1, ….
func (u *untrained) lines() string {
	var out []string
	file := ""
	for _, f := range u.first {
		if f.pos.File == file {
			out = append(out, fmt.Sprintf(":%d", f.pos.Line))
			continue
		}
		file = f.pos.File
		out = append(out, f.pos.String())
	}
	if u.rows > len(u.first) {
		out = append(out, "…")
	}
	return strings.Join(out, ", ")
}
